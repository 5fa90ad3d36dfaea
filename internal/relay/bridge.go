// Package relay is the bridge: it joins the replication slot, the geometry look-up, the router and the publisher into
// one pipeline, and lets PostgreSQL forget only what JetStream has acknowledged.
//
//	connection goroutine: source   reads, decodes, copies what is kept
//	stage goroutine:      stage    leaves out what is stored, looks up, routes
//	loop goroutine:       session  publishes, follows the PubAcks, writes the checkpoint, confirms
//
// A session is one hold on the slot. Whatever breaks on the PostgreSQL side ends it, and the next one finds out from
// the checkpoint and the stream itself where to go on: recovering is the ordinary way to begin.
package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/geometry"
	"github.com/tidegate-cdc/tidegate/internal/admin"
	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/guard"
	"github.com/tidegate-cdc/tidegate/internal/lookup"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/router"
	"github.com/tidegate-cdc/tidegate/slot"
)

// Bridge publishes the outboxes of one source.
type Bridge struct {
	cfg      *config.Config
	log      *slog.Logger
	metrics  *Metrics
	health   *admin.Health
	slot     slot.Config
	outboxes []*outbox
	pool     rowPool
	drift    *drift
	pulse    *pulse

	link   *link
	conn   *publish.Conn
	points *publish.Checkpoints
	lookup *lookup.Lookup // nil when no outbox refers to features
}

// New makes a Bridge of a configuration that config.Load found consistent. Nothing is connected yet.
func New(cfg *config.Config, log *slog.Logger) (*Bridge, error) {
	b := &Bridge{
		cfg: cfg, log: log, link: newLink(), pulse: newPulse(),
		metrics: NewMetrics(cfg.Slot.Name),
		health:  admin.NewHealth(cfg.HTTP.ReadyGrace),
		slot: slot.Config{
			URL: cfg.Postgres.URL, ReplicationURL: cfg.Postgres.ReplicationURL,
			Slot: cfg.Slot.Name, Publication: cfg.Slot.Publication,
			MaxRow: int(cfg.Publish.MaxRow), Failover: cfg.Slot.Failover, Logger: log,
		},
	}
	b.drift = newDrift(b)
	for i := range cfg.Outboxes {
		if err := b.addOutbox(&cfg.Outboxes[i]); err != nil {
			return nil, &exit.Error{Code: exit.Usage, Err: fmt.Errorf("outboxes[%d] (%s): %w", i, cfg.Outboxes[i].Table, err)}
		}
	}
	return b, nil
}

func (b *Bridge) addOutbox(c *config.Outbox) error {
	o := &outbox{
		table:   &event.Table{Name: c.Table, Kind: event.KindEvent, Columns: event.Columns(c.Columns)},
		orderBy: c.OrderBy, streamName: c.Stream,
	}
	if c.Kind == "feature" {
		o.table.Kind, o.table.Collection = event.KindFeature, c.Feature.Collection
		if c.Geometry != "none" {
			o.features = &lookup.Table{
				Table: c.Feature.Table, ID: c.Feature.ID, Version: c.Feature.Version, Geom: c.Feature.Geometry,
				AssumeSRID: c.Feature.AssumeSRID,
			}
			if c.H3Point == "centroid" {
				o.features.Point = geometry.Centroid
			}
		}
	}
	route, err := router.New(router.Config{
		Source: b.cfg.Source.Name, Table: o.table, Subject: c.Subject, H3Resolution: c.H3Resolution,
	})
	if err != nil {
		return err
	}
	o.route = route
	b.outboxes = append(b.outboxes, o)
	b.slot.Tables = append(b.slot.Tables, c.Table)
	return nil
}

// Run serves metrics and health and bridges until ctx ends, then stops cleanly and gives nil. Any other end is an
// *exit.Error that says what is wrong and what to do.
func (b *Bridge) Run(ctx context.Context) error {
	srv, err := admin.Listen(b.cfg.HTTP.Listen, b.metrics.Registry, b.health)
	if err != nil {
		return &exit.Error{Code: exit.Usage, Err: err, Hint: "choose another address with http.listen"}
	}
	b.log.Info("serving metrics and health", "address", srv.Addr())
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		defer cancel() // a bridge that nobody can watch any more ends and says so
		served <- srv.Serve(ctx)
	}()
	var watching sync.WaitGroup
	watching.Go(func() { b.watchSlot(ctx) })
	beating, stopBeating := context.WithCancel(context.WithoutCancel(ctx)) // as long as anything is sent
	watching.Go(func() { b.pulse.watch(beating) })
	err = b.bridge(ctx)
	stopBeating()
	cancel()
	watching.Wait()
	return errors.Join(err, <-served)
}

// watchSlot keeps the slot's measures up to date, whatever the pipeline does.
func (b *Bridge) watchSlot(ctx context.Context) {
	connect := func(ctx context.Context) (*pgx.Conn, error) { return slot.ConnectSQL(ctx, b.slot, "guard") }
	guard.Watch(ctx, connect, b.slot.Slot, b.cfg.Monitor.Interval, b.log, func(_ context.Context, _ *pgx.Conn, s guard.Sample) {
		b.metrics.slotRetained.Set(s.Retained)
		b.metrics.slotUnconfirmed.Set(s.Unconfirmed)
		b.metrics.slotSafe.Set(s.Safe)
		b.metrics.slotActive.Set(0)
		if s.Active {
			b.metrics.slotActive.Set(1)
		}
		b.metrics.slotStatus.Reset()
		if s.WALStatus != "" {
			b.metrics.slotStatus.WithLabelValues(s.WALStatus).Set(1)
		}
	})
}

// bridge runs sessions one after the other until ctx ends or a failure is not transient.
func (b *Bridge) bridge(ctx context.Context) error {
	defer b.close()
	delay := retryMin
	var judge verdicts
	for {
		began := time.Now()
		err := b.attempt(ctx)
		if ctx.Err() != nil {
			return stopped(err)
		}
		if errors.Is(err, errSlotFree) {
			delay = retryMin
			continue
		}
		if refused := b.link.state().fatal; refused != nil { // what a request without an answer does not tell
			err = fromNATS(refused)
		}
		if fatal := judge.of(err); fatal != nil {
			return fatal
		}
		b.metrics.reconnects.WithLabelValues(reconnectOf(err)).Inc()
		if time.Since(began) > retryReset {
			delay = retryMin
		}
		b.health.Report("session", err.Error())
		b.log.Warn("session ended; beginning another", "error", err, "in", delay.Round(time.Millisecond))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay/2 + rand.N(delay/2+1)):
		}
		delay = min(delay*2, retryMax)
	}
}

const (
	retryMin   = 50 * time.Millisecond
	retryMax   = 3 * time.Second
	retryReset = 10 * time.Second // a session that lasted as long was a good one
)

// stopped is what a stop on request ends with: nothing, unless the stop itself uncovered drift, a loss or a failure.
func stopped(err error) error {
	if isCoded(err) {
		return err
	}
	if isDrift(err) || isLost(err) {
		return failure(err)
	}
	return nil
}

func (b *Bridge) close() {
	if b.conn != nil {
		b.conn.Close()
	}
	if b.lookup != nil {
		b.lookup.Close()
	}
}

// connectNATS connects once; nats.go itself keeps the connection up from then on.
func (b *Bridge) connectNATS(ctx context.Context) error {
	if b.conn == nil {
		n := b.cfg.NATS
		conn, err := publish.Connect(ctx, publish.Config{
			Name: "tidegate " + b.cfg.Source.Name, URL: n.URL, Context: n.Context,
			CredsFile: n.CredsFile, NKeyFile: n.NKeyFile, User: n.User, Password: n.Password, Token: n.Token,
			TLS:         publish.TLS(n.TLS),
			InboxPrefix: n.InboxPrefix, Domain: n.JetStreamDomain, Fence: b.pulse.fence,
		}, b.log, publish.Hooks{Disconnected: b.link.lost, Reconnected: b.link.back, Refused: b.link.refused})
		if err != nil {
			return fromNATS(err)
		}
		b.conn = conn
		b.link.back()
	}
	if b.points == nil {
		points, err := publish.OpenCheckpoints(ctx, b.conn, b.replicas(), jetstream.FileStorage)
		if err != nil {
			return fromNATS(err)
		}
		b.points = points
	}
	return nil
}

// replicas is how often the checkpoint is kept: as often as the best kept stream.
func (b *Bridge) replicas() int {
	n := 1
	for _, s := range b.cfg.Streams {
		n = max(n, s.Replicas)
	}
	return n
}

// subjectsOf gives what the outboxes publish to a stream.
func (b *Bridge) subjectsOf(stream string) (subjects []string) {
	for _, o := range b.outboxes {
		if s := o.route.Subjects(); o.streamName == stream && !slices.Contains(subjects, s) {
			subjects = append(subjects, s)
		}
	}
	return subjects
}

// ensureStreams makes or checks every stream that an outbox names. A stream that the checkpoint knows is never made.
func (b *Bridge) ensureStreams(ctx context.Context, cp *publish.Checkpoint) ([]*publish.Stream, error) {
	var streams []*publish.Stream
	for _, sc := range b.cfg.Streams {
		subjects := b.subjectsOf(sc.Name)
		if len(subjects) == 0 {
			continue
		}
		named := false
		if cp != nil {
			_, named = cp.Streams[sc.Name]
		}
		s, err := b.conn.EnsureStream(ctx, publish.StreamConfig{
			Name: sc.Name, Create: sc.Create, Replicas: sc.Replicas, MaxAge: sc.MaxAge,
			DuplicateWindow: sc.DuplicateWindow, Storage: jetstream.FileStorage,
		}, subjects, named)
		if lost := (*publish.LostError)(nil); named && errors.As(err, &lost) {
			seen := cp.Witnesses[sc.Name]
			lost.From, lost.To, lost.After = max(1, seen.First), cp.Streams[sc.Name].Seq, seen.FirstAt
			err = withRange(err, cp)
		}
		if err != nil {
			return nil, fromNATS(err)
		}
		streams = append(streams, s)
		for _, o := range b.outboxes {
			if o.streamName == sc.Name {
				o.stream = s
			}
		}
	}
	return streams, nil
}
