package acceptance_test

import (
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// patience is how long the bridge may hold up a shutdown of PostgreSQL.
const patience = 5 * time.Second

func TestFastShutdownIsNotHeldUp(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		s := newScene(t, testkit.Binary(t))
		p := s.start(t)
		s.shutdown(t)
		s.pg.Start(t)
		testkit.Exec(t, s.url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ('order', 'o', 'placed')")
		s.settled(t, 30*time.Second)
		stop(t, p)
		s.judge(t)
	})
	t.Run("under load", func(t *testing.T) {
		s := newScene(t, testkit.Binary(t))
		p := s.start(t)
		w := write(t, s.url, 500)
		testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) > 200 }, "no progress")
		s.shutdown(t)
		s.pg.Start(t)
		stored := s.messages(t)
		testkit.Eventually(t, 30*time.Second, func() bool { return s.messages(t) > stored+200 }, "no progress after the restart")
		w.end()
		s.settled(t, 30*time.Second)
		stop(t, p)
		s.judge(t)
	})
	t.Run("NATS stopped and rows pending", func(t *testing.T) {
		s := newScene(t, testkit.Binary(t))
		p := s.start(t)
		w := write(t, s.url, 500)
		testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) > 200 }, "no progress")
		s.nats.Stop(t)
		rows := s.rows(t)
		testkit.Eventually(t, 20*time.Second, func() bool { return s.rows(t) > rows+500 }, "no rows are pending")
		s.shutdown(t)
		s.pg.Start(t)
		s.nats.Start(t)
		w.end()
		s.settled(t, 40*time.Second)
		stop(t, p)
		s.judge(t)
	})
}

func (s *scene) shutdown(t *testing.T) {
	t.Helper()
	took := s.pg.Stop(t, testkit.Fast)
	t.Logf("pg_ctl stop -m fast took %s", took.Round(time.Millisecond))
	if took >= patience {
		t.Fatalf("the shutdown took %s", took)
	}
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

func TestCleanRestartDeliversNothingAgain(t *testing.T) {
	s := newScene(t, testkit.Binary(t))
	p := s.start(t)
	w := write(t, s.url, 300)
	for range 3 {
		stored := s.messages(t)
		testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) > stored+50 }, "no progress")
		stop(t, p)
		p = s.start(t)
	}
	w.end()
	s.settled(t, 30*time.Second)
	stop(t, p)
	stored := s.messages(t)
	p = s.start(t)
	testkit.Exec(t, s.url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ('order', 'last', 'placed')")
	testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) > stored }, "the last row does not arrive")
	if n := p.Metric(t, "tidegate_skipped_stored_total"); n != 0 {
		t.Errorf("after a clean stop PostgreSQL sent %v rows again", n)
	}
	stop(t, p)
	s.judge(t)
}

func TestStandbyIsReadyAndTakesOver(t *testing.T) {
	s := newScene(t, testkit.Binary(t))
	first := s.start(t)
	second := s.bin.Start(t, testkit.Call{Args: []string{"run"}, Config: s.config})
	second.WaitReady(t, 20*time.Second)
	if _, text := second.Get(t, "/readyz"); !contains(text, `"role":"standby"`) {
		t.Fatalf("the second instance is no standby: %s", text)
	}
	w := write(t, s.url, 300)
	testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) > 200 }, "no progress")
	first.Kill(t)
	second.WaitLog(t, 20*time.Second, `"msg":"streaming"`)
	stored := s.messages(t)
	testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) > stored+200 }, "no progress after the takeover")
	w.end()
	s.settled(t, 30*time.Second)
	stop(t, second)
	s.judge(t)
}
