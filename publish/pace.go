package publish

import (
	"math/rand/v2"
	"time"
)

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 3 * time.Second
)

// pace says how much may be on its way. After a failure it is one message, not before a jittered delay that doubles
// from failure to failure; each success of a message sent since then widens the window by one, so that it doubles by
// the round trip up to the whole.
type pace struct {
	window    int
	epoch     uint32 // goes up with every failure that is news
	backoff   time.Duration
	notBefore time.Time

	reason string // of the failure, until something succeeds
	since  time.Time
}

// failed takes note that r was refused, or its outcome lost. What was sent before the last failure teaches nothing new.
func (p *pace) failed(r *Row, reason string, now time.Time) {
	if r.epoch == p.epoch {
		p.slow(reason, now)
	}
}

func (p *pace) slow(reason string, now time.Time) {
	p.epoch++
	p.window = 1
	p.backoff = min(max(2*p.backoff, minBackoff), maxBackoff)
	p.notBefore = now.Add(p.backoff/2 + rand.N(p.backoff/2))
	if p.reason == "" {
		p.since = now
	}
	p.reason = reason
}

func (p *pace) succeeded(r *Row, limit int) {
	if r.epoch != p.epoch || p.window >= limit && p.reason == "" {
		return
	}
	p.window = min(p.window+1, limit)
	p.backoff, p.notBefore = 0, time.Time{}
	p.reason, p.since = "", time.Time{}
}

// pump sends as long as something may be sent.
func (l *Lanes) pump(now time.Time) {
	for l.uncertain == "" && l.broken == nil {
		la := l.pick(now)
		if la == nil {
			return
		}
		if la.ready {
			l.ready.remove(la)
		} else {
			l.retry.remove(la)
		}
		l.send(la.head, now)
	}
}

// pick finds the lane whose head goes next: what was tried before goes before what was not.
func (l *Lanes) pick(now time.Time) *lane {
	if l.flight.rows >= l.pace.window || now.Before(l.pace.notBefore) {
		return nil
	}
	la := l.retry.first
	if la != nil && l.stale(la.head, now) {
		l.doubt(ReasonStale)
		return nil
	}
	if la == nil {
		la = l.admitted()
	}
	if la == nil || l.flight.rows > 0 && l.flight.bytes+la.head.Size > l.opts.MaxInFlightBytes {
		return nil
	}
	return la
}

// admitted gives the lane whose head may be sent for the first time without a restart having too much to read. The row
// that the checkpoint waits for is let through where any other has to wait: nothing else would bring the checkpoint on.
func (l *Lanes) admitted() *lane {
	if first := l.ready.first(); first == nil || l.ledger.roomy() {
		return first
	}
	r := l.ledger.oldest()
	switch {
	case r != nil && r.lane == nil:
		return l.lateOne()
	case r != nil && r.lane.ready && l.ledger.roomForOldest():
		return r.lane
	}
	return nil
}

// lateOne gives a lane whose head is Late. The oldest row is set aside and may wait for just such rows: it needs no room
// itself, so they get what is kept for it.
func (l *Lanes) lateOne() *lane {
	if l.ledger.uncovered >= l.ledger.hard {
		return nil
	}
	for _, la := range l.ready.lanes {
		if la.head.Late {
			return la.lane
		}
	}
	return nil
}

func (l *Lanes) send(r *Row, now time.Time) {
	l.waiting--
	if r.Sent.IsZero() {
		r.Sent = now
		l.ledger.sent(r)
	}
	r.epoch = l.pace.epoch
	reply := l.flight.add(r, now)
	l.stats.Sent++
	err := l.sender.PublishMsg(l.out.fill(&r.Msg, reply))
	if err == nil {
		return
	}
	class, reason := Classify(err)
	if class == Transient {
		l.doubt(reason)
		return
	}
	l.hold(r)
	l.broken = &SendError{Row: r, Err: err}
}
