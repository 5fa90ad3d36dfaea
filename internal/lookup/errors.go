package lookup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sethvargo/go-retry"

	"github.com/tidegate-cdc/tidegate/internal/exit"
)

// errStandby is transient: the server may be promoted, or the URL lead to the primary again.
var errStandby = errors.New("the server is a standby: visibility of a commit can only be told on the primary")

// oddError is what the server says to a statement because of a value in it.
type oddError struct{ err *pgconn.PgError }

func (e *oddError) Error() string { return "answer a row: SQLSTATE " + e.err.Code }
func (e *oddError) Unwrap() error { return e.err }

func isOdd(err error) bool {
	var odd *oddError
	return errors.As(err, &odd)
}

// classify is the one place that says what an error means: *exit.Error ends the bridge, *oddError lies in a value,
// and all else passes by itself.
func classify(doing string, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	refuse := func(code int, hint string) error {
		return &exit.Error{Code: code, Err: fmt.Errorf("%s: %s (SQLSTATE %s)", doing, pg.Message, pg.Code), Hint: hint}
	}
	switch class := pg.Code[:min(2, len(pg.Code))]; {
	case class == "08", class == "40", class == "53", class == "55", class == "57", class == "58":
		return fmt.Errorf("%s: %w", doing, err)
	case pg.Code == "42501" && strings.Contains(pg.Message, "row-level security"):
		return refuse(exit.Postgres, "deleted and hidden features look alike to a filtered role: "+
			"ALTER ROLE … BYPASSRLS, or a policy-free view of the features")
	case class == "26", pg.Code == "42P05":
		return refuse(exit.Postgres, "the URL seems to lead through a transaction pooler: set postgres.lookup_url to the server itself")
	case class == "0A": // a plan that a change of the table made void
		return fmt.Errorf("%s: %w", doing, err)
	case pg.Code == "42501":
		return refuse(exit.Postgres, "GRANT USAGE on the schema and SELECT on the features table to the bridge's role")
	case class == "42", class == "3F":
		return refuse(exit.Drift, "compare the features table with feature.table, .id, .version and .geometry of the outbox")
	case class == "28", class == "3D":
		return refuse(exit.Postgres, "check postgres.url (or lookup_url): user, password, database and pg_hba.conf")
	default:
		return &oddError{pg}
	}
}

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

func message(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Message
	}
	return ""
}

// brief says what failed without what a connection error tells of the connection.
func brief(err error) string {
	var pg *pgconn.PgError
	var op *net.OpError
	switch {
	case errors.As(err, &pg):
		return pg.Message
	case errors.As(err, &op):
		return "cannot reach PostgreSQL: " + op.Err.Error()
	case errors.Is(err, errStandby):
		return errStandby.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "PostgreSQL does not answer"
	default:
		return "connection to PostgreSQL lost"
	}
}

// backoff grows from its first value to 3 s, with jitter.
type backoff struct{ next retry.Backoff }

func newBackoff(first time.Duration) backoff {
	return backoff{retry.WithJitterPercent(20, retry.WithCappedDuration(3*time.Second, retry.NewExponential(first)))}
}

func (b backoff) wait(ctx context.Context) error {
	d, _ := b.next.Next()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
