package publish

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
)

// Event is a stored event as a stream's headers tell it.
type Event struct {
	Stream      string    `json:"stream"`
	Seq         uint64    `json:"seq"`
	Subject     string    `json:"subject"`
	MsgID       string    `json:"msg_id"`
	Position    string    `json:"position"`
	CommittedAt time.Time `json:"committed_at,omitzero"`
}

// ReadEvents gives to each, in the stream's order, the events of the source after the sequence whose position is beyond.
// Events without a position, which were read from a table, are not among them.
func (c *Conn) ReadEvents(ctx context.Context, s *Stream, after uint64, source string, beyond func(event.Position) bool, each func(Event)) error {
	state, err := s.Info(ctx)
	if err != nil {
		return err
	}
	return c.readHeaders(ctx, s, after, state.Last, func(subject string, h nats.Header, seq uint64) {
		if p, ok := placed(h, source); ok && beyond(p) {
			each(newEvent(s.Name, subject, h, seq, p))
		}
	})
}

// placed gives the position of a message of the source, if it has one.
func placed(h nats.Header, source string) (event.Position, bool) {
	of, _, _, ok := event.SplitMsgID(h.Get(event.HeaderMsgID))
	if !ok || of != source {
		return event.Position{}, false
	}
	return positionOf(h)
}

const (
	// firstWindow is how much of a stream's end is read first in search of events beyond some position.
	firstWindow = 1 << 15
	// unordered is how many events of a source may lie between two that are not in the order of their positions.
	unordered = 1 << 14
)

// Before gives a sequence after which every event of the source lies whose position is beyond: the stream's last where
// there is none. It reads the end of the stream, and more the further back they reach. Older events are not missed as
// long as the stream is in the order of positions, but for what a bridge has in flight.
func (c *Conn) Before(ctx context.Context, s *Stream, source string, beyond func(event.Position) bool) (seq uint64, err error) {
	state, err := s.Info(ctx)
	if err != nil {
		return 0, err
	}
	for window := uint64(firstWindow); ; window *= 4 {
		after := state.Last - min(state.Last, window)
		seq = state.Last
		settled := 0 // events before the first that is beyond
		err := c.readHeaders(ctx, s, after, state.Last, func(_ string, h nats.Header, at uint64) {
			p, ok := placed(h, source)
			switch {
			case !ok || seq < state.Last:
			case beyond(p):
				seq = at - 1
			default:
				settled++
			}
		})
		if err != nil || settled >= unordered || after < state.First {
			return seq, err
		}
	}
}

// LastEvent gives the last event of the source that a stream of this name holds under the subjects, if the last message
// there is one; false also where there is no such stream.
func (c *Conn) LastEvent(ctx context.Context, stream string, subjects []string, source string) (e Event, ok bool, err error) {
	for _, subject := range subjects {
		m, err := c.getMsg(ctx, stream, msgGet{LastFor: subject})
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return Event{}, false, nil
		}
		if err != nil {
			return Event{}, false, err
		}
		if m == nil {
			continue
		}
		if p, placed := placed(m.header, source); placed && m.seq > e.Seq {
			e, ok = newEvent(stream, m.subject, m.header, m.seq, p), true
		}
	}
	return e, ok, nil
}

func newEvent(stream, subject string, h nats.Header, seq uint64, p event.Position) Event {
	at, _ := time.Parse(time.RFC3339Nano, h.Get(event.HeaderCommittedAt)) // zero where it is not told
	return Event{stream, seq, subject, h.Get(event.HeaderMsgID), p.String(), at}
}
