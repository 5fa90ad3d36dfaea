package admin

import (
	"testing"
	"time"
)

func health(grace time.Duration) (h *Health, pass func(time.Duration)) {
	h = NewHealth(grace)
	now := time.Unix(1000, 0)
	h.now = func() time.Time { return now }
	return h, func(d time.Duration) { now = now.Add(d) }
}

func TestReadinessForgivesAProblemForItsGrace(t *testing.T) {
	h, pass := health(30 * time.Second)
	if h.Readiness().Ready {
		t.Fatal("ready while starting")
	}
	h.SetRole(RoleActive, "")
	h.Report("nats", "gone")
	pass(29 * time.Second)
	h.Report("nats", "still gone")
	if !h.Readiness().Ready {
		t.Fatal("not ready within the grace period")
	}
	pass(time.Second)
	if r := h.Readiness(); r.Ready || len(r.Problems) != 1 || r.Problems[0].Why != "still gone" {
		t.Fatalf("after the grace period: %+v", r)
	}
	h.Clear("nats")
	if !h.Readiness().Ready {
		t.Fatal("not ready after the problem is over")
	}
}

func TestStandbyIsReady(t *testing.T) {
	h, _ := health(time.Second)
	h.SetRole(RoleStandby, "pid 7")
	if r := h.Readiness(); !r.Ready || r.Holder != "pid 7" {
		t.Fatalf("%+v", r)
	}
}

// A supervisor kills what is not alive: that mends a loop that hangs, and nothing else.
func TestOnlyALoopThatHangsIsNotAlive(t *testing.T) {
	h, pass := health(time.Second)
	pass(time.Hour)
	if !h.Alive() {
		t.Error("not alive before the first session")
	}
	h.SetRole(RoleActive, "")
	h.Beat()
	pass(stuckAfter - time.Second)
	if !h.Alive() {
		t.Error("not alive although the loop turned lately")
	}
	pass(time.Second)
	if h.Alive() {
		t.Error("alive although the loop hangs")
	}
	h.Beat()
	h.Rest()
	h.Report("session", "PostgreSQL is away")
	pass(time.Hour)
	if !h.Alive() {
		t.Error("not alive because PostgreSQL is away")
	}
}
