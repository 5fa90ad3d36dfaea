package relay

import (
	"errors"
	"testing"
	"time"
)

// A process that is woken again must not send what it held when it was stopped: its successor has sent it long ago.
func TestFrozenProcessSendsNothingBeforeItsSessionIsOver(t *testing.T) {
	p := newPulse()
	p.beats.Store(true)
	var left error
	dropped := false
	over := p.during(func(err error) { left = err }, func() {
		if p.fence() == nil {
			t.Error("what is dropped could still be sent")
		}
		dropped = true
	})
	if err := p.fence(); err != nil {
		t.Fatalf("a running process: %v", err)
	}
	p.started = p.started.Add(-2 * frozenAfter) // it is that much later now
	if err := p.fence(); !errors.Is(err, errFrozen) {
		t.Fatalf("woken, before the first beat: %v", err)
	}
	p.beat()
	if !dropped || !errors.Is(left, errFrozen) {
		t.Fatalf("dropped %v, left with %v", dropped, left)
	}
	if err := p.fence(); !errors.Is(err, errFrozen) {
		t.Fatalf("woken, its session not over: %v", err)
	}
	over()
	if err := p.fence(); err != nil {
		t.Fatalf("after the session: %v", err)
	}
}

func TestStandbyThatWasFrozenIsReadyAtOnce(t *testing.T) {
	p := newPulse()
	p.started = p.started.Add(-time.Hour)
	p.beat()
	if err := p.fence(); err != nil {
		t.Fatal(err)
	}
}
