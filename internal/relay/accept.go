package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/divergence"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// Acceptance is how a checkpoint that does not agree with database and streams is rebased. Nothing else may run for the
// source meanwhile.
type Acceptance struct {
	*divergence.Plan
	bridge *Bridge
}

// Survey looks what does not agree, and plans. It writes nothing. The error is an *exit.Error where a bridge holds the
// slot, and where there is none.
func (b *Bridge) Survey(ctx context.Context) (a *Acceptance, err error) {
	defer func() { err = asExit(err) }()
	srv, err := b.surveyServer(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.connectNATS(ctx); err != nil {
		return nil, err
	}
	cp, err := b.points.Load(ctx, b.cfg.Source.Name)
	if err != nil {
		return nil, fromNATS(err)
	}
	if err := alive(cp, srv, time.Now()); err != nil {
		return nil, err
	}
	found, open, err := b.surveyStreams(ctx, cp, srv)
	if err != nil {
		return nil, fromNATS(err)
	}
	var events []publish.Event
	if cp == nil || cp.Identity.SystemID == srv.Identity.SystemID && cp.Identity.DatabaseOID == srv.Identity.DatabaseOID {
		if events, err = b.lacking(ctx, cp, srv, open); err != nil {
			return nil, fromNATS(err)
		}
	}
	plan := divergence.Rebase(b.cfg.Source.Name, cp, srv, found, events, time.Now())
	return &Acceptance{plan, b}, nil
}

// lately is how new a checkpoint of another database is that a running bridge has written: every ten seconds as a rule.
const lately = time.Minute

// alive refuses to take a source away from the bridge of another database: its slot cannot be looked at from here.
func alive(cp *publish.Checkpoint, srv *divergence.Server, now time.Time) error {
	if cp == nil || cp.Identity == srv.Identity || now.Sub(cp.WrittenAt).Abs() > lately {
		return nil
	}
	return &exit.Error{
		Code: exit.Drift,
		Err: fmt.Errorf("accept divergence: the checkpoint of source %q belongs to %s, this is %s, and it was written at %s: that bridge may be running",
			cp.Source, cp.Identity, srv.Identity, cp.WrittenAt.UTC().Format(time.RFC3339)),
		Hint: "a copy of production must not publish as production: set source.name. Only where this is the same database after an upgrade, stop the old bridge and try again in a minute",
	}
}

// Apply writes the rebased checkpoint, unless a bridge has begun meanwhile.
func (a *Acceptance) Apply(ctx context.Context) error {
	if _, err := a.bridge.idleSlot(ctx); err != nil {
		return asExit(err)
	}
	return asExit(fromNATS(a.bridge.points.Save(ctx, a.Next)))
}

// Close ends the connections.
func (b *Bridge) Close() { b.close() }

// asExit gives an error its exit code: for a command, what is transient is an end too.
func asExit(err error) error {
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case failure(err) != nil:
		return failure(err)
	}
	code := exit.Postgres
	if ours := (natsError{}); errors.As(err, &ours) {
		code = exit.NATS
	}
	return &exit.Error{Code: code, Err: err, Hint: "try again"}
}

// idleSlot gives the slot as it is when nobody holds it.
func (b *Bridge) idleSlot(ctx context.Context) (*slot.Server, error) {
	sql, srv, err := b.inspect(ctx)
	if err != nil {
		return nil, err
	}
	closeSQL(ctx, sql)
	switch {
	case srv.Slot == nil:
		return nil, &exit.Error{
			Code: exit.SlotLost, Err: &slot.MissingSlotError{Slot: b.slot.Slot},
			Hint: fmt.Sprintf("the bridge goes on from a slot: make it first, SELECT pg_create_logical_replication_slot('%s', '%s'); "+
				"rows committed before that are not published", b.slot.Slot, slot.Plugin),
		}
	case srv.Slot.ActivePID != 0:
		return nil, &exit.Error{
			Code: exit.Usage, Err: fmt.Errorf("accept divergence: slot %s is held by process %d: a bridge runs", b.slot.Slot, srv.Slot.ActivePID),
			Hint: "stop all instances of the bridge first",
		}
	}
	return srv, nil
}

func (b *Bridge) surveyServer(ctx context.Context) (*divergence.Server, error) {
	srv, err := b.idleSlot(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	stream, err := slot.Connect(ctx, b.slot)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	history, err := stream.History(ctx)
	if err != nil {
		return nil, err
	}
	sys := stream.System()
	return &divergence.Server{
		Identity: publish.Identity{SystemID: sys.ID, DatabaseOID: srv.DatabaseOID, Database: sys.Database, Slot: b.slot.Slot},
		Timeline: sys.Timeline, WALEnd: sys.WALEnd, Confirmed: srv.Slot.Confirmed, History: history,
	}, nil
}

// surveyStreams looks at every stream that an outbox names, as it is.
func (b *Bridge) surveyStreams(ctx context.Context, cp *publish.Checkpoint, srv *divergence.Server) (found []divergence.Stream, open []*publish.Stream, err error) {
	for _, sc := range b.cfg.Streams {
		subjects := b.subjectsOf(sc.Name)
		if len(subjects) == 0 {
			continue
		}
		st, err := b.conn.OpenStream(ctx, sc.Name, subjects)
		f := divergence.Stream{Name: sc.Name}
		if gone := (*publish.LostError)(nil); errors.As(err, &gone) {
			f.Missing = true
			if cp != nil && cp.Streams[sc.Name].Seq > 0 {
				gone.From, gone.To = max(1, cp.Witnesses[sc.Name].First), cp.Streams[sc.Name].Seq
				f.Lost = gone
			}
			found = append(found, f)
			continue
		}
		if err == nil {
			err = b.surveyStream(ctx, st, cp, srv, &f)
		}
		if err != nil {
			return nil, nil, err
		}
		found, open = append(found, f), append(open, st)
	}
	return found, open, nil
}

func (b *Bridge) surveyStream(ctx context.Context, st *publish.Stream, cp *publish.Checkpoint, srv *divergence.Server, f *divergence.Stream) error {
	if cp == nil {
		cp = &publish.Checkpoint{}
	}
	st.ReadOnly(cp.Subjects[st.Name])
	watch := st.Watch(cp.Witnesses[st.Name])
	err := watch.Look(ctx, cp.Streams[st.Name])
	if isNotCovered(err) { // run widens it, or says so
		err = nil
	}
	if errors.As(err, &f.Lost) {
		watch, err = st.Watch(publish.Witness{}), nil
		if look := watch.Look(ctx, publish.Mark{}); !isNotCovered(look) {
			err = look
		}
	}
	if err != nil {
		return err
	}
	f.Witness = watch.Witness()
	state, err := st.Info(ctx)
	if err != nil {
		return err
	}
	f.Last = state.Last
	f.Before, err = b.conn.Before(ctx, st, b.cfg.Source.Name, func(p event.Position) bool { return p.Commit >= srv.Confirmed })
	return err
}
