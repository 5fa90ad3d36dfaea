package parking_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/parking"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestRowComesBackAsItWas(t *testing.T) {
	s, _ := store(t)
	want := row(3, "1", parking.StateRetry)
	want.Columns = []event.Column{{Name: "id", TypeOID: 20}, {Name: "größe", TypeOID: 4294967295}, {Name: "empty", TypeOID: 25}, {Name: "bytes", TypeOID: 25}}
	want.Values = decoder.Tuple{
		{Kind: decoder.ValueText, Data: []byte("3")},
		{Kind: decoder.ValueNull},
		{Kind: decoder.ValueText, Data: []byte{}},
		{Kind: decoder.ValueText, Data: []byte("\xff\xfe\x80 not UTF-8")},
	}
	want.RowID, want.AggregateType, want.AggregateID = []byte("\xe9t\xe9"), []byte{}, nil
	want.CommittedAt = time.Date(2026, 5, 1, 12, 0, 0, 123456000, time.UTC)
	want.XID, want.Attempts, want.Stream, want.From = 4294967295, 2, "OUTBOX", 1<<40
	park(t, s, want)
	got := releasable(t, s, 3, true, true)
	if len(got) != 1 {
		t.Fatalf("got %d rows", len(got))
	}
	if got[0].ID == 0 || got[0].ParkedAt.IsZero() || got[0].ChangedAt.IsZero() || !got[0].CommittedAt.Equal(want.CommittedAt) {
		t.Errorf("number or times: %+v", got[0])
	}
	want.ID, want.ParkedAt, want.ChangedAt, want.CommittedAt = got[0].ID, got[0].ParkedAt, got[0].ChangedAt, got[0].CommittedAt
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("got  %+v\nwant %+v", got[0], want)
	}
}

func TestRowParkedByReferenceHasNoColumns(t *testing.T) {
	s, _ := store(t)
	large := row(1, "", parking.StateRetry)
	large.Columns, large.Values, large.Aggregate, large.RowID, large.AggregateID = nil, nil, nil, nil, nil
	park(t, s, large)
	got := releasable(t, s, 1, false, false)
	if len(got) != 1 || !got[0].ByReference() || got[0].Values != nil || len(got[0].Aggregate) != 0 || got[0].RowID != nil {
		t.Errorf("got %+v", got)
	}
	if none, err := s.Load(t.Context()); err != nil || len(none) != 0 {
		t.Errorf("aggregates %v, %v", none, err)
	}
}

// The answer to a commit can be lost: what was applied is found, and is on disk.
func TestParkingAgainAddsNothing(t *testing.T) {
	s, url := store(t)
	first, second := row(1, "1", parking.StateParked), row(2, "1", parking.StateHeld)
	park(t, s, first)
	testkit.Exec(t, url, "UPDATE tidegate.parked SET state = 'retry'")
	before := testkit.Value[string](t, url, "SELECT pg_current_wal_insert_lsn()::text")
	inserted, lsn, err := open(t, url, 2).Park(t.Context(), []parking.Row{first, second, second})
	must(t, err)
	if fmt.Sprint(inserted) != "[false true false]" {
		t.Errorf("inserted %v", inserted)
	}
	if got := list(t, url); got != "row-1:retry row-2:held" {
		t.Errorf("rows %s", got)
	}
	if was, err := decoder.ParseLSN(before); err != nil || lsn <= was {
		t.Errorf("LSN %s, before %s, %v", lsn, before, err)
	}
	inserted, again, err := s.Park(t.Context(), []parking.Row{first, second})
	must(t, err)
	if inserted[0] || inserted[1] || again <= lsn {
		t.Errorf("inserted %v, LSN %s after %s: nothing was written that a standby could be waited for with", inserted, again, lsn)
	}
	if got, _, err := s.Park(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("no rows: %v, %v", got, err)
	}
}

func TestParkedRowIsDurableWhateverTheRoleSays(t *testing.T) {
	url := database(t)
	testkit.Exec(t, url, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$")
	s := open(t, url, 10)
	_, lsn, err := s.Park(t.Context(), []parking.Row{row(1, "1", parking.StateParked)})
	must(t, err)
	if got := testkit.Value[bool](t, url, "SELECT $1::pg_lsn <= pg_current_wal_flush_lsn()", lsn.String()); !got || lsn == 0 {
		t.Errorf("LSN %s is not flushed", lsn)
	}
}

func TestTooManyRowsAreRefusedWhole(t *testing.T) {
	_, url := store(t)
	s := open(t, url, 3)
	park(t, s, row(1, "1", parking.StateParked), row(2, "1", parking.StateHeld))
	_, _, err := s.Park(t.Context(), []parking.Row{row(2, "1", parking.StateHeld), row(3, "1", parking.StateHeld), row(4, "1", parking.StateHeld)})
	var full *parking.FullError
	if !errors.As(err, &full) || full.Rows != 4 || full.Max != 3 || !strings.Contains(full.Hint(), "park.max_rows") {
		t.Fatalf("got %v", err)
	}
	if got := list(t, url); got != "row-1:parked row-2:held" {
		t.Errorf("rows %s", got)
	}
	park(t, s, row(3, "1", parking.StateHeld))
	// What is there does not count again, also when the limit was lowered; what is resolved does not count at all.
	if _, _, err := open(t, url, 1).Park(t.Context(), []parking.Row{row(1, "1", parking.StateParked)}); err != nil {
		t.Error(err)
	}
	testkit.Exec(t, url, "UPDATE tidegate.parked SET state = 'discarded' WHERE state = 'parked'")
	park(t, s, row(4, "1", parking.StateHeld))
}

func TestHeldRowsWaitForTheParkedRowBeforeThem(t *testing.T) {
	s, url := store(t)
	park(t, s,
		row(1, "a", parking.StateHeld), row(2, "a", parking.StateParked), row(3, "a", parking.StateHeld),
		row(4, "b", parking.StateParked), row(5, "b", parking.StateHeld), row(6, "c", parking.StateHeld))
	if got := names(releasable(t, s, 9, true, false)); got != "row-1:held row-6:held" {
		t.Errorf("with two parked: %s", got)
	}
	testkit.Exec(t, url, "UPDATE tidegate.parked SET state = 'retry' WHERE row_id = 'row-2'")
	if got := names(releasable(t, s, 9, true, false)); got != "row-1:held row-2:retry row-3:held row-6:held" {
		t.Errorf("with one to be tried again: %s", got)
	}
	if got := names(releasable(t, s, 2, true, false)); got != "row-1:held row-2:retry" {
		t.Errorf("up to the second: %s", got)
	}
	limited, err := s.Releasable(t.Context(), at(9), true, false, 3)
	must(t, err)
	if got := names(limited); got != "row-1:held row-2:retry row-3:held" {
		t.Errorf("the first three: %s", got)
	}
}

func TestRowsFromTheTableComeFirstAndOnlyOnceCopied(t *testing.T) {
	s, _ := store(t)
	park(t, s, row(1, "a", parking.StateHeld), fromTable(-1, "a", parking.StateHeld), fromTable(-20, "a", parking.StateHeld), fromTable(-3, "b", parking.StateParked),
		row(2, "b", parking.StateHeld))
	if got := names(releasable(t, s, 9, true, false)); got != "old-20:held old-1:held row-1:held" {
		t.Errorf("copied: %s", got)
	}
	if got := names(releasable(t, s, 9, false, false)); got != "row-1:held" {
		t.Errorf("not copied: %s", got)
	}
	none, err := s.Releasable(t.Context(), "", true, false, 10)
	must(t, err)
	if got := names(none); got != "old-20:held old-1:held" {
		t.Errorf("nothing received yet: %s", got)
	}
}

func TestSkipLetsTheOperatorsRowsPastParkedOnes(t *testing.T) {
	s, _ := store(t)
	park(t, s, row(1, "a", parking.StateParked), row(2, "a", parking.StateRetry), row(3, "a", parking.StateReleasing), row(4, "a", parking.StateDiscard),
		row(5, "a", parking.StateHeld))
	if got := names(releasable(t, s, 9, true, true)); got != "row-2:retry row-3:releasing row-4:discard" {
		t.Errorf("skip: %s", got)
	}
	if got := names(releasable(t, s, 9, true, false)); got != "row-4:discard" {
		t.Errorf("hold: %s", got)
	}
}

func TestRowOfAnUnknownAggregateHoldsNothingUp(t *testing.T) {
	s, _ := store(t)
	first, second := row(1, "", parking.StateParked), row(2, "", parking.StateRetry)
	first.Aggregate, second.Aggregate = nil, nil
	park(t, s, first, second)
	if got := names(releasable(t, s, 9, true, false)); got != "row-2:retry" {
		t.Errorf("got %s", got)
	}
}

func TestLargeRowsAreReleasedFewAtATime(t *testing.T) {
	s, _ := store(t)
	for n := range 4 {
		r := row(n, "a", parking.StateRetry)
		r.Values[0].Data = []byte(strings.Repeat("x", 3<<20))
		park(t, s, r)
	}
	got := releasable(t, s, 9, true, false)
	if names(got) != "row-0:retry row-1:retry" {
		t.Errorf("got %s", names(got))
	}
	must(t, s.Released(t.Context(), ids(got)))
	if got := names(releasable(t, s, 9, true, false)); got != "row-2:retry row-3:retry" {
		t.Errorf("then %s", got)
	}
}

// Every change is made twice: the answer to the first may have been lost.
func TestEveryChangeCanBeRepeated(t *testing.T) {
	s, url := store(t)
	for _, tt := range []struct {
		name   string
		state  parking.State
		change func(*parking.Store, []int64) error
		want   string
	}{
		{"releasing, held", parking.StateHeld, releasing, "row-1:releasing row-2:releasing"},
		{"releasing, retry", parking.StateRetry, releasing, "row-1:releasing row-2:releasing"},
		{"released", parking.StateReleasing, func(s *parking.Store, ids []int64) error { return s.Released(t.Context(), ids) }, ""},
		{"repark", parking.StateReleasing, func(s *parking.Store, ids []int64) error { return s.Repark(t.Context(), ids[0], "again") }, "row-1:parked row-2:releasing"},
		{"repark before it was tried", parking.StateRetry, func(s *parking.Store, ids []int64) error { return s.Repark(t.Context(), ids[0], "again") }, "row-1:parked row-2:retry"},
		{"discarded", parking.StateDiscard, discarded, "row-1:discarded row-2:discarded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.Exec(t, url, "TRUNCATE tidegate.parked")
			park(t, s, row(1, "a", tt.state), row(2, "b", tt.state))
			rows := releasable(t, s, 9, true, false)
			for range 2 {
				must(t, tt.change(s, ids(rows)))
				if got := list(t, url); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			}
			if n := testkit.Value[int](t, url, "SELECT coalesce(max(attempts), 0) FROM tidegate.parked"); n > 1 {
				t.Errorf("%d attempts were counted", n)
			}
		})
	}
}

func releasing(s *parking.Store, ids []int64) error {
	return s.Releasing(background(), ids, "OUTBOX", 7)
}

func discarded(s *parking.Store, ids []int64) error { return s.Discarded(background(), ids) }

func TestWishThatCameInBetweenIsNotOverrun(t *testing.T) {
	s, url := store(t)
	park(t, s, row(1, "a", parking.StateRetry), row(2, "b", parking.StateRetry))
	rows := releasable(t, s, 9, true, false)
	testkit.Exec(t, url, "UPDATE tidegate.parked SET state = 'discard' WHERE row_id = 'row-2'")
	var changed *parking.ChangedError
	if err := releasing(s, ids(rows)); !errors.As(err, &changed) {
		t.Errorf("releasing: %v", err)
	}
	must(t, s.Repark(t.Context(), rows[1].ID, "again"))
	if got := list(t, url); got != "row-1:retry row-2:discard" {
		t.Errorf("after releasing: %s", got)
	}
	testkit.Exec(t, url, "UPDATE tidegate.parked SET state = CASE row_id WHEN 'row-2' THEN 'retry' ELSE 'discard' END")
	if err := discarded(s, ids(rows)); !errors.As(err, &changed) {
		t.Errorf("discarded: %v", err)
	}
	if got := list(t, url); got != "row-1:discard row-2:retry" {
		t.Errorf("after discarding: %s", got)
	}
}

func TestLowestSequenceToLookAfterIsKept(t *testing.T) {
	s, url := store(t)
	park(t, s, row(1, "a", parking.StateHeld))
	rows := releasable(t, s, 9, true, false)
	for _, step := range []struct {
		stream string
		from   uint64
		want   string
	}{{"OUTBOX", 50, "OUTBOX 50"}, {"OUTBOX", 80, "OUTBOX 50"}, {"OUTBOX", 20, "OUTBOX 20"}, {"OTHER", 90, "OTHER 90"}, {"OTHER", 0, "OTHER 0"}} {
		must(t, s.Releasing(t.Context(), ids(rows), step.stream, step.from))
		if got := testkit.Value[string](t, url, "SELECT stream || ' ' || from_seq FROM tidegate.parked"); got != step.want {
			t.Errorf("after %s %d: %s, want %s", step.stream, step.from, got, step.want)
		}
	}
}

func TestAggregatesAndCountsLeaveOutWhatIsResolved(t *testing.T) {
	s, url := store(t)
	park(t, s, row(1, "a", parking.StateParked), row(2, "a", parking.StateHeld), row(3, "a", parking.StateDiscarded),
		row(4, "b", parking.StateRetry), row(5, "b", parking.StateReleasing), row(6, "b", parking.StateDiscard), row(7, "c", parking.StateDiscarded))
	testkit.Exec(t, url, "INSERT INTO tidegate.parked (source, position, table_name, aggregate, state) VALUES ('other', 'x', 'public.outbox', 'z', 'parked')")
	loaded, err := s.Load(t.Context())
	must(t, err)
	got := map[string]int{}
	for _, a := range loaded {
		got[string(a.Key)] = a.Rows
	}
	want := map[string]int{string(row(0, "a", "").Aggregate): 2, string(row(0, "b", "").Aggregate): 3}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("aggregates %v, want %v", got, want)
	}
	testkit.Exec(t, url, "UPDATE tidegate.parked SET parked_at = CASE row_id WHEN 'row-4' THEN '2026-01-02 00:00Z'::timestamptz WHEN 'row-7' THEN '2026-01-01 00:00Z' ELSE parked_at END")
	stats, err := s.Stats(t.Context())
	must(t, err)
	if stats.Rows != 5 || stats.Parked != 1 || stats.Held != 1 || !stats.Oldest.Equal(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("stats %+v", stats)
	}
	testkit.Exec(t, url, "DELETE FROM tidegate.parked")
	if stats, err := s.Stats(t.Context()); err != nil || stats != (parking.Stats{}) {
		t.Errorf("empty: %+v, %v", stats, err)
	}
}
