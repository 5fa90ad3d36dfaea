package acceptance_test

import (
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// patience is how long the bridge may hold up a shutdown of PostgreSQL.
const patience = 5 * time.Second

func TestFastShutdownOfAnIdleServerIsNotHeldUp(t *testing.T) {
	s := newScene(t, testkit.Binary(t))
	p := s.start(t)
	took := s.pg.Stop(t, testkit.Fast)
	t.Logf("pg_ctl stop -m fast took %s", took.Round(time.Millisecond))
	if took >= patience {
		t.Fatalf("the shutdown took %s", took)
	}
	s.pg.Start(t)
	testkit.Exec(t, s.url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ('order', 'o', 'placed')")
	s.settled(t, 30*time.Second)
	stop(t, p)
	s.judge(t)
}

func TestIdleOutboxNeverPinsWAL(t *testing.T) {
	s := newScene(t, testkit.Binary(t))
	p := s.start(t)
	other := s.pg.PlainDatabase(t)
	testkit.Exec(t, other, "CREATE TABLE noise (a text)")
	start := testkit.Value[int64](t, s.url, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")
	for written := int64(0); written < 200<<20; {
		testkit.Exec(t, other, "INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 20000)")
		written = testkit.Value[int64](t, s.url, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint") - start
	}
	retained := func() int64 {
		return testkit.Value[int64](t, s.url, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint FROM pg_replication_slots WHERE slot_name = 'tidegate'")
	}
	began := time.Now()
	testkit.Eventually(t, 45*time.Second, func() bool { return retained() < 1<<20 }, "%d bytes are retained", retained())
	t.Logf("retained WAL fell under 1 MB after %s", time.Since(began).Round(100*time.Millisecond))
	stop(t, p)
}
