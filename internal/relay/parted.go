package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/divergence"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// listParted adds to err, where it is a *divergence.PartedError, the events that the streams hold and the server lacks.
func (s *session) listParted(ctx context.Context, cp *publish.Checkpoint, srv *divergence.Server, err error) error {
	parted := (*divergence.PartedError)(nil)
	if !errors.As(err, &parted) {
		return err
	}
	events, listErr := s.bridge.lacking(ctx, cp, srv, s.streams)
	if listErr != nil {
		s.log.Warn("cannot list the events that the database does not have", "error", listErr)
		return err
	}
	parted.Events = events
	return err
}

// lacking gives the events in the streams that the server does not have, in each stream's order; never nil.
func (b *Bridge) lacking(ctx context.Context, cp *publish.Checkpoint, srv *divergence.Server, streams []*publish.Stream) ([]publish.Event, error) {
	events := []publish.Event{}
	beyond := func(p event.Position) bool { return srv.Lacks(p) != "" }
	for _, st := range streams {
		if cp != nil {
			st.ReadOnly(cp.Subjects[st.Name])
		}
		from, err := b.conn.Before(ctx, st, b.cfg.Source.Name, beyond)
		if err == nil {
			err = b.conn.ReadEvents(ctx, st, from, b.cfg.Source.Name, beyond, func(e publish.Event) { events = append(events, e) })
		}
		if err != nil {
			return nil, err
		}
	}
	return events, nil
}

// checkpointMissing gives an error when the slot is there and the streams hold what was published from it: then this is
// no first start, but the checkpoint was lost.
func (b *Bridge) checkpointMissing(ctx context.Context, at *slot.State) error {
	for _, sc := range b.cfg.Streams {
		last, found, err := b.conn.LastEvent(ctx, sc.Name, b.subjectsOf(sc.Name), b.cfg.Source.Name)
		if err != nil {
			return fromNATS(err)
		}
		if found {
			return &exit.Error{
				Code: exit.NATS,
				Err: fmt.Errorf("read checkpoint of source %q: there is none, but stream %s holds events of the source, the last at sequence %d (position %s), and slot %s was confirmed up to %s: NATS has lost the checkpoint",
					b.cfg.Source.Name, sc.Name, last.Seq, last.Position, b.slot.Slot, at.Confirmed),
				Hint: "was key " + b.cfg.Source.Name + " of KV bucket " + publish.Bucket + " deleted, or restored? " + acceptHint,
			}
		}
	}
	return nil
}
