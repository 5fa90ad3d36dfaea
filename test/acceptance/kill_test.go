package acceptance_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

const terminate = syscall.SIGTERM

// rounds gives how often a fault is repeated: a few times in `make test`, ROUNDS times in `make acceptance`.
func rounds(t *testing.T, short int) int {
	t.Helper()
	text := os.Getenv("ROUNDS")
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("ROUNDS=%q is no number", text)
	}
	return n
}

// outage is how long the bridge stays away: longer than the stream's duplicate window of 2 s.
func outage() time.Duration {
	if os.Getenv("ROUNDS") != "" {
		return 5 * time.Second
	}
	return 2500 * time.Millisecond
}

// pause lets the load go on for a while: the one thing that tests wait for by the clock.
func pause(d time.Duration) { <-time.After(d) }

func TestKilledBridgeLosesNothing(t *testing.T) {
	s := newScene(t, testkit.Binary(t))
	p := s.start(t)
	w := write(t, s.url, 300)
	for i := range rounds(t, 3) {
		stored := s.messages(t)
		testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) > stored+50 }, "no progress in round %d", i+1)
		p.Kill(t)
		pause(outage())
		p = s.start(t)
	}
	w.end()
	s.settled(t, 30*time.Second)
	stop(t, p)
	s.judge(t)
}

func TestPostgresCrashUnderALongTransactionLosesNothing(t *testing.T) {
	s := newScene(t, testkit.Binary(t))
	p := s.start(t)
	w := write(t, s.url, 300)
	for i := range rounds(t, 2) {
		// The open transaction holds restart_lsn back: everything since comes again, whatever was confirmed.
		long := testkit.Connect(t, s.url)
		if _, err := long.Exec(t.Context(), "BEGIN; INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ('long', 'l', 'never')"); err != nil {
			t.Fatal(err)
		}
		stored := s.messages(t)
		testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) > stored+200 }, "no progress in round %d", i+1)
		testkit.Exec(t, s.url, "CHECKPOINT")
		pause(outage())
		s.pg.Stop(t, testkit.Immediate)
		pause(outage())
		s.pg.Start(t)
	}
	testkit.Eventually(t, 30*time.Second, func() bool { return s.messages(t) > 0 && p.Running() }, "the bridge does not go on")
	stored := s.messages(t)
	testkit.Eventually(t, 30*time.Second, func() bool { return s.messages(t) > stored+50 }, "no progress after the last crash")
	w.end()
	s.settled(t, 30*time.Second)
	stop(t, p)
	s.judge(t)
}

func TestNothingIsConfirmedWhileNATSIsDown(t *testing.T) {
	s := newScene(t, testkit.Binary(t))
	p := s.start(t)
	w := write(t, s.url, 300)
	for range rounds(t, 1) {
		stored := s.messages(t)
		testkit.Eventually(t, 30*time.Second, func() bool { return s.messages(t) > stored+100 }, "no progress")
		s.nats.Kill9(t)
		pause(time.Second) // what was acknowledged before may still be confirmed
		before, rows := s.confirmed(t), s.rows(t)
		pause(outage())
		if after := s.confirmed(t); after != before {
			t.Fatalf("confirmed_flush_lsn went from %s to %s while NATS was down", before, after)
		}
		if s.rows(t) < rows+50 {
			t.Fatal("no rows were committed meanwhile: the test has shown nothing")
		}
		s.nats.Start(t)
	}
	stored := s.messages(t)
	testkit.Eventually(t, 30*time.Second, func() bool { return s.messages(t) > stored+100 }, "no progress after NATS came back")
	w.end()
	s.settled(t, 30*time.Second)
	testkit.Eventually(t, 20*time.Second, func() bool { return p.Running() && ready(t, p) }, "not ready after NATS came back")
	stop(t, p)
	s.judge(t)
}

func ready(t *testing.T, p *testkit.Process) bool {
	t.Helper()
	status, _ := p.Get(t, "/readyz")
	return status == 200
}
