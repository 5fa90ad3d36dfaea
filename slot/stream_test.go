package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestOnlyCommittedRowsArrive(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	k := &taker{confirms: true}
	r := begin(t, c, k)
	testkit.Exec(t, c.URL, `BEGIN; INSERT INTO outbox (payload) VALUES ('never'); ROLLBACK`)
	testkit.Exec(t, c.URL, `BEGIN; INSERT INTO outbox (payload) VALUES ('one');
		SAVEPOINT a; INSERT INTO outbox (payload) VALUES ('undone'); ROLLBACK TO a;
		SAVEPOINT b; INSERT INTO outbox (payload) VALUES ('two'); RELEASE b; COMMIT`)
	insert(t, c, "three")
	wantRows(t, awaitRows(t, k, 3), "one", "two", "three")
	r.stop(t)
}

func TestRowsWrittenWhileNobodyReadsArriveLater(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	insert(t, c, "one", "two")
	k := &taker{}
	r := begin(t, c, k)
	wantRows(t, awaitRows(t, k, 2), "one", "two")
	r.stop(t)
}

func TestEmittedMessagesArrive(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	c := newSlot(t, pg)
	k := &taker{}
	r := begin(t, c, k)
	testkit.Exec(t, c.URL, `SELECT pg_logical_emit_message(true, 'tidegate', 'beat')`)
	insert(t, c, "behind")
	awaitRows(t, k, 1)
	want := "[tidegate=beat]"
	if serverVersion(t, pg) == 13 { // its pgoutput has no messages
		want = "[]"
	}
	if got := fmt.Sprint(k.messages); got != want {
		t.Fatalf("messages %s, want %s", got, want)
	}
	r.stop(t)
}

func TestCleanRestartDeliversNothingAgain(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	var all []string
	for i := range 3 {
		k := &taker{confirms: true}
		r := begin(t, c, k)
		insert(t, c, fmt.Sprint("a", i), fmt.Sprint("b", i))
		all = append(all, awaitCommits(t, k, 2)...)
		r.stop(t)
	}
	wantRows(t, all, "a0", "b0", "a1", "b1", "a2", "b2")
}

func TestKilledSessionLosesNothing(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	k := &taker{}
	r := begin(t, c, k)
	insert(t, c, "one", "two")
	awaitRows(t, k, 2)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.ended(t); !Transient(err) {
		t.Fatalf("Run: %v", err)
	}
	insert(t, c, "three")
	if err := WaitFree(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	k = &taker{confirms: true}
	r = begin(t, c, k)
	wantRows(t, awaitRows(t, k, 3), "one", "two", "three")
	r.stop(t)
}

func TestNothingIsConfirmedUnasked(t *testing.T) {
	c := withSetting(t, newSlot(t, testkit.SharedPostgres(t)), "wal_sender_timeout=1s")
	before := confirmedFlush(t, c)
	k := &taker{}
	r := begin(t, c, k)
	insert(t, c, "one")
	awaitRows(t, k, 1)
	sent := r.Progress().Statuses
	testkit.Eventually(t, patience, func() bool { return r.Progress().Statuses >= sent+3 }, "statuses go out")
	r.stop(t)
	if after := confirmedFlush(t, c); after != before {
		t.Fatalf("confirmed %s, was %s", after, before)
	}
}

func TestConfirmReachesTheServerSoon(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	k := &taker{confirms: true}
	r := begin(t, c, k)
	insert(t, c, "one")
	end := lsnOf(t, c, currentLSN)
	testkit.Eventually(t, 3*time.Second, func() bool { return confirmedFlush(t, c) >= end }, "%s is confirmed long before the next status is due", end)
	r.stop(t)
}

func TestIdleSlotFollowsAServerThatOthersWriteTo(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	c := newSlot(t, pg)
	r := begin(t, c, &taker{confirms: true})
	other := pg.PlainDatabase(t)
	testkit.Exec(t, other, `CREATE TABLE noise AS SELECT i, repeat('x', 500) FROM generate_series(1, 40000) i`)
	end := lsnOf(t, c, currentLSN)
	testkit.Eventually(t, patience, func() bool { return confirmedFlush(t, c) >= end }, "%s is confirmed", end)
	r.stop(t)
}

// TestFullHandlerKeepsItsSession pauses for longer than wal_sender_timeout with more pending than sockets can hold.
func TestFullHandlerKeepsItsSession(t *testing.T) {
	c := withSetting(t, newSlot(t, testkit.SharedPostgres(t)), "wal_sender_timeout=2s")
	before := confirmedFlush(t, c)
	k := &taker{confirms: true}
	k.full.Store(true)
	r := begin(t, c, k)
	testkit.Exec(t, c.URL, `INSERT INTO outbox (payload) SELECT repeat('x', 1000) FROM generate_series(1, 20000)`)
	began := time.Now()
	testkit.Eventually(t, patience, func() bool { return time.Since(began) > 5*time.Second && r.Progress().Statuses >= 5 }, "statuses go out")
	if len(k.got()) != 0 || confirmedFlush(t, c) != before {
		t.Fatalf("%d rows were handed to a full handler", len(k.got()))
	}
	k.full.Store(false)
	r.Wake()
	awaitRows(t, k, 20000)
	if r.PID() != testkit.Value[int](t, c.URL, `SELECT active_pid FROM pg_replication_slots WHERE slot_name = $1`, c.Slot) {
		t.Fatal("another walsender has the slot")
	}
	r.stop(t)
}

func TestConfirmBeyondTheServersWALEndsTheSession(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	before := confirmedFlush(t, c)
	r := begin(t, c, &taker{})
	r.Confirm(0xFF << 32)
	if err := r.ended(t); err == nil || Transient(err) || !strings.Contains(err.Error(), "FF/0") {
		t.Fatalf("Run: %v", err)
	}
	r.Close()
	if after := confirmedFlush(t, c); after != before {
		t.Fatalf("confirmed %s, was %s", after, before)
	}
}

func TestHandlersErrorEndsRun(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	insert(t, c, "one")
	poison := errors.New("poison")
	r := launch(t, startStream(t, c), refuser{&taker{}, poison})
	if err := r.ended(t); !errors.Is(err, poison) {
		t.Fatalf("Run: %v", err)
	}
}

type refuser struct {
	*taker
	err error
}

func (r refuser) Handle(*decoder.Message, decoder.LSN) error { return r.err }

func TestRunReturnsAtOnceWhenItsContextEnds(t *testing.T) {
	for _, full := range []bool{false, true} {
		c := newSlot(t, testkit.SharedPostgres(t))
		k := &taker{}
		k.full.Store(full)
		r := begin(t, c, k)
		sent := r.Progress().Statuses
		testkit.Eventually(t, patience, func() bool { return r.Progress().Statuses > sent }, "Run is under way")
		began := time.Now()
		r.cancel()
		err := r.ended(t)
		if took := time.Since(began); took > time.Second || !errors.Is(err, context.Canceled) {
			t.Errorf("full %v: %v after %s", full, err, took)
		} else {
			t.Logf("full %v: after %s", full, took)
		}
	}
}

func TestTerminatedWalsenderIsTransient(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	r := begin(t, c, &taker{})
	testkit.Exec(t, c.URL, `SELECT pg_terminate_backend($1)`, r.PID())
	if err := r.ended(t); !Transient(err) {
		t.Fatalf("Run: %v", err)
	}
}

func TestPublicationDroppedUnderTheStreamIsDrift(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	r := begin(t, c, &taker{})
	testkit.Exec(t, c.URL, `DROP PUBLICATION tidegate`)
	insert(t, c, "one")
	err := r.ended(t)
	var drift *DriftError
	if !errors.As(err, &drift) || !strings.Contains(Explain(err), "made after the slot") {
		t.Fatalf("Run: %v", err)
	}
}

func TestHistoryOfAPromotedServerIsRead(t *testing.T) {
	pg := testkit.Postgres(t)
	c := newSlot(t, pg)
	s := connect(t, c)
	h, err := s.History(t.Context())
	if err != nil || s.System().Timeline != 1 || h.At(s.System().WALEnd) != 1 {
		t.Fatalf("timeline %d, %v", s.System().Timeline, err)
	}
	s.Close()
	promote(t, pg, c)
	s = connect(t, c)
	h, err = s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, ok := h.Switch(1)
	if s.System().Timeline != 2 || !ok || h.At(at-1) != 1 || h.At(at) != 2 {
		t.Fatalf("timeline %d, switch at %s, %v", s.System().Timeline, at, ok)
	}
	if _, err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}
