package relay

import (
	"context"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/publish"
)

// checkpointing is the loop's part of the promise that NATS knows a position before PostgreSQL is told to forget it.
type checkpointing struct {
	saved     publish.Checkpoint // as it is in NATS
	savedUpto uint64             // the rows that it covers, as Lanes counts them
	savedAt   time.Time
	saving    bool
	notBefore time.Time // after a failed write
}

const (
	// checkpointEvery is how often progress is written at most, unless the window behind the last one fills.
	checkpointEvery = time.Second
	// checkpointIdle is how often an LSN that moved without rows is written.
	checkpointIdle = 10 * time.Second
	// checkpointRetry follows a failed write.
	checkpointRetry = 250 * time.Millisecond
	// checkpointTimeout bounds one write.
	checkpointTimeout = 5 * time.Second
)

// covered is one consistent state of tracker and lanes, on its way into the checkpoint.
type covered struct {
	point       publish.Checkpoint
	upto        uint64
	confirmable decoder.LSN
	newest      map[*publish.Stream]publish.Mark // the streams must still have these when it is written
}

// startCheckpoint writes the checkpoint when that is due, in the background: rows go on meanwhile.
func (s *session) startCheckpoint(now time.Time) {
	age := now.Sub(s.savedAt)
	if s.saving || s.doubted.Load() || now.Before(s.notBefore) || age < checkpointEvery && !s.lanes.CheckpointDue() || !s.bridge.link.state().up {
		return
	}
	c := s.cover(now)
	moved := c.upto != s.savedUpto || c.point.Phase != s.saved.Phase
	idle := c.confirmable > s.saved.Confirmable && (age >= checkpointIdle || s.tracker.ended > s.saved.Confirmable)
	if !moved && !idle {
		return
	}
	s.saving = true
	s.spawn(func(ctx context.Context) {
		bounded, cancel := context.WithTimeout(ctx, checkpointTimeout)
		defer cancel()
		err := s.save(bounded, &c)
		s.post(ctx, func(now time.Time) error { return s.checkpointWritten(c, err, now) })
	})
}

// save writes a checkpoint, once the streams have shown that they are those which acknowledged what it covers.
func (s *session) save(ctx context.Context, c *covered) error {
	if err := s.glance(ctx, c.newest); err != nil {
		return fromNATS(withRange(err, &c.point))
	}
	c.point.Witnesses = s.witnesses()
	return fromNATS(s.bridge.points.Save(ctx, &c.point))
}

// cover takes what is finished now.
func (s *session) cover(now time.Time) covered {
	s.advance()
	p := s.lanes.Progress()
	point := s.saved
	point.Streams, point.Subjects, point.WrittenAt = p.Marks, map[string][]string{}, now
	for _, st := range s.streams {
		point.Subjects[st.Name] = st.Own()
	}
	if p.W.Compare(point.W) > 0 { // zero before the first row of the session
		point.W = p.W
	}
	if s.tracker.confirmable > point.Confirmable {
		point.Confirmable = s.tracker.confirmable
	}
	point.Floor = max(point.Floor, s.tracker.floor)
	if !s.tracker.committedAt.IsZero() {
		point.CommittedAt = s.tracker.committedAt
	}
	if s.copied() {
		point.Phase = ""
	}
	return covered{point, p.Upto, s.tracker.confirmable, s.newest()}
}

// checkpointWritten lets PostgreSQL know what NATS now knows.
func (s *session) checkpointWritten(c covered, err error, now time.Time) error {
	s.saving = false
	if err != nil {
		if fatal := failure(err); fatal != nil || isStolen(err) {
			return err
		}
		s.notBefore = now.Add(checkpointRetry)
		s.bridge.health.Report(problemCheckpoint, "the checkpoint cannot be written, so nothing is confirmed: "+err.Error())
		s.log.Warn("checkpoint not written; trying again", "error", err)
		return nil
	}
	opens := s.saved.Phase == phaseInitial && c.point.Phase == ""
	s.saved, s.savedUpto, s.savedAt = c.point, c.upto, now
	s.bridge.metrics.checkpoint.Store(now.UnixNano())
	s.bridge.health.Clear(problemCheckpoint)
	s.lanes.Covered(c.upto, now)
	s.confirm()
	if opens {
		s.log.Info("published the rows older than the slot; going on with the stream")
		s.openGate()
	}
	return nil
}
