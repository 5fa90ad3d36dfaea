package slot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// kindOf names the class by which a caller branches.
func kindOf(err error) string {
	var (
		refused *RefusedError
		missing *MissingSlotError
		lost    *LostError
		drift   *DriftError
		active  *ActiveError
	)
	switch {
	case errors.As(err, &refused):
		return "refused"
	case errors.As(err, &missing):
		return "missing"
	case errors.As(err, &lost):
		return "lost"
	case errors.As(err, &drift):
		return "drift"
	case errors.As(err, &active):
		return "active"
	case Transient(err):
		return "transient"
	}
	return "unexpected"
}

func TestEachOfPostgresErrorsHasItsClassAndFix(t *testing.T) {
	c := Config{Slot: "s", Publication: "p"}
	for _, e := range []struct{ code, text, kind, fix string }{
		{"55000", `logical decoding requires wal_level >= logical`, "refused", "ALTER SYSTEM SET wal_level"},
		{"55000", `logical decoding requires "wal_level" >= "logical"`, "refused", "ALTER SYSTEM SET wal_level"},
		{"42501", `must be superuser or replication role to start walsender`, "refused", "REPLICATION"},
		{"42501", `permission denied to start WAL sender`, "refused", "REPLICATION"},
		{"42501", `must be superuser or replication role to use replication slots`, "refused", "REPLICATION"},
		{"42501", `permission denied to use replication slots`, "refused", "REPLICATION"},
		{"42501", `permission denied for database "app"`, "refused", "GRANT CONNECT"},
		{"42501", `library "pgoutput" may not be used as an output plugin`, "refused", "output_plugin_libraries"},
		{"53400", `all replication slots are in use`, "refused", "max_replication_slots"},
		{"53300", `number of requested standby connections exceeds max_wal_senders (currently 10)`, "transient", "max_wal_senders"},
		{"42704", `replication slot "s" does not exist`, "missing", "outbox table"},
		{"42710", `replication slot "s" already exists`, "refused", "slot.name"},
		{"42602", `replication slot name "S" contains invalid character`, "refused", "slot.name"},
		{"55006", `replication slot "s" is active for PID 4711`, "active", ""},
		{"55000", `replication slot "s" was not created in this database`, "refused", "another database"},
		{"42704", `publication "p" does not exist`, "drift", "create it again"},
		{"55000", `cannot read from logical replication slot "s"`, "lost", "outbox table"},
		{"55000", `can no longer get changes from replication slot "s"`, "lost", "outbox table"},
		{"55000", `can no longer access replication slot "s"`, "lost", "outbox table"},
		{"57P01", `terminating connection due to administrator command`, "transient", ""},
		{"57P02", `terminating connection because of crash of another server process`, "transient", ""},
		{"57P03", `the database system is shutting down`, "transient", ""},
		{"08006", `connection failure`, "transient", ""},
		{"55000", `logical decoding requires a database connection`, "refused", "direct endpoint"},
		{"0A000", `logical decoding cannot be used while in recovery`, "refused", "primary"},
		{"28000", `no pg_hba.conf entry for host "10.0.0.1", user "u", database "d", no encryption`, "refused", "pg_hba.conf"},
		{"28P01", `password authentication failed for user "u"`, "refused", "password"},
		{"28000", `role "u" does not exist`, "refused", "CREATE ROLE"},
		{"3D000", `database "d" does not exist`, "refused", "database name"},
		{"22023", `cannot add relation "t" to publication`, "refused", "SET LOGGED"},
		{"25001", `cannot create logical replication slot in transaction that has performed writes`, "refused", "transaction"},
		{"08P01", `unsupported startup parameter: replication`, "refused", "direct endpoint"},
		{"XX000", `cache lookup failed`, "unexpected", ""},
	} {
		err := classify(fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: e.code, Message: e.text}), c)
		if got := kindOf(err); got != e.kind {
			t.Errorf("%s %s: %s, want %s", e.code, e.text, got, e.kind)
		}
		if got := Explain(err); !strings.Contains(got, e.fix) || (e.fix == "") != (got == "") {
			t.Errorf("%s %s: hint %q, want %q in it", e.code, e.text, got, e.fix)
		}
		var pe *pgconn.PgError
		if !errors.As(err, &pe) {
			t.Errorf("%s %s: what the server said is lost", e.code, e.text)
		}
	}
}

func TestHolderOfABusySlotIsNamed(t *testing.T) {
	err := classify(&pgconn.PgError{Code: "55006", Message: `replication slot "s2" is active for PID 4711`}, Config{Slot: "s2"})
	var active *ActiveError
	if !errors.As(err, &active) || active.PID != 4711 || !Transient(err) {
		t.Fatalf("%v", err)
	}
}

func TestOnlyWhatMayPassIsTransient(t *testing.T) {
	for _, err := range []error{
		ErrSilent, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, &net.OpError{Op: "read", Err: errors.New("connection reset by peer")},
		&net.DNSError{Err: "no such host", IsNotFound: true}, fmt.Errorf("x: %w", &ActiveError{}),
	} {
		if !Transient(err) {
			t.Errorf("%v is not transient", err)
		}
	}
	for _, err := range []error{
		nil, context.Canceled, ErrMalformed, &RefusedError{}, &LostError{}, &MissingSlotError{}, &DriftError{}, &TooLargeError{},
		&CreateTimeoutError{}, errors.New(refusedTLS), fmt.Errorf("lost: %w", &LostError{Err: io.EOF}),
	} {
		if Transient(err) {
			t.Errorf("%v is transient", err)
		}
	}
}
