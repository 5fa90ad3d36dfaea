package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/divergence"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/lookup"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// take connects and takes the slot. From here on the walsender is ours, and nobody else publishes for this source; so
// the checkpoint is read after it.
func (s *session) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*answerTimeout)
	defer cancel()
	stream, err := slot.Connect(ctx, s.bridge.slot)
	if err != nil {
		return err
	}
	s.stream = stream
	s.budget.freed = stream.Wake
	if s.history, err = stream.History(ctx); err != nil {
		return err
	}
	s.source.timeline = s.history.At
	s.confirmed, err = stream.Start(ctx)
	if isMissing(err) && (s.next == stepCreate || s.next == stepCopy) {
		return fmt.Errorf("take slot %s: %w", s.bridge.slot.Slot, errElsewhere)
	}
	return err
}

// load reads the checkpoint, compares it with the server, and reads what was stored behind it.
func (s *session) load(ctx context.Context) error {
	cp, err := s.bridge.points.Load(ctx, s.bridge.cfg.Source.Name)
	if err != nil {
		return fromNATS(err)
	}
	sys := s.stream.System()
	var srv *divergence.Server // where there is a history to compare
	me := publish.Identity{SystemID: sys.ID, DatabaseOID: s.databaseOID, Database: sys.Database, Slot: s.bridge.slot.Slot}
	switch {
	case s.next == stepResume && (cp == nil || cp.Phase != ""):
		err = errElsewhere
	case cp == nil || cp.Phase != "":
		cp, err = s.firstCheckpoint(ctx, cp, me)
	default:
		srv = &divergence.Server{Identity: me, Timeline: sys.Timeline, WALEnd: sys.WALEnd, Confirmed: s.confirmed, History: s.history}
		err = s.listParted(ctx, cp, srv, compare(cp, srv))
	}
	if err != nil {
		return err
	}
	s.saved = *cp
	s.tracker.barrier(cp.Floor)
	for _, st := range s.streams {
		if err := s.readTail(ctx, st); err != nil {
			return err
		}
	}
	return s.compareTails(ctx, cp, srv)
}

// compareTails looks whether the server has what was published behind the checkpoint too: its ids may be used again.
func (s *session) compareTails(ctx context.Context, cp *publish.Checkpoint, srv *divergence.Server) error {
	if srv == nil {
		return nil
	}
	for _, st := range s.streams {
		if why := srv.Lacks(s.stage.tails[st].Newest); why != "" {
			return s.listParted(ctx, cp, srv, &divergence.PartedError{Source: cp.Source, W: cp.W, Why: why})
		}
	}
	return nil
}

// firstCheckpoint begins the history of a source: nothing is published, everything before the slot's start is settled.
func (s *session) firstCheckpoint(ctx context.Context, cp *publish.Checkpoint, me publish.Identity) (*publish.Checkpoint, error) {
	if cp == nil {
		if err := s.bridge.writeIntention(ctx, nil, stepAdopt, s.streams); err != nil {
			return nil, err
		}
		var err error
		if cp, err = s.bridge.points.Load(ctx, s.bridge.cfg.Source.Name); err != nil {
			return nil, fromNATS(err)
		}
	}
	first := *cp
	first.Identity, first.Confirmable, first.CommittedAt, first.WrittenAt = me, s.confirmed, time.Now(), time.Now()
	if s.next != stepCopy {
		first.Phase = ""
	}
	return &first, fromNATS(s.bridge.points.Save(ctx, &first))
}

// readTail reads what a stream holds behind its mark: those rows may come again from the slot. A copy that was cut
// short comes again as a whole, so it is known from where that copy began.
func (s *session) readTail(ctx context.Context, st *publish.Stream) error {
	cp := s.saved
	if s.next == stepCopy {
		cp.Streams = cp.InitialFrom
	}
	mark := cp.Streams[st.Name]
	st.ReadOnly(cp.Subjects[st.Name])
	st.KnowExactly(cp.OtherHistory[st.Name])
	if err := s.watching.begin(ctx, st, cp.Witnesses[st.Name], mark); err != nil {
		return fromNATS(withRange(err, &cp))
	}
	tail, err := s.bridge.conn.ReadTail(ctx, st, mark.Seq, cp.Source)
	if err != nil {
		return fromNATS(err)
	}
	s.stage.tails[st] = tail
	s.lanes.Open(&cp, tail)
	if tail.Count > 0 {
		s.log.Info("read what the stream holds behind the checkpoint", "stream", st.Name, "messages", tail.Count, "sequence", tail.Last)
	}
	return nil
}

// prepareLookup connects the look-ups to the session's limits.
func (b *Bridge) prepareLookup() error {
	maxPayload := b.conn.MaxPayload()
	for _, o := range b.outboxes {
		if o.features == nil {
			continue
		}
		o.features.MaxBytes = maxPayload
		if o.stream.MaxMsgSize > 0 {
			o.features.MaxBytes = min(o.features.MaxBytes, o.stream.MaxMsgSize)
		}
		o.features.MaxBytes -= min(bodyBesideGeometry, o.features.MaxBytes/2)
		if b.lookup == nil {
			l, err := lookup.New(b.cfg.Postgres.Lookup(), b.log)
			if err != nil {
				return &exit.Error{Code: exit.Usage, Err: err, Hint: "see postgres.lookup_url"}
			}
			b.lookup = l
		}
	}
	return nil
}

// bodyBesideGeometry is room for the headers and the rest of a feature's body.
const bodyBesideGeometry = 16 << 10

// lsn is a helper of the log: LSNs are written as PostgreSQL writes them.
func lsn(l decoder.LSN) string { return l.String() }
