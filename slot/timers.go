package slot

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
)

const (
	statusInterval = 10 * time.Second
	progressPause  = 100 * time.Millisecond // between statuses that only tell of progress
	writeTimeout   = 10 * time.Second
	silenceLimit   = 15 * time.Second
)

// past is a deadline that ends a call at once.
var past = time.Unix(1, 0)

// timers says when the session has something to do although nothing arrives.
type timers struct {
	interval time.Duration // between statuses
	limit    time.Duration // of the server's silence
	sent     time.Time     // last status
	last     time.Time     // last time the server was heard, or not listened to
	asked    time.Time     // when it was asked to answer; zero: it was not, or has been heard since
}

func (t *timers) start(now time.Time, walSenderTimeout time.Duration) {
	t.interval = statusInterval
	if walSenderTimeout > 0 {
		t.interval = min(statusInterval, walSenderTimeout/3)
	}
	t.heard(now)
}

func (t *timers) heard(now time.Time) { t.last, t.asked = now, time.Time{} }

// watch is when the silence is next looked at.
func (t *timers) watch() time.Time {
	if t.asked.IsZero() {
		return t.last.Add(t.limit / 2)
	}
	return t.asked.Add(t.limit / 2)
}

// signals is how other goroutines reach the one that owns the socket.
type signals struct {
	asked  atomic.Uint64 // the LSN to confirm
	dirty  atomic.Bool   // asked has moved since the last status
	kicked atomic.Bool   // a read is to be left
	wake   chan struct{} // a pause is to be left
	armed  time.Time     // the read deadline in force; zero: not known. Owned by Run.
}

// Confirm says that everything before lsn is durable. It is reported within a fraction of a second. Lower values than
// before are ignored; a value beyond the server's WAL ends Run with an error. Any goroutine may call it.
func (s *Stream) Confirm(lsn decoder.LSN) {
	for {
		old := s.signals.asked.Load()
		if uint64(lsn) <= old {
			return
		}
		if s.signals.asked.CompareAndSwap(old, uint64(lsn)) {
			break
		}
	}
	if !s.dirty.Swap(true) {
		s.interrupt()
	}
}

// Wake says that a full Handler may have room again. Any goroutine may call it.
func (s *Stream) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// interrupt makes Run look around. The flag is set before the deadline, and arm looks at it after setting its own: so
// the read is either not begun or ended.
func (s *Stream) interrupt() {
	s.Wake()
	s.kicked.Store(true)
	_ = s.conn.SetReadDeadline(past)
}

// interruptWhenDone interrupts once ctx is done, until the returned function has returned: no interrupt comes later,
// when the socket may be another's.
func (s *Stream) interruptWhenDone(ctx context.Context) (release func()) {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		s.interrupt()
	})
	return func() {
		if !stop() {
			<-interrupted
		}
	}
}

// arm sets the deadline of the next read, and reports whether to read at all.
func (g *signals) arm(conn net.Conn, due time.Time) bool {
	if g.kicked.Swap(false) {
		g.disarm()
		return false
	}
	if due.Equal(g.armed) {
		return true
	}
	_ = conn.SetReadDeadline(due)
	g.armed = due
	return !g.kicked.Load()
}

func (g *signals) disarm() { g.armed = time.Time{} }

// due is when tick has something to do.
func (s *Stream) due() time.Time {
	t := s.clock.sent.Add(s.clock.interval)
	if s.dirty.Load() {
		t = s.clock.sent.Add(progressPause)
	}
	if w := s.clock.watch(); w.Before(t) {
		return w
	}
	return t
}

// tick does what is due.
func (s *Stream) tick(ctx context.Context, now time.Time) error {
	if err := s.tickSilence(ctx, now); err != nil {
		return err
	}
	since := now.Sub(s.clock.sent)
	if since >= s.clock.interval {
		s.frames.shrink()
		return s.status(now, false)
	}
	if s.dirty.Load() && since >= progressPause {
		return s.status(now, false)
	}
	return nil
}

// tickSilence asks a silent server for a sign of life, and gives up when none comes although it has the time for it.
func (s *Stream) tickSilence(ctx context.Context, now time.Time) error {
	if now.Before(s.clock.watch()) {
		return nil
	}
	if s.clock.asked.IsZero() {
		s.clock.asked = now
		return s.status(now, true)
	}
	if s.busy(ctx) {
		s.clock.heard(now)
		return nil
	}
	return ErrSilent
}

// status reports the position.
func (s *Stream) status(now time.Time, reply bool) error {
	s.dirty.Store(false)
	if lsn := decoder.LSN(s.signals.asked.Load()); lsn != 0 {
		if _, err := s.pos.Confirm(lsn); err != nil {
			return err
		}
	}
	write, flush, apply := s.pos.Status()
	s.out = appendStatus(s.out[:0], write, flush, apply, now, reply)
	_ = s.conn.SetWriteDeadline(now.Add(writeTimeout))
	if _, err := s.conn.Write(s.out); err != nil {
		return fmt.Errorf("send status: %w", err)
	}
	s.clock.sent = now
	s.statuses.Add(1)
	return nil
}

// Progress is how far a session is.
type Progress struct {
	Received, Confirmed, WALEnd decoder.LSN
	Statuses                    uint64 // sent
}

// Progress tells how far the session is. Any goroutine may call it.
func (s *Stream) Progress() Progress {
	return Progress{
		Received: decoder.LSN(s.received.Load()), Confirmed: decoder.LSN(s.flushed.Load()),
		WALEnd: decoder.LSN(s.walEnd.Load()), Statuses: s.statuses.Load(),
	}
}

// publish makes the position visible to Progress.
func (s *Stream) publish() {
	write, flush, _ := s.pos.Status()
	s.received.Store(uint64(write))
	s.flushed.Store(uint64(flush))
	s.walEnd.Store(uint64(s.pos.End()))
}
