package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/backfill"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

func TestEveryFailureHasItsClass(t *testing.T) {
	pg := func(code string) error {
		return fmt.Errorf("read replication stream: %w", &pgconn.PgError{Code: code, Message: "m"})
	}
	poisoned := func(err error) error {
		r := &row{poison: err}
		r.event.Table = &event.Table{Name: "public.outbox"}
		return &poisonError{r, err}
	}
	stream := &publish.Stream{Name: "OUTBOX"}
	for _, tc := range []struct {
		name string
		err  error
		code int
		hint string // a part of it; "" is any for what is transient, and some for all else
	}{
		{"PostgreSQL shuts down", errShutdown, transient, ""},
		{"PostgreSQL shuts down, and the checkpoint was stolen", errors.Join(errShutdown, fromNATS(&publish.StolenError{})), transient, ""},
		{"another instance makes the slot", fmt.Errorf("create slot: %w", errElsewhere), transient, ""},
		{"57P01", pg("57P01"), transient, ""},
		{"57P03", pg("57P03"), transient, ""},
		{"08006", pg("08006"), transient, ""},
		{"disk full", pg("53100"), transient, ""},
		{"slot is active", &slot.ActiveError{Slot: "s", PID: 7}, transient, ""},
		{"silent server", slot.ErrSilent, transient, ""},
		{"broken connection", fmt.Errorf("read replication stream: %w", io.ErrUnexpectedEOF), transient, ""},
		{"no answer in time", fmt.Errorf("inspect server: %w", context.DeadlineExceeded), transient, ""},
		{"NATS away", fromNATS(nats.ErrNoServers), transient, ""},
		{"NATS disconnected", fromNATS(nats.ErrDisconnected), transient, ""},
		{"nobody answers at the subject", fromNATS(nats.ErrNoResponders), transient, ""},
		{"stream full", fromNATS(&publish.AckError{Code: 503, ErrCode: 10077}), transient, ""},
		{"another instance wrote the checkpoint", fromNATS(&publish.StolenError{Source: "app"}), transient, ""},

		{"slot dropped", &slot.MissingSlotError{Slot: "s"}, exit.SlotLost, "outbox table"},
		{"slot lost", &slot.LostError{Slot: "s", Reason: "wal_removed"}, exit.SlotLost, "max_slot_wal_keep_size"},
		{"wal_level", &slot.RefusedError{Check: "wal_level", Fix: "ALTER SYSTEM"}, exit.Postgres, "ALTER SYSTEM"},
		{"no replication", pg("42501"), exit.Postgres, "privilege"},
		{"slot is not made", &slot.CreateTimeoutError{Slot: "s", Blockers: []slot.Blocker{{PID: 42}}}, exit.Postgres, "pg_terminate_backend(42)"},
		{"publication altered", &slot.DriftError{Object: "publication p", Fix: "ALTER PUBLICATION"}, exit.Drift, "ALTER PUBLICATION"},
		{"column missing", &event.SchemaError{Table: "public.outbox", Column: "id", Reason: "missing"}, exit.Drift, "outboxes[].columns"},
		{"column missing, at a row", poisoned(&event.SchemaError{Table: "public.outbox", Column: "id", Reason: "missing"}), exit.Drift, "outboxes[].columns"},
		{"nothing tells the order of a table", &backfill.OrderError{Table: "public.outbox"}, exit.Usage, "order_by"},

		{"null in a required column", poisoned(&event.PoisonError{Table: "public.outbox", Column: "id", Reason: "must not be null"}), exit.Unexpected, "park.store"},
		{"row too large for NATS", poisoned(&publish.LimitError{What: "headers and body", Size: 9, Limit: 8, Of: "max_payload"}), exit.Unexpected, "raise the limit"},
		{"row above max_row", poisoned(&slot.TooLargeError{Size: 9, Max: 8, LSN: decoder.LSN(1)}), exit.Unexpected, "publish.max_row"},
		{"poison, and the checkpoint was not written", errors.Join(poisoned(&event.PoisonError{Column: "id"}), fromNATS(nats.ErrTimeout)), exit.Unexpected, "park.store"},

		{"stream narrowed", fromNATS(&publish.NotCoveredError{Stream: "OUTBOX", Subject: "a.b"}), exit.Drift, "nats stream edit"},
		{"stream purged", fromNATS(&publish.LostError{Stream: "OUTBOX"}), exit.NATS, "restore"},
		{"foreign stream", fromNATS(&publish.ForeignAckError{Subject: "a", Want: "OUTBOX", Got: "B"}), exit.NATS, "subjects"},
		{"permission", fromNATS(&publish.RefusedError{Doing: "use NATS", Err: nats.ErrPermissionViolation, Fix: "grant it"}), exit.NATS, "grant it"},
		{"the client gave up for a reason that looks like an outage", fromNATS(&publish.RefusedError{Doing: "reconnect", Err: nats.ErrConnectionClosed, Fix: "look"}), exit.NATS, "look"},
		{"stream sealed", fromNATS(&publish.StreamError{Stream: stream.Name, Reason: "it is sealed", Fix: "name another"}), exit.NATS, "name another"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := failure(tc.err)
			switch {
			case tc.code == transient && err != nil:
				t.Fatalf("ends the bridge: %v (code %d)", err, exit.Code(err))
			case tc.code == transient:
				return
			case err == nil:
				t.Fatal("is tried again")
			case exit.Code(err) != tc.code || exit.Hint(err) == "" || !strings.Contains(exit.Hint(err), tc.hint):
				t.Fatalf("code %d, hint %q; want %d and %q", exit.Code(err), exit.Hint(err), tc.code, tc.hint)
			}
		})
	}
}

func TestStopOnRequestIsNoFailure(t *testing.T) {
	for _, err := range []error{
		context.Canceled,
		fmt.Errorf("start slot: %w", context.Canceled),
		errors.Join(context.Canceled, fromNATS(nats.ErrTimeout)),
		errShutdown,
		fromNATS(nats.ErrDisconnected),
	} {
		if got := stopped(err); got != nil {
			t.Errorf("%v: ended with %v", err, got)
		}
	}
	if got := stopped(&exit.Error{Code: exit.SlotLost, Err: errors.New("lost")}); exit.Code(got) != exit.SlotLost {
		t.Errorf("a failure on the way out ended with %v", got)
	}
}

func TestReasonForLeavingIsPreferredToWhatItMade(t *testing.T) {
	ctx, leave := context.WithCancelCause(t.Context())
	if err := whyEnded(ctx, io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("before leaving: %v", err)
	}
	leave(errShutdown)
	if err := whyEnded(ctx, fmt.Errorf("query: %w", context.Canceled)); !errors.Is(err, errShutdown) {
		t.Errorf("got %v", err)
	}
	if err := whyEnded(ctx, io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("an error of its own became %v", err)
	}
	if err := whyEnded(ctx, nil); err != nil {
		t.Errorf("nothing became %v", err)
	}
}

func TestBytesThatMakeNoSenseAreGivenOneMoreConnection(t *testing.T) {
	var judge verdicts
	malformed := fmt.Errorf("decode message: %w", decoder.ErrMalformed)
	if err := judge.of(malformed); err != nil {
		t.Fatalf("the first time: %v", err)
	}
	if err := judge.of(errShutdown); err != nil {
		t.Fatal(err)
	}
	if err := judge.of(fmt.Errorf("read: %w", slot.ErrMalformed)); err != nil {
		t.Fatalf("the first time in a row: %v", err)
	}
	if err := judge.of(malformed); exit.Code(err) != exit.Unexpected {
		t.Fatalf("the second time in a row: %v", err)
	}
}

func TestWalsenderThatLosesTheSlotWhileItIsTakenIsGivenOneMoreConnection(t *testing.T) {
	var judge verdicts
	elsewhere := fmt.Errorf("read slot position: %w", &slot.RefusedError{Check: "postgres.replication_url", Err: slot.ErrNotHeld})
	if err := judge.of(elsewhere); err != nil {
		t.Fatalf("the first time: %v", err)
	}
	if err := judge.of(elsewhere); exit.Code(err) != exit.Postgres {
		t.Fatalf("the second time in a row: %v", err)
	}
}
