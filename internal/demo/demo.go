// Package demo shows the whole path on one machine: a throwaway PostgreSQL with PostGIS, a JetStream server in this
// process, an application that edits features and takes orders, the bridge, and a consumer. At the end it compares the
// outbox tables with the whole stream. Nothing of it is left, however it ends.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidegate-cdc/tidegate/migrations"
)

// quiet is how long the stream may stand still before rows that have not arrived count as missing.
const quiet = 15 * time.Second

// Options say what is shown.
type Options struct {
	Duration time.Duration // of writing; 0 = until ctx ends
	Rate     float64       // transactions a second
	Keep     bool          // leave the data in a folder
	JSON     bool          // the summary alone, as JSON
	Out      io.Writer     // events and summary
	Progress io.Writer     // what is being done
	Bridge   Bridge
}

// Run is the demo. When ctx ends while rows are written, what was committed until then is still waited for and
// compared. The error is an *exit.Error with code Found when rows and messages are not the same.
func Run(ctx context.Context, o Options) error {
	g, err := prepare(ctx, o.Keep, o.say)
	if err != nil {
		return err
	}
	summary, err := o.play(ctx, g)
	if closeErr := g.close(); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("clean up: %w", closeErr))
	}
	if o.Keep {
		o.say("%s", g.howToLook())
	}
	if err != nil {
		return err
	}
	show := summary.print
	if o.JSON {
		show = summary.printJSON
	}
	if err := show(o.Out); err != nil {
		return fmt.Errorf("print summary: %w", err)
	}
	return summary.verdict()
}

func (o Options) say(format string, args ...any) {
	fmt.Fprintf(o.Progress, "demo: "+format+"\n", args...)
}

// play does everything that happens on the ground.
func (o Options) play(ctx context.Context, g *ground) (*Summary, error) {
	if err := o.migrate(ctx, g); err != nil {
		return nil, begun(ctx, err)
	}
	o.say("starting the bridge")
	bridge, err := g.startBridge(ctx, o.Bridge)
	if err != nil {
		return nil, begun(ctx, err)
	}
	l := newLedger()
	err = o.follow(ctx, g, bridge, l)
	if stopErr := bridge.stop(); stopErr != nil {
		err = stopErr // it is the reason for the other
	}
	if err != nil {
		return nil, err
	}
	summary, err := compare(context.WithoutCancel(ctx), g)
	if err != nil {
		return nil, err
	}
	latency := l.latency(0.50, 0.99)
	summary.P50, summary.P99 = Milliseconds(latency[0]), Milliseconds(latency[1])
	_, _, summary.RolledBack = l.counts()
	if g.keep {
		summary.Folder = g.dir
	}
	return summary, nil
}

func (o Options) migrate(ctx context.Context, g *ground) error {
	o.say("creating the tables")
	if _, err := migrations.Up(ctx, g.postgres.URL(database), migrations.Options{RequirePostGIS: true}); err != nil {
		return err
	}
	conn, err := g.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect to the new cluster: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, ordersSQL); err != nil {
		return fmt.Errorf("create the orders: %w", err)
	}
	return nil
}

// follow writes and reads until all that was committed has arrived, or nothing more does.
func (o Options) follow(ctx context.Context, g *ground, bridge *running, l *ledger) error {
	var events io.Writer
	if !o.JSON {
		events = o.Out
	}
	c, err := consume(ctx, g.nats, l, events)
	if err != nil {
		return err
	}
	defer c.close()
	o.say("writing %g transactions a second%s; Ctrl-C ends it early", o.Rate, o.span())
	if err := o.write(ctx, g, bridge, l); err != nil {
		return err
	}
	committed, arrived, _ := l.counts()
	o.say("no more rows are written; %d of %d have arrived", arrived, committed)
	return drain(context.WithoutCancel(ctx), bridge, l)
}

func (o Options) span() string {
	if o.Duration == 0 {
		return ""
	}
	return " for " + o.Duration.String()
}

// write lets the writers work for the duration, until ctx ends, or until the bridge does.
func (o Options) write(ctx context.Context, g *ground, bridge *running, l *ledger) error {
	if o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	return write(ctx, g.postgres.URL(database), o.Rate, l, bridge.ended)
}

// drain waits until every committed row has arrived, or none has for a while.
func drain(ctx context.Context, bridge *running, l *ledger) error {
	last, since := -1, time.Now()
	return poll(ctx, "wait for the stream", func() (bool, error) {
		select {
		case <-bridge.ended:
			return false, errEnded
		default:
		}
		committed, arrived, _ := l.counts()
		if arrived != last {
			last, since = arrived, time.Now()
		}
		return arrived >= committed || time.Since(since) > quiet, nil
	})
}
