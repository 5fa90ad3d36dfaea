package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// The contenders beside rivals.
const (
	nameBridge      = "tidegate"
	nameRecvlogical = "pg_recvlogical"
	nameRaw         = "raw publish"
)

// contender is one way to drain the backlog.
type contender struct {
	name string
	run  func(context.Context, *pass) (figures, error)
}

// contenders are in the order of their turns: the raw publish takes the messages that the bridge before it has left.
func contenders(o *options) []contender {
	list := []contender{}
	for _, r := range append([]rival{{name: nameBridge}}, o.rivals...) {
		list = append(list, contender{r.name, func(ctx context.Context, p *pass) (figures, error) { return p.bridge(ctx, r) }})
	}
	return append(list,
		contender{nameRecvlogical, func(ctx context.Context, p *pass) (figures, error) { return p.recvlogical(ctx) }},
		contender{nameRaw, func(ctx context.Context, p *pass) (figures, error) { return p.rawPublish(ctx) }})
}

// measure runs the benchmark; say tells how it goes.
func measure(ctx context.Context, o *options, say func(string, ...any)) (_ *report, err error) {
	g, err := prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.buildBridge(ctx, o); err != nil {
		return nil, err
	}
	r := newReport(o)
	if err := g.sql.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&r.Postgres); err != nil {
		return nil, err
	}
	for _, s := range o.shapes {
		began := time.Now()
		b, err := g.fill(ctx, s, o)
		if err != nil {
			return nil, err
		}
		say("%s: wrote %d rows, %s, in %.1f s", s.name, o.rows, s.describe, time.Since(began).Seconds())
		results, err := b.race(ctx, o, say)
		if err != nil {
			return nil, err
		}
		r.add(s, results)
		if err := g.dropSlot(ctx, backlogSlot); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// buildBridge builds the program to measure where none was named.
func (g *ground) buildBridge(ctx context.Context, o *options) error {
	if o.tidegate != "" {
		return nil
	}
	o.tidegate = filepath.Join(g.held.Dir(), "tidegate")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", o.tidegate, "github.com/tidegate-cdc/tidegate/cmd/tidegate")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build tidegate: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// race gives every contender its turn in every round.
func (b *backlog) race(ctx context.Context, o *options, say func(string, ...any)) ([]result, error) {
	list := contenders(o)
	results := make([]result, len(list))
	for round := range o.rounds {
		for i, c := range list {
			p := &pass{ground: b.g, backlog: b, options: o, round: round + 1}
			p.slot = fmt.Sprintf("drain_%s_%d_%d", strings.ToLower(b.shape.name), round+1, i)
			f, err := c.run(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("%s, shape %s, round %d: %w", c.name, b.shape.name, round+1, err)
			}
			say("%s round %d: %-14s %8.0f rows/s", b.shape.name, round+1, c.name, f.RowsPerSec)
			results[i].Name = c.name
			results[i].Rounds = append(results[i].Rounds, f)
		}
	}
	return results, nil
}

// newReport knows what was set up.
func newReport(o *options) *report {
	return &report{
		Rows: o.rows, Payload: o.payload, Aggregates: o.aggregates, Window: o.window, Rounds: o.rounds,
		Time: time.Now().UTC().Format(time.RFC3339), CPUs: runtime.NumCPU(), Go: runtime.Version(), NATS: server.VERSION,
	}
}
