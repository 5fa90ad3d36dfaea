package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/publish"
)

// loop is the owner of everything that orders and counts. It ends with the reason for which the session ends; ctx's
// own end is a clean stop.
func (s *session) loop(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		var err error
		now := time.Now()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-s.acks.C:
			err = s.takeAcks(m, now)
		case <-s.routed.ready:
			s.admit(now)
		case r := <-s.results:
			err = r(now)
		case <-s.bridge.link.changed:
			err = s.linkChanged(now)
		case <-ticker.C:
			s.observe(now)
		}
		if err == nil {
			err = s.turn(now)
		}
		if err != nil {
			return err
		}
	}
}

// turn does what may have become possible or due.
func (s *session) turn(now time.Time) error {
	if err := s.lanes.Tick(now); err != nil {
		if err := s.notSent(err, now); err != nil {
			return err
		}
	}
	s.advance()
	s.pace()
	s.confirm()
	s.startCheckpoint(now)
	s.startReconcile(now)
	s.startParking(now)
	return s.poisoned()
}

// notSent deals with a message that the client would not send.
func (s *session) notSent(err error, now time.Time) error {
	judged := unsent(err)
	var poison *poisonError
	if s.keeper == nil || !errors.As(judged, &poison) {
		return judged
	}
	poison.row.poison = poison.err
	s.putAside(poison.row, now)
	return nil
}

// unsent judges a message that the client would not send: what no server takes is the row's fault.
func unsent(err error) error {
	var send *publish.SendError
	if class, _ := publish.Classify(err); class == publish.Poison && errors.As(err, &send) {
		return &poisonError{rowOf(send.Row), err}
	}
	return fromNATS(err)
}

// poisoned ends the session at a poison row, once everything before it is finished.
func (s *session) poisoned() error {
	if s.poison == nil {
		return nil
	}
	first := s.poison
	if oldest := s.tracker.oldest(); oldest != nil {
		first = rowOf(oldest)
	}
	if first.poison == nil {
		return nil
	}
	return &poisonError{first, first.poison}
}

// takeAcks deals with the PubAcks that have come, a bounded number at once.
func (s *session) takeAcks(m *nats.Msg, now time.Time) error {
	for more := ackBatch; ; more-- {
		row, err := s.lanes.Ack(m, now)
		if err != nil {
			if err := s.refused(row, fromNATS(err), now); err != nil {
				return err
			}
		} else if row != nil {
			s.stored(row, now)
		}
		if more == 0 {
			return nil
		}
		select {
		case m = <-s.acks.C:
		default:
			return nil
		}
	}
}

// ackBatch bounds how long the loop is away from everything else.
const ackBatch = 1024

func (s *session) stored(r *publish.Row, now time.Time) {
	m := s.bridge.metrics
	m.publish.Observe(now.Sub(r.Sent).Seconds())
	own := rowOf(r)
	if !own.event.CommittedAt.IsZero() && own.parked == 0 {
		m.commitToAck.Observe(max(0, now.Sub(own.event.CommittedAt).Seconds()))
	}
	m.eventType(own.event.EventType).Inc()
	if r.Duplicate {
		m.duplicates.Inc()
	}
	if own.parked != 0 {
		s.released(own, now)
	}
}

// refused deals with an answer that is no storing: a duplicate of something this session did not send is looked at, a
// row that the stream can never take is poison, and the rest ends the session.
func (s *session) refused(r *publish.Row, err error, now time.Time) error {
	var duplicate *publish.DuplicateError
	if errors.As(err, &duplicate) {
		s.verifyDuplicate(duplicate)
		return nil
	}
	if r == nil {
		return err
	}
	if class, _ := publish.Classify(err); class != publish.Poison {
		return fmt.Errorf("publish to %s: %w", r.Msg.Subject, err)
	}
	own := rowOf(r)
	own.poison = err
	if s.keeper != nil {
		s.putAside(own, now)
		return nil
	}
	if s.poison == nil {
		s.poison = own
		s.log.Error("a row was refused; finishing what is before it", "error", err)
	}
	return nil
}

// verifyDuplicate looks at the message that the stream took for the same: only the same row completes the row.
func (s *session) verifyDuplicate(d *publish.DuplicateError) {
	s.spawn(func(ctx context.Context) {
		same, err := s.bridge.conn.VerifyDuplicate(ctx, d.Row.Stream, d.Seq, d.Row)
		for class, _ := publish.Classify(err); err != nil && class == publish.Transient && ctx.Err() == nil; class, _ = publish.Classify(err) {
			select {
			case <-ctx.Done():
			case <-time.After(reconcileRetry):
			}
			same, err = s.bridge.conn.VerifyDuplicate(ctx, d.Row.Stream, d.Seq, d.Row)
		}
		s.post(ctx, func(now time.Time) error { return s.duplicateVerified(d, same, err, now) })
	})
}

func (s *session) duplicateVerified(d *publish.DuplicateError, same bool, err error, now time.Time) error {
	switch {
	case err != nil:
		return fromNATS(err)
	case !same:
		return &exit.Error{
			Code: exit.NATS,
			Err:  fmt.Errorf("publish %s: the stream %s already holds another event with this id at sequence %d", d.Row.Msg.ID, d.Row.Stream.Name, d.Seq),
			Hint: "ids must be unique in a table for ever; two sources into one stream need two source.name",
		}
	}
	s.lanes.Confirm(d.Row, d.Seq, now)
	s.stored(d.Row, now)
	return nil
}

// admit takes routed rows and marks in, in order. A poison row ends the intake: nothing behind it is begun.
func (s *session) admit(now time.Time) {
	items := s.routed.take(s.spare)
	s.spare = items
	for _, it := range items {
		switch {
		case s.poison != nil:
			return
		case it.row == nil:
			s.tracker.addMark(it.mark, it.end)
		case it.row.parked != 0:
			s.readmit(it.row, now)
		case it.row.pub.Done:
			s.lanes.Skip(it.row.pub.Stream, it.row.pub.Position)
			s.tracker.addRow(&it.row.pub, it.row.event.CommittedAt)
		case s.setsAside(it.row):
			s.setAside(it.row, now)
		case it.row.poison != nil:
			s.poison = it.row
			s.log.Error("a row cannot be published; finishing what is before it", "error", it.row.poison)
		default:
			s.tracker.addRow(&it.row.pub, it.row.event.CommittedAt)
			s.lanes.Add(&it.row.pub, now)
		}
	}
}

// advance moves the tracker over what is finished and gives its memory back.
func (s *session) advance() {
	s.tracker.advance(func(r *publish.Row) {
		s.budget.finish(r.Size)
		s.bridge.pool.put(rowOf(r))
	})
}

// enoughReady is how many aggregates wait for room before reading on would only fill memory.
const enoughReady = 512

// pace lets the connection rest while more rows are ready than the window will soon take. Rows that wait behind their
// own aggregate do not count: one hot aggregate never stops the others.
func (s *session) pace() {
	window := min(s.bridge.cfg.Publish.MaxInFlight, enoughReady)
	switch ready := s.lanes.Ready(); {
	case ready >= window:
		s.source.enough.Store(true)
	case ready < window/2 && s.source.enough.Swap(false):
		s.stream.Wake()
	}
}

// linkChanged deals with a lost or regained NATS connection: what was in flight then has an unknown outcome.
func (s *session) linkChanged(now time.Time) error {
	l := s.bridge.link.state()
	if l.fatal != nil {
		return fromNATS(l.fatal)
	}
	if l.drops != s.drops {
		s.drops = l.drops
		s.lanes.Disconnected(now)
		s.bridge.metrics.reconnects.WithLabelValues(string(sideNATS), "disconnected").Inc()
	}
	if l.up {
		s.bridge.health.Clear(problemNATS)
	} else {
		s.bridge.health.Report(problemNATS, "NATS is not connected: "+l.why)
	}
	return nil
}

// recheckAfter is how long nobody may answer at the streams' subjects, as in an election, before we ask why, and ask
// again.
const recheckAfter = time.Second

// recheck asks whether the streams still take what is published: one that was narrowed or deleted does not answer.
func (s *session) recheck() {
	s.spawn(func(ctx context.Context) {
		for _, st := range s.streams {
			err := fromNATS(st.Recheck(ctx))
			if err != nil && failure(err) != nil {
				s.post(ctx, func(time.Time) error { return err })
			}
		}
		s.rechecking.Store(false)
	})
}

// observe keeps metrics and health up to date.
func (s *session) observe(now time.Time) {
	m, h := s.bridge.metrics, s.bridge.health
	h.Beat()
	p := s.stream.Progress()
	m.confirmed.Set(float64(p.Confirmed))
	m.received.Set(float64(p.Received))
	m.statuses.set(p.Statuses)
	m.inFlight.Set(float64(s.tracker.rows))
	m.inFlightB.Set(float64(s.budget.used.Load()))
	m.retried(s.lanes.Stats().Retries)
	reason, since, probing := s.lanes.Probing()
	doubt, uncertain := s.lanes.Uncertain()
	switch {
	case uncertain:
		h.Report(problemPublish, "what became of messages is not known ("+doubt+"), and the streams cannot be read")
	case probing:
		h.Report(problemPublish, "the stream does not take messages: "+reason)
	default:
		h.Clear(problemPublish)
	}
	if probing && reason == publish.ReasonNoResponders && now.Sub(later(since, s.rechecked)) > recheckAfter && !s.rechecking.Swap(true) {
		s.rechecked = now
		s.recheck()
	}
	if s.bridge.lookup != nil {
		if why, waiting := s.bridge.lookup.Waiting(); waiting {
			h.Report(problemLookup, why)
		} else {
			h.Clear(problemLookup)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
