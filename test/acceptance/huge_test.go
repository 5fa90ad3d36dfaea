package acceptance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// TestHugeTransactionNeedsNoMemory sends one transaction of a million rows (100,000 where ROUNDS is not set).
func TestHugeTransactionNeedsNoMemory(t *testing.T) {
	rows := 1_000_000
	if rounds(t, 0) == 0 {
		rows = 100_000
	}
	s := newScene(t, testkit.PlainBinary(t))
	p := s.start(t)
	testkit.Exec(t, s.url, `INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
		SELECT 'order', 'o' || (i % 10000), 'imported', jsonb_build_object('n', i, 'text', repeat('x', 200)) FROM generate_series(1, $1) i`, rows)
	began := time.Now()

	// Stoppable in the middle of it, and taken up again.
	testkit.Eventually(t, time.Minute, func() bool { return s.messages(t) > uint64(rows/10) }, "no progress")
	peak := p.PeakMemory(t)
	asked := time.Now()
	stop(t, p)
	t.Logf("stopped in the middle within %s", time.Since(asked).Round(time.Millisecond))
	p = s.start(t)

	s.settled(t, 4*time.Minute)
	t.Logf("%d rows in one transaction took %s", rows, time.Since(began).Round(100*time.Millisecond))
	end := testkit.Value[string](t, s.url, "SELECT pg_current_wal_lsn()::text")
	testkit.Eventually(t, 30*time.Second, func() bool {
		return testkit.Value[bool](t, s.url, "SELECT confirmed_flush_lsn >= $1::pg_lsn FROM pg_replication_slots WHERE slot_name = 'tidegate'", end)
	}, "the end of the transaction is not confirmed")
	peak = max(peak, p.PeakMemory(t))
	t.Logf("peak memory %d MiB", peak>>20)
	if peak >= 150<<20 {
		t.Errorf("peak memory is %d MiB", peak>>20)
	}
	stop(t, p)
	s.judge(t)
}
