package slot

import (
	"errors"
	"fmt"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// ErrSilent ends a stream whose server neither sent anything nor answered: a connection of which only one end is left.
// It is transient.
var ErrSilent = errors.New("read replication stream: the server does not answer")

// ErrMalformed ends a stream whose framing cannot be understood.
var ErrMalformed = errors.New("read replication stream: malformed message")

// ErrNotHeld is what a *RefusedError wraps when the slot is not held by the walsender that has just taken it: another
// server answers by SQL, or the walsender was ended in between.
var ErrNotHeld = errors.New("the walsender does not hold the slot")

// RefusedError says that PostgreSQL, or a check of ours, does not allow what is configured.
type RefusedError struct {
	Check string // what was checked: "wal_level"
	Seen  string // what was found
	Fix   string // the command or setting that mends it
	Err   error  // what the server said, if it was the server
}

func (e *RefusedError) Error() string { return fmt.Sprintf("check %s: %s", e.Check, e.Seen) }

// Unwrap gives what the server said.
func (e *RefusedError) Unwrap() error { return e.Err }

// Hint gives the fix.
func (e *RefusedError) Hint() string { return e.Fix }

// MissingSlotError says that the slot does not exist.
type MissingSlotError struct {
	Slot string
	Err  error
}

func (e *MissingSlotError) Error() string {
	return fmt.Sprintf("read slot %s: it does not exist", e.Slot)
}

// Unwrap gives what the server said.
func (e *MissingSlotError) Unwrap() error { return e.Err }

// Hint says how events are had again.
func (e *MissingSlotError) Hint() string {
	return "the slot was dropped: what was committed since its last confirmed position can only be read from the outbox table"
}

// LostError says that the server has removed WAL that the slot needs. The gap begins at Confirmed.
type LostError struct {
	Slot      string
	Confirmed decoder.LSN // 0 when not known
	Reason    string      // wal_status or invalidation_reason
	Err       error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("read slot %s: it is lost (%s), confirmed up to %s", e.Slot, e.Reason, e.Confirmed)
}

// Unwrap gives what the server said.
func (e *LostError) Unwrap() error { return e.Err }

// Hint says how events are had again.
func (e *LostError) Hint() string {
	return "raise max_slot_wal_keep_size, drop the slot and let a new one be made; what was committed since the confirmed position can only be read from the outbox table"
}

// DriftError says that the publication or a table no longer yields what is configured.
type DriftError struct {
	Object string // "publication tidegate"
	Seen   string
	Fix    string   // SQL
	Tables []string // whose rows may be missing; nil when that is not known
	Err    error
}

func (e *DriftError) Error() string { return fmt.Sprintf("check %s: %s", e.Object, e.Seen) }

// Unwrap gives what the server said.
func (e *DriftError) Unwrap() error { return e.Err }

// Hint gives the SQL that mends it.
func (e *DriftError) Hint() string { return e.Fix }

// ActiveError says that another session holds the slot. It is transient: WaitFree waits for it.
type ActiveError struct {
	Slot string
	PID  int // 0 when the server did not say
	Err  error
}

func (e *ActiveError) Error() string {
	return fmt.Sprintf("start slot %s: it is active for pid %d", e.Slot, e.PID)
}

// Unwrap gives what the server said.
func (e *ActiveError) Unwrap() error { return e.Err }
