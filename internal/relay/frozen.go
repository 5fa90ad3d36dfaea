package relay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// errFrozen ends a session in which this process did not run for a while: stopped by a signal, by a debugger, with its
// machine. PostgreSQL may have given the slot to another instance since, and what is still in our buffers may have been
// published by it, longer ago than the broker remembers ids.
var errFrozen = errors.New("this process did not run for a while; another instance may have taken over")

const (
	// frozenAfter is far below any duplicate window: what a shorter pause holds back is known as a duplicate there.
	frozenAfter = time.Second
	pulseEvery  = 100 * time.Millisecond
)

// pulse knows whether the process has been running. While it has not, nothing is written to NATS: not before the session
// of that time is over, and what it had left in the client's buffer dropped.
type pulse struct {
	started time.Time
	beats   atomic.Bool  // a process that only asks and answers has no pulse
	last    atomic.Int64 // since started
	frozen  atomic.Bool

	mu    sync.Mutex
	leave func(error) // ends the present session; nil: there is none
	drop  func()      // drops what is published and not written
}

func newPulse() *pulse { return &pulse{started: time.Now()} }

// fence is what each write to NATS has to pass.
func (p *pulse) fence() error {
	if p.frozen.Load() || p.beats.Load() && p.since() > frozenAfter {
		return errFrozen
	}
	return nil
}

func (p *pulse) since() time.Duration {
	return time.Since(p.started) - time.Duration(p.last.Load())
}

// watch beats until ctx ends.
func (p *pulse) watch(ctx context.Context) {
	p.beat()
	p.beats.Store(true)
	ticker := time.NewTicker(pulseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		p.beat()
	}
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leave != nil && p.since() > frozenAfter {
		p.frozen.Store(true)
		p.drop()
		p.leave(errFrozen)
	}
	p.last.Store(int64(time.Since(p.started)))
}

// during takes what ends the present session and what drops its messages, and gives what says that the session is over.
func (p *pulse) during(leave func(error), drop func()) (over func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave, p.drop = leave, drop
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leave = nil
		p.frozen.Store(false)
	}
}
