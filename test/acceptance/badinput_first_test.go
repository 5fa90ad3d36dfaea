package acceptance_test

import (
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/load"
)

var (
	publishOlder = change{"TIDEGATE_SLOT_SNAPSHOT": "publish"}
	skipOlder    = change{"TIDEGATE_SLOT_SNAPSHOT": "skip"}
)

// TestFirstStartAsksAboutOlderRows: what becomes of rows that are older than the slot is never guessed.
func TestFirstStartAsksAboutOlderRows(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.insert(t, 5)
	s.refuses(t, nil, refusal{exit.Usage, []string{"first time", "public.outbox: 5"}, "slot.snapshot to publish"})
	made := testkit.Value[int](t, s.url, `SELECT (SELECT count(*) FROM pg_replication_slots WHERE slot_name = current_database())::int
		+ (SELECT count(*) FROM pg_publication)::int`)
	if made != 0 || s.messages(t) != 0 {
		t.Errorf("something was made or published without an answer: %d, %d messages", made, s.messages(t))
	}
	s.recovers(t, publishOlder)
	for _, m := range s.read(t, "OUTBOX") {
		if m.header("Tidegate-Late") != "initial" || m.header("Tidegate-Position") != "" {
			t.Errorf("message %d does not say that it is older than the slot: %v", m.Sequence, m.Header)
		}
	}
	s.insert(t, 2)
	s.recovers(t, nil) // the answer is needed once
}

func TestFirstStartSkipsOlderRows(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.insert(t, 5)
	p := s.startWith(t, skipOlder)
	s.insert(t, 3)
	testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) >= 3 }, "the newer rows are not stored")
	stop(t, p)
	report := s.compare(t)
	if report.Missing != 5 || report.Stored != 3 || report.Extra+report.Duplicate+report.OutOfOrder+report.Late != 0 {
		t.Fatalf("five rows are older than the slot, three newer: %v", report)
	}
}

// TestFirstStartPublishesOlderRowsUnderLoad: snapshot and stream fit without gap or overlap.
func TestFirstStartPublishesOlderRowsUnderLoad(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	w := load.Write(t, s.url, 300, 1)
	testkit.Eventually(t, 20*time.Second, func() bool { return s.rows(t) > 200 }, "nothing is written")
	older := s.rows(t)
	p := s.startWith(t, publishOlder)
	testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) > uint64(older)+200 }, "no progress")
	w.End()
	s.settled(t, 20*time.Second)
	stop(t, p)
	s.judge(t)
	late := s.compare(t).Late
	if late < older || late == s.rows(t) {
		t.Fatalf("%d rows were older than the slot at least, of %d; %d say so", older, s.rows(t), late)
	}
}

// TestKilledInitialPublishIsTakenUpWithoutDuplicates: each kill comes in the middle of it, and the next start later than
// the stream's duplicate window.
func TestKilledInitialPublishIsTakenUpWithoutDuplicates(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	const older = 20_000
	testkit.Exec(t, s.url, `INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
		SELECT 'order', 'o' || (i % 100), 'imported', to_jsonb(i) FROM generate_series(1, $1) i`, older)
	slow := change{"TIDEGATE_SLOT_SNAPSHOT": "publish", "TIDEGATE_PUBLISH_MAX_IN_FLIGHT": "1"}
	for round := range 2 {
		stored := s.messages(t)
		p := s.startWith(t, slow)
		testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) > stored+1000 }, "no progress in round %d", round+1)
		p.Kill(t)
		if n := s.messages(t); n >= older {
			t.Fatalf("all %d rows were published before the kill: the test has shown nothing", n)
		}
		s.insert(t, 2)
		pause(2500 * time.Millisecond)
	}
	p := s.startWith(t, publishOlder)
	s.insert(t, 2)
	s.settled(t, 30*time.Second)
	p.WaitLog(t, 20*time.Second, "published the rows older than the slot")
	s.insert(t, 2)
	s.settled(t, 20*time.Second)
	stop(t, p)
	s.judge(t)
	if n := s.messages(t); n != older+8 {
		t.Errorf("%d messages of %d rows", n, older+8)
	}
}

// TestOlderRowThatCannotBePublishedIsMendedInItsTable: the copy of older rows is taken up again, from the table.
func TestOlderRowThatCannotBePublishedIsMendedInItsTable(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.insert(t, 3)
	testkit.Exec(t, s.url, "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type) VALUES ($1, 'order', repeat('a', 5000), 'placed')", rollupID)
	s.insert(t, 3)
	want := refusal{exit.Unexpected, []string{"public.outbox", rollupID, "subject has 50", "read from its table"}, "corrected or deleted in its table"}
	s.refuses(t, publishOlder, want)
	s.insert(t, 2)
	s.refuses(t, nil, want) // the answer was given
	testkit.Exec(t, s.url, "UPDATE outbox SET aggregate_id = 'a' WHERE id = $1", rollupID)
	s.recovers(t, nil)
}
