package parking

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// MissingError says that the database has no place for parked rows.
type MissingError struct{ Database string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("open %s: the table does not exist in database %s", table, e.Database)
}

// Hint says what can be done about it.
func (e *MissingError) Hint() string {
	return "tidegate migrate up makes it; or set park.store: off, and the bridge stops at the first row that cannot be published"
}

// PrivilegeError says that the role may not do what is done here.
type PrivilegeError struct {
	Role  string
	Lacks []string // "USAGE" (of the schema), "SELECT", …
	wants string   // what the role needs of the table
}

func (e *PrivilegeError) Error() string {
	return fmt.Sprintf("open %s: role %s lacks %s", table, e.Role, strings.Join(e.Lacks, ", "))
}

// Hint is the statements that give the role what it needs.
func (e *PrivilegeError) Hint() string {
	return fmt.Sprintf(`GRANT USAGE ON SCHEMA %s TO %[3]s; GRANT %[4]s ON %[2]s TO %[3]s`, schema, table, quoted(e.Role), e.wants)
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// FullError says that more rows would be unresolved than the configuration allows. None of them was taken.
type FullError struct{ Rows, Max int }

func (e *FullError) Error() string {
	return fmt.Sprintf("park rows: %d would be parked or held, and park.max_rows is %d", e.Rows, e.Max)
}

// Hint says what can be done about it.
func (e *FullError) Hint() string {
	return "tidegate parked list shows them; resolve some with tidegate parked retry or discard, or raise park.max_rows"
}

// ChangedError says that an operator has changed a row in between. Nothing was done: Releasable gives what holds now.
type ChangedError struct{ Doing string }

func (e *ChangedError) Error() string {
	return e.Doing + ": an operator has changed one of them meanwhile"
}

// StateError says that a row is in a state in which the operator's wish cannot be granted.
type StateError struct {
	Wish   State
	Row    Row
	Behind int64 // the parked row that it waits behind, where there is one
}

func (e *StateError) Error() string {
	doing := map[State]string{StateRetry: "retry", StateDiscard: "discard"}[e.Wish]
	text := fmt.Sprintf("%s parked row %d: ", doing, e.Row.ID)
	switch {
	case e.Row.State == StateDiscarded:
		return text + "it was discarded already"
	case e.Behind != 0:
		return text + fmt.Sprintf("it waits behind parked row %d", e.Behind)
	case e.Row.State == StateReleasing:
		return text + "it is being published right now"
	case e.Row.State == StateHeld:
		return text + "it is held, and goes on by itself"
	}
	return text + "its state is " + string(e.Row.State)
}

// Hint says what can be done about it.
func (e *StateError) Hint() string {
	switch {
	case e.Behind != 0 && e.Row.State != StateDiscarded:
		return fmt.Sprintf("retry or discard row %d: what waits behind it follows by itself", e.Behind)
	case e.Row.State == StateReleasing:
		return fmt.Sprintf("tidegate parked show %d says in a moment what became of it", e.Row.ID)
	case e.Row.State == StateDiscarded:
		return "a discarded row is not published again; write the event to the outbox as a new row"
	}
	return ""
}

// NotFoundError says that no row answers to a reference.
type NotFoundError struct{ What string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("find %s: there is none; it may have been published meanwhile", e.What)
}

// Hint says what can be done about it.
func (e *NotFoundError) Hint() string { return "tidegate parked list shows the rows that there are" }

// AmbiguousError says that more than one row answers to a reference.
type AmbiguousError struct {
	Ref string
	IDs []int64
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("find parked row %q: %d rows have this id", e.Ref, len(e.IDs))
}

// Hint says what can be done about it.
func (e *AmbiguousError) Hint() string {
	return "name it by its own number, one of " + strings.Trim(fmt.Sprint(e.IDs), "[]")
}

// ErrUsage is inside errors about a reference or filter that means nothing.
var ErrUsage = errors.New("not understood")

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
