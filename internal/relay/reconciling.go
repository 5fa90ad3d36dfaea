package relay

import (
	"context"
	"time"

	"github.com/tidegate-cdc/tidegate/publish"
)

// reconciling is the loop's answer to outcomes that nobody knows: a connection that broke, or an answer that never
// came. Before anything is sent again the streams are read, because the broker's own memory of ids may be shorter than
// the outage.
type reconciling struct {
	reading   bool
	readAfter time.Time // after a failed reading
}

const (
	reconcileRetry   = 250 * time.Millisecond
	reconcileTimeout = 30 * time.Second
)

// startReconcile reads what the streams hold of the uncertain rows, when there are some and NATS is there.
func (s *session) startReconcile(now time.Time) {
	reason, uncertain := s.lanes.Uncertain()
	if !uncertain || s.reading || now.Before(s.readAfter) || !s.bridge.link.state().up {
		return
	}
	type question struct {
		stream         *publish.Stream
		highest, after publish.Mark
	}
	var questions []question
	for _, st := range s.streams {
		after, _ := s.lanes.Unresolved(st)
		questions = append(questions, question{st, s.lanes.Highest(st), after})
	}
	s.reading = true
	drops := s.drops
	s.spawn(func(ctx context.Context) {
		bounded, cancel := context.WithTimeout(ctx, reconcileTimeout)
		defer cancel()
		var tails []*publish.Tail
		var err error
		for _, q := range questions {
			// A stream that was made again, or emptied, must not pass for one that stored nothing.
			err = s.twice(bounded, func(ctx context.Context) error { return s.bridge.conn.VerifyMark(ctx, q.stream, q.highest) })
			if err != nil {
				break
			}
			var tail *publish.Tail
			if tail, err = s.bridge.conn.ReadTail(bounded, q.stream, q.after.Seq, s.bridge.cfg.Source.Name); err != nil {
				break
			}
			tails = append(tails, tail)
		}
		s.post(ctx, func(now time.Time) error { return s.reconciled(reason, drops, tails, fromNATS(err), now) })
	})
}

// reconciled completes what is stored and lets the rest be sent again.
func (s *session) reconciled(reason string, drops uint64, tails []*publish.Tail, err error, now time.Time) error {
	s.reading = false
	if err != nil {
		if fatal := failure(err); fatal != nil {
			return err
		}
		s.readAfter = now.Add(reconcileRetry)
		s.log.Warn("cannot read what the streams hold; trying again", "error", err)
		return nil
	}
	if drops != s.bridge.link.state().drops {
		return nil // the connection broke again since: what was read may be old
	}
	rows := s.lanes.Resolve(tails, now)
	for _, r := range rows {
		s.stored(r, now)
	}
	s.log.Info("read the streams after an uncertain outcome", "reason", reason, "found", len(rows))
	return nil
}
