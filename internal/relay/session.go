package relay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/admin"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// session is one hold on the slot. Its loop owns the lanes, the tracker and the checkpoint; no other goroutine
// touches them.
type session struct {
	bridge  *Bridge
	log     *slog.Logger
	stream  *slot.Stream
	streams []*publish.Stream
	history slot.History
	// confirmed is the slot's confirmed_flush_lsn when it was taken: nothing of an earlier session counts.
	confirmed decoder.LSN
	snapshot  *slot.Created // rows older than the slot are published first, from it

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
	drops   uint64 // disconnections of NATS that were dealt with
	results chan result
	spare   []item
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

func newSession(b *Bridge, stream *slot.Stream, history slot.History, confirmed decoder.LSN, streams []*publish.Stream) *session {
	s := &session{
		bridge: b, log: b.log.With("slot", b.slot.Slot), stream: stream, streams: streams,
		history: history, confirmed: confirmed,
		in: newQueue(), routed: newQueue(), results: make(chan result, 16),
	}
	s.budget = newBudget(b.cfg.Publish.MaxInFlightBytes, stream.Wake)
	s.source = &source{
		outboxes: map[string]*outbox{}, timeline: history.At, out: s.in, budget: s.budget, pool: &b.pool,
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

// run publishes until ctx ends, a side fails, or a row cannot be published; then it ends the session in order.
func (s *session) run(ctx context.Context) error {
	if err := s.bridge.prepareLookup(); err != nil {
		return errors.Join(err, s.stream.Close())
	}
	s.stage.lookup = s.bridge.lookup
	s.source.done = s.saved.W
	s.bridge.metrics.active.Set(1)
	s.bridge.health.SetRole(admin.RoleActive, "")
	s.bridge.health.Clear("session")
	s.log.Info("streaming", "confirmed", lsn(s.confirmed), "position", s.saved.W.String())

	// The parts end with work, not with ctx: on a stop they go on until what is in flight is settled.
	work, halt := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	s.spawn = func(part func(context.Context)) { parts.Go(func() { part(work) }) }
	ended := make(chan error, 4)
	start := func(part func(context.Context) error) {
		s.spawn(func(ctx context.Context) { ended <- part(ctx) })
	}
	reading, stopReading := context.WithCancel(work)
	read := make(chan struct{})
	start(func(context.Context) error {
		defer close(read)
		return s.stream.Run(reading, s.source)
	})
	start(s.stage.run)
	start(func(ctx context.Context) error {
		return slot.Watch(ctx, s.bridge.slot, func() { s.post(ctx, func(time.Time) error { return errShutdown }) })
	})
	if s.snapshot != nil {
		start(s.copySnapshot)
	} else {
		s.openGate()
	}

	err := s.loop(ctx, ended)
	s.source.gate.Store(false)
	s.settle(err)
	err = errors.Join(err, s.finalCheckpoint(err))
	stopReading()
	<-read
	s.part(err)
	halt()
	parts.Wait()
	s.acks.Close()
	s.bridge.metrics.active.Set(0)
	return err
}

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
