package relay

import (
	"context"
	"errors"
	"time"

	"github.com/tidegate-cdc/tidegate/publish"
)

const (
	settleStop     = 10 * time.Second // on request
	settleLost     = 3 * time.Second  // when PostgreSQL is gone: nothing new can come anyway
	settleShutdown = time.Second      // PostgreSQL waits for us to leave
	settleSilence  = 2 * time.Second  // a broker that answers nothing for as long will not
	finishTimeout  = 2 * time.Second
	leaveWithin    = 2 * time.Second // of a shutdown of PostgreSQL, whatever is in flight
)

// settle waits for the PubAcks of what was sent, so that the next session has less to find out. It is given up when
// nothing can be expected any more.
func (s *session) settle(why error) {
	deadline := time.After(settleTime(why))
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	heard := time.Now()
	for s.tracker.rows > 0 {
		now := time.Now()
		s.unanswered = now.Sub(heard) > settleSilence
		if s.hopeless() || s.unanswered {
			return
		}
		var err error
		select {
		case <-deadline:
			return
		case m := <-s.acks.C:
			heard = now
			err = s.takeAcks(m, now)
		case r := <-s.results:
			err = r(now)
		case <-ticker.C:
		}
		if err == nil {
			if err = s.lanes.Tick(now); err != nil {
				err = s.notSent(err, now)
			}
		}
		if err != nil {
			s.log.Warn("cannot settle what is in flight", "error", err)
			return
		}
		s.advance()
		s.startParking(now)
		s.startCheckpoint(now)
	}
}

// hopeless reports whether no PubAck can be waited for: NATS is away or has refused us, or takes nothing.
func (s *session) hopeless() bool {
	link := s.bridge.link.state()
	_, uncertain := s.lanes.Uncertain()
	_, _, probing := s.lanes.Probing()
	return uncertain || probing || !link.up || link.fatal != nil
}

func settleTime(why error) time.Duration {
	switch {
	case errors.Is(why, errShutdown):
		return settleShutdown
	case errors.Is(why, context.Canceled):
		return settleStop
	case isPoison(why), isNotCovered(why), isLost(why):
		return 0
	}
	return settleLost
}

// finalCheckpoint writes what is finished, unless somebody else has taken the source over.
func (s *session) finalCheckpoint(why error) error {
	if link := s.bridge.link.state(); isStolen(why) || isLost(why) || !link.up || link.fatal != nil {
		return nil
	}
	patience := checkpointTimeout
	if errors.Is(why, errShutdown) || s.unanswered {
		patience = settleShutdown / 2
	}
	deadline := time.After(patience)
	for s.saving {
		select {
		case <-deadline:
			return nil
		case r := <-s.results:
			if err := r(time.Now()); err != nil && !errors.Is(err, errShutdown) {
				return err
			}
		}
	}
	drifted := s.lookLast(why)
	now := time.Now()
	c := s.cover(now)
	if c.upto == s.savedUpto && c.confirmable <= s.saved.Confirmable {
		s.confirm()
		return drifted
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(drifted, s.checkpointWritten(c, s.save(ctx, &c), now))
}

// part takes leave of PostgreSQL: with a last status where it can be sent, in any case for good.
func (s *session) part(why error) {
	if errors.Is(why, context.Canceled) || errors.Is(why, errShutdown) || isPoison(why) {
		ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
		defer cancel()
		if err := s.stream.Finish(ctx); err != nil {
			s.log.Warn("the last status may not have reached PostgreSQL", "error", err)
		}
	}
	if err := s.closeStream(); err != nil {
		s.log.Debug("replication connection closed with an error", "error", err)
	}
	s.log.Info("stopped streaming", "confirmed", lsn(s.stream.Progress().Confirmed), "position", s.saved.W.String())
}

func (s *session) closeStream() error {
	if s.stream == nil {
		return nil
	}
	return s.stream.Close()
}

func isPoison(err error) bool {
	var poison *poisonError
	return errors.As(err, &poison)
}

func isStolen(err error) bool {
	var stolen *publish.StolenError
	return errors.As(err, &stolen)
}

// isLost reports whether NATS has lost what it acknowledged: nothing may be confirmed any more.
func isLost(err error) bool {
	var (
		stream     *publish.LostError
		checkpoint *publish.LostCheckpointError
	)
	return errors.As(err, &stream) || errors.As(err, &checkpoint)
}

func isNotCovered(err error) bool {
	var covered *publish.NotCoveredError
	return errors.As(err, &covered)
}
