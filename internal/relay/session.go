package relay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/admin"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// session is one hold on the slot. Its loop owns the lanes, the tracker and the checkpoint; no other goroutine
// touches them.
type session struct {
	bridge      *Bridge
	log         *slog.Logger
	next        step
	databaseOID uint32
	streams     []*publish.Stream
	snapshot    *slot.Created // rows older than the slot are published first, from it

	stream  *slot.Stream
	history slot.History
	// confirmed is the slot's confirmed_flush_lsn when it was taken: nothing of an earlier session counts.
	confirmed decoder.LSN
	left      moment // where the session before has ended

	source *source
	stage  *stage
	in     *queue // source -> stage
	routed *queue // stage -> loop
	budget *budget

	acks    *publish.Acks
	lanes   *publish.Lanes
	tracker tracker
	poison  *row // stops the intake: everything before it is finished, then the bridge ends

	checkpointing
	reconciling
	aside
	watching
	unanswered bool      // the broker was silent at the end
	drops      uint64    // disconnections of NATS that were dealt with
	rechecked  time.Time // when the streams were last asked whether they still fit
	rechecking atomic.Bool
	results    chan result
	spare      []item

	// spawn runs a part of the session that ends with it.
	spawn func(func(context.Context))
}

// result is the outcome of something that the loop had done elsewhere: it is applied by the loop.
type result func(now time.Time) error

const (
	// maxUncovered bounds what a restart has to read: the messages stored behind the last checkpoint.
	maxUncovered = 16384
	// tick is how often the loop looks at what is due when nothing happens.
	tick = 20 * time.Millisecond
)

func newSession(b *Bridge, next step, databaseOID uint32, streams []*publish.Stream) *session {
	s := &session{
		bridge: b, log: b.log.With("slot", b.slot.Slot), next: next, databaseOID: databaseOID, streams: streams,
		in: newQueue(), routed: newQueue(), results: make(chan result, 16),
		budget: newBudget(b.cfg.Publish.MaxInFlightBytes),
	}
	s.source = &source{
		outboxes: map[string]*outbox{}, out: s.in, budget: s.budget, pool: &b.pool,
		metrics: b.metrics, log: s.log, bound: map[uint32]*bound{}, foreign: map[string]bool{},
	}
	for _, o := range b.outboxes {
		s.source.outboxes[o.table.Name] = o
	}
	s.stage = &stage{
		in: s.in, out: s.routed, budget: s.budget, tails: map[*publish.Stream]*publish.Tail{},
		maxPayload: b.conn.MaxPayload(), source: b.cfg.Source.Name, metrics: b.metrics,
	}
	s.drops = b.link.state().drops
	return s
}

// openLanes subscribes to the PubAcks. It comes before the streams are read, as Lanes has to know where they end.
func (s *session) openLanes() error {
	p := s.bridge.cfg.Publish
	acks, err := s.bridge.conn.Acks(2 * p.MaxInFlight)
	if err != nil {
		return err
	}
	s.acks = acks
	s.lanes = publish.NewLanes(s.bridge.conn, acks.Inbox, publish.LaneOptions{
		MaxInFlight: p.MaxInFlight, MaxInFlightBytes: p.MaxInFlightBytes,
		AckTimeout: p.AckTimeout, MaxUncovered: maxUncovered,
	})
	return nil
}

// run takes the slot and publishes until ctx ends, a side fails, or a row cannot be published; then it ends the session
// in order. What a part of the session fails with is what the session ends with.
func (s *session) run(ctx context.Context) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	defer s.bridge.pulse.during(leave, s.bridge.conn.Drop)()
	// The parts end with work, not with ctx: on a stop they go on until what is in flight is settled.
	work, halt := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	s.spawn = func(part func(context.Context)) { parts.Go(func() { part(work) }) }
	start := func(part func(context.Context) error) {
		s.spawn(func(work context.Context) {
			if err := part(work); err != nil {
				leave(err)
			}
		})
	}
	defer func() {
		halt()
		parts.Wait()
		s.keeper.close()
	}()

	shutdown := make(chan struct{}, 1)
	start(func(work context.Context) error {
		return slot.Watch(work, s.bridge.slot, func() {
			leave(errShutdown)
			select {
			case shutdown <- struct{}{}:
			default:
			}
		})
	})
	if err := s.take(ctx); err != nil {
		return errors.Join(s.explainDrift(whyEnded(ctx, err)), s.closeStream())
	}
	s.spawn(func(work context.Context) { s.leaveInTime(work, shutdown) })
	// The walsender must hear from us from now on, also while the streams are read: the gate is shut meanwhile.
	reading, stopReading := context.WithCancel(work)
	read := make(chan struct{})
	start(func(context.Context) error {
		defer close(read)
		return s.stream.Run(reading, s.source)
	})
	err := s.prepare(ctx)
	if err == nil {
		start(s.stage.run)
		err = s.stay(ctx, start)
	}
	err = s.nameRange(s.explainDrift(whyEnded(ctx, err)))
	stopReading()
	<-read
	s.part(err)
	return err
}

// leaveInTime closes the replication connection soon after PostgreSQL began to shut down, whatever keeps the session: a
// write to a broker that hangs blocks the loop for longer than PostgreSQL may be held up.
func (s *session) leaveInTime(work context.Context, shutdown <-chan struct{}) {
	select {
	case <-work.Done():
		return
	case <-shutdown:
	}
	select {
	case <-work.Done():
	case <-time.After(leaveWithin):
		if err := s.closeStream(); err != nil {
			s.log.Debug("replication connection closed with an error", "error", err)
		}
	}
}

// whyEnded prefers the reason for which a session was left to what its work made of being left.
func whyEnded(ctx context.Context, err error) error {
	if isCoded(err) || isDrift(err) || isLost(err) { // found on the way out: it must not be passed over
		return err
	}
	if cause := context.Cause(ctx); cause != nil && err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return cause
	}
	return err
}

// prepare finds out from where to go on.
func (s *session) prepare(ctx context.Context) error {
	if err := s.openLanes(); err != nil {
		return fromNATS(err)
	}
	if err := s.load(ctx); err != nil {
		return errors.Join(err, s.acks.Close())
	}
	if err := s.bridge.prepareLookup(); err != nil {
		return errors.Join(err, s.acks.Close())
	}
	if err := s.openParking(ctx); err != nil {
		return errors.Join(err, s.acks.Close())
	}
	s.stage.lookup = s.bridge.lookup
	s.source.done = s.saved.W
	return nil
}

// stay publishes until there is a reason to end, and settles what is in flight.
func (s *session) stay(ctx context.Context, start func(func(context.Context) error)) error {
	b := s.bridge
	b.metrics.active.Set(1)
	b.metrics.newSession()
	defer s.quiet()
	b.health.SetRole(admin.RoleActive, "")
	b.health.Clear("session")
	s.log.Info("streaming", "confirmed", lsn(s.confirmed), "position", s.saved.W.String())
	if s.snapshot != nil {
		start(s.copySnapshot)
	} else {
		s.openGate()
	}
	start(s.watchDrift)
	start(s.watchStreams)
	err := whyEnded(ctx, s.loop(ctx))
	b.health.Rest()
	s.source.gate.Store(false)
	s.settle(err)
	return errors.Join(err, s.finalCheckpoint(err), s.acks.Close())
}

// quiet ends what was said of the session while it lasted: it would never be corrected, and a standby is well.
func (s *session) quiet() {
	m, h := s.bridge.metrics, s.bridge.health
	m.active.Set(0)
	m.inFlight.Set(0)
	m.inFlightB.Set(0)
	for _, what := range []string{problemNATS, problemPublish, problemLookup, problemCheckpoint, problemDrift, problemParking} {
		h.Clear(what)
	}
	h.Degrade(problemParked, "")
}

// The problems that a session reports.
const (
	problemNATS       = "nats"
	problemPublish    = "publish"
	problemLookup     = "lookup"
	problemCheckpoint = "checkpoint"
	problemDrift      = "drift"
	problemParking    = "parking" // rows cannot be set aside
	problemParked     = "parked"  // rows were set aside: no problem of the bridge's
)

// openGate lets rows of the stream come.
func (s *session) openGate() {
	s.source.gate.Store(true)
	s.stream.Wake()
}

// post hands a result to the loop, unless the session is over.
func (s *session) post(ctx context.Context, r result) {
	select {
	case s.results <- r:
	case <-ctx.Done():
	}
}
