package versions_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/scene"
)

const patience = 30 * time.Second

func insert(t *testing.T, s *scene.Scene, n int) {
	t.Helper()
	testkit.Exec(t, s.URL, `INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
		SELECT 'order', (n % 3)::text, 'placed', '{"total": 1.10}' FROM generate_series(1, $1::int) n`, n)
}

// judge wants the stream to hold what was committed, once and in order.
func judge(t *testing.T, s *scene.Scene) {
	t.Helper()
	s.AwaitAll(t, patience)
	if report := s.Compare(t); report.Committed == 0 || !report.Clean() {
		t.Fatalf("the stream is not what was committed: %s", report)
	}
}

func lsn(t *testing.T, s *scene.Scene, query string) decoder.LSN {
	t.Helper()
	at, err := decoder.ParseLSN(testkit.Value[string](t, s.URL, query))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

const (
	confirmedFlush = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
	walEnd         = "SELECT pg_current_wal_insert_lsn()::text"
)

func TestMissingPublicationEndsTheBridgeWithNothingConfirmedBeyondIt(t *testing.T) {
	s := scene.New(t, scene.Options{})
	p := s.Start(t)
	insert(t, s, 10)
	s.AwaitAll(t, patience)
	testkit.Exec(t, s.URL, "DROP PUBLICATION tidegate")
	dropped := lsn(t, s, walEnd)
	insert(t, s, 10)
	if code := p.Wait(t, patience); code != exit.Drift {
		t.Fatalf("the bridge ended with %d, not %d", code, exit.Drift)
	}
	if !strings.Contains(p.Log(), "publication tidegate") {
		t.Error("the publication is not named")
	}
	if got := lsn(t, s, confirmedFlush); got > dropped {
		t.Errorf("%s is confirmed: rows behind %s were not sent", got, dropped)
	}
}

func TestLostSlotEndsTheBridgeAndSaysWhereTheGapBegins(t *testing.T) {
	s := scene.New(t, scene.Options{Postgres: []testkit.PGOption{testkit.Conf("max_slot_wal_keep_size", "1MB")}})
	p := s.Start(t)
	insert(t, s, 10)
	s.AwaitAll(t, patience)
	scene.Stop(t, p)
	confirmed := lsn(t, s, confirmedFlush)
	loseSlot(t, s.URL)
	p = s.Launch(t)
	if code := p.Wait(t, patience); code != exit.SlotLost {
		t.Fatalf("the bridge ended with %d, not %d", code, exit.SlotLost)
	}
	if !strings.Contains(p.Log(), confirmed.String()) {
		t.Errorf("the beginning of the gap, %s, is not named", confirmed)
	}
}

func TestFirstStartWaitsForOpenTransactionsAndLeavesNoSlotBehind(t *testing.T) {
	s := scene.New(t, scene.Options{})
	testkit.Exec(t, s.URL, "CREATE TABLE other (n int)")
	writer := testkit.Connect(t, s.URL)
	if _, err := writer.Exec(t.Context(), "BEGIN; INSERT INTO other VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	slots := func() int { return testkit.Value[int](t, s.URL, "SELECT count(*)::int FROM pg_replication_slots") }
	p := s.Launch(t)
	testkit.Eventually(t, patience, func() bool { return slots() == 1 }, "the bridge begins to make its slot")
	p.Signal(t, syscall.SIGTERM)
	if code := p.Wait(t, patience); code != exit.OK {
		t.Errorf("a bridge that waits ended with %d", code)
	}
	if slots() != 0 {
		t.Error("a slot was left behind")
	}
	p = s.Launch(t)
	testkit.Eventually(t, patience, func() bool { return slots() == 1 }, "the bridge begins to make its slot again")
	if _, err := writer.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	p.WaitLog(t, patience, `"msg":"streaming"`)
	insert(t, s, 10)
	judge(t, s)
	scene.Stop(t, p)
}

func TestShutdownIsNotHeldUpAndTheBridgeGoesOnBehindIt(t *testing.T) {
	s := scene.New(t, scene.Options{})
	p := s.Start(t)
	insert(t, s, 10)
	s.AwaitAll(t, patience)
	if took := s.PG.Stop(t, testkit.Fast); took >= 5*time.Second {
		t.Errorf("the shutdown took %s", took)
	}
	s.PG.Start(t)
	insert(t, s, 10)
	judge(t, s)
	scene.Stop(t, p)
	p = s.Start(t)
	insert(t, s, 10)
	judge(t, s)
	if n := p.Metric(t, "tidegate_skipped_stored_total"); n != 0 {
		t.Errorf("%v rows are sent again after a clean stop", n)
	}
	scene.Stop(t, p)
}
