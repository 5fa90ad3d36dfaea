package relay

import (
	"context"
	"errors"
	"time"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/geometry"
	"github.com/tidegate-cdc/tidegate/internal/lookup"
	"github.com/tidegate-cdc/tidegate/publish"
)

// stage makes messages of rows: it leaves out what the stream already has, looks geometries up in batches and routes.
// Rows leave it in the order in which they came.
type stage struct {
	in, out    *queue
	budget     *budget
	tails      map[*publish.Stream]*publish.Tail
	lookup     *lookup.Lookup
	maxPayload int
	source     string
	metrics    *Metrics

	batch   []*lookup.Row
	largest int64 // a slowly forgotten maximum of what a look-up brings, in bytes
	key     []byte
}

const (
	// chunk bounds how many rows wait for the slowest of them.
	chunk = 256
	// lookupMemory bounds what one batch of look-ups may bring, by the largest geometry lately seen.
	lookupMemory = 8 << 20
)

// run works until ctx ends or a look-up is refused for good.
func (g *stage) run(ctx context.Context) error {
	var items []item
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-g.in.ready:
		}
		items = g.in.take(items)
		for rest := items; len(rest) > 0; {
			n := min(len(rest), g.chunkSize(rest))
			if err := g.prepare(ctx, rest[:n]); err != nil {
				return err
			}
			g.budget.goAhead(rest[:n])
			g.out.put(rest[:n]...)
			rest = rest[n:]
		}
	}
}

// chunkSize is how many items may go on together: less when their geometries may be large.
func (g *stage) chunkSize(items []item) int {
	perLookup := int(max(1, min(chunk, lookupMemory/max(g.largest, 1<<10))))
	features := 0
	for i, it := range items[:min(len(items), chunk)] {
		if it.row != nil && it.row.outbox != nil && it.row.outbox.features != nil {
			if features++; features > perLookup {
				return i
			}
		}
	}
	return chunk
}

func (g *stage) prepare(ctx context.Context, items []item) error {
	g.batch = g.batch[:0]
	for _, it := range items {
		if r := it.row; r != nil && r.outbox != nil {
			g.identify(r)
			if r.poison == nil && !g.stored(r) && r.outbox.features != nil {
				g.want(r)
			}
		}
	}
	if len(g.batch) > 0 {
		if err := g.look(ctx); err != nil {
			return err
		}
	}
	for _, it := range items {
		if r := it.row; r != nil && r.poison == nil && !r.pub.Done {
			if err := g.route(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// identify says where the row goes and which rows it must not overtake: none, where its aggregate is not known.
func (g *stage) identify(r *row) {
	r.pub.Stream, r.pub.Aggregate = r.outbox.stream, r.pub.Aggregate[:0]
	if hasAggregate(r) {
		r.pub.Aggregate = event.AggregateKey(r.pub.Aggregate, r.outbox.table.Name, r.event.AggregateType, r.event.AggregateID)
	}
}

// stored marks a row that came again from the slot and is in the stream's tail.
func (g *stage) stored(r *row) bool {
	tail := g.tails[r.pub.Stream]
	if tail == nil || tail.Count == 0 || r.parked != 0 {
		return false
	}
	g.key = event.AppendMsgID(g.key[:0], g.source, r.event.Table.Name, r.event.ID)
	seq, ok := tail.Has(g.key, r.pub.Aggregate, r.pub.Position)
	if ok {
		r.pub.Done, r.pub.Seq = true, seq
		g.metrics.skipped.Inc()
	}
	return ok
}

func (g *stage) want(r *row) {
	if r.geo == nil {
		r.geo = new(geo)
	}
	r.geo.feature.Reset()
	r.geo.lookup = lookup.Row{
		Table: r.outbox.features, ID: r.event.AggregateID, Version: r.event.Version,
		XID: r.event.XID, Feature: &r.geo.feature,
	}
	g.batch = append(g.batch, &r.geo.lookup)
}

// look fills a batch. What geometries hold counts against the budget too: while that is full, look-ups wait for rows
// that went ahead; with none ahead, the row in hand is the oldest and is always admitted.
func (g *stage) look(ctx context.Context) error {
	for g.budget.full() && g.budget.ahead.Load() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-g.budget.behind:
		}
	}
	start := time.Now()
	if err := g.lookup.Batch(ctx, g.batch); err != nil {
		return err
	}
	g.metrics.lookup.Observe(time.Since(start).Seconds())
	g.largest -= g.largest / 64
	for _, l := range g.batch {
		g.metrics.lookupRows.WithLabelValues(string(l.Feature.Status)).Inc()
		g.largest = max(g.largest, int64(len(l.Feature.JSON)))
	}
	return nil
}

// route makes the message and checks it against what the server takes. A row that can never be taken is poison; a
// subject that the stream does not cover is not the row's fault and ends the session.
func (g *stage) route(r *row) error {
	var feature *geometry.Feature
	if r.outbox.features != nil {
		feature = &r.geo.feature
	}
	r.poison = r.outbox.route.Fill(&r.pub.Msg, &r.event, feature)
	if r.poison == nil {
		return g.check(r)
	}
	return nil
}

func (g *stage) check(r *row) error {
	if extra := r.memory() - r.pub.Size; extra > 0 {
		r.pub.Size += extra
		g.budget.take(extra)
	}
	err := r.outbox.stream.Check(&r.pub.Msg, g.maxPayload)
	if limit := (*publish.LimitError)(nil); errors.As(err, &limit) || err != nil && r.parked != 0 { // where a parked row came from is no matter of the stream's
		r.poison, err = err, nil
	}
	return err
}
