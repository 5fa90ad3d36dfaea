package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/leash"
	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
)

const (
	streamName   = "OUTBOX"
	pollInterval = 2 * time.Millisecond
	startTimeout = 30 * time.Second
	// stuck is when a contender is given up that makes no progress.
	stuck = time.Minute
)

// ground is what all contenders stand on: a folder, a PostgreSQL cluster and a NATS server in a process of its own.
// It is gone after close, and also when this process ends without it.
type ground struct {
	bin      string // PostgreSQL's programs
	held     *leash.Leash
	postgres *pgcluster.Cluster
	sql      *pgx.Conn
	nats     *process
	natsURL  string
	conn     *nats.Conn
	js       jetstream.JetStream
	closers  []func() error
}

// prepare makes everything up to an empty database and an empty JetStream. On an error nothing is left.
func prepare(ctx context.Context) (_ *ground, err error) {
	g := &ground{}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if err = g.makeFolder(); err != nil {
		return nil, err
	}
	if err = g.startPostgres(ctx); err != nil {
		return nil, err
	}
	return g, g.startNATS(ctx)
}

func (g *ground) makeFolder() error {
	dir, err := os.MkdirTemp("", "tidegate-bench-")
	if err != nil {
		return err
	}
	if g.held, err = leash.Hold(dir); err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	g.closers = append(g.closers, g.held.Release)
	return nil
}

// startPostgres makes a cluster that does nothing by itself while a contender runs: no checkpoint, no vacuum.
func (g *ground) startPostgres(ctx context.Context) (err error) {
	if g.bin, err = pgcluster.FindBinaries(); err != nil {
		return err
	}
	g.postgres, err = pgcluster.New(ctx, pgcluster.Options{BinDir: g.bin, Conf: map[string]string{
		"autovacuum": "off", "checkpoint_timeout": "1d", "max_wal_size": "64GB", "shared_buffers": "256MB",
		"synchronous_commit": "off",
	}})
	if err != nil {
		return err
	}
	g.closers = append(g.closers, g.postgres.Remove)
	if err = g.postgres.Start(ctx); err != nil {
		return err
	}
	if g.sql, err = g.postgres.Connect(ctx, "postgres"); err != nil {
		return err
	}
	g.closers = append(g.closers, func() error { return g.sql.Close(context.WithoutCancel(ctx)) })
	return nil
}

func (g *ground) startNATS(ctx context.Context) error {
	port, err := pgcluster.FreePort()
	if err != nil {
		return err
	}
	conf := filepath.Join(g.held.Dir(), "nats.conf")
	text := fmt.Sprintf("listen: \"127.0.0.1:%d\"\njetstream { store_dir: %q, max_file_store: 64GB }\n", port, filepath.Join(g.held.Dir(), "store"))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return err
	}
	cmd, err := self("nats-server", conf)
	if err != nil {
		return err
	}
	if g.nats, err = startProcess(g.held, "nats-server", cmd); err != nil {
		return err
	}
	g.closers = append(g.closers, func() error { g.nats.kill(); return nil })
	g.natsURL = fmt.Sprintf("nats://127.0.0.1:%d", port)
	return g.connectNATS(ctx)
}

// connectNATS waits until JetStream answers.
func (g *ground) connectNATS(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := poll(bounded, "connect to nats-server", g.nats, func() (bool, error) {
		if g.conn == nil {
			conn, err := nats.Connect(g.natsURL, nats.Timeout(startTimeout))
			if err != nil {
				return false, nil //nolint:nilerr // not listening yet
			}
			g.conn = conn
			g.closers = append(g.closers, func() error { conn.Close(); return nil })
		}
		js, err := jetstream.New(g.conn)
		if err != nil {
			return false, err
		}
		g.js = js
		_, err = js.AccountInfo(bounded)
		return err == nil, nil
	})
	return err
}

// close stops everything, the last started first. It keeps going.
func (g *ground) close() error {
	var failures []error
	for i := len(g.closers) - 1; i >= 0; i-- {
		failures = append(failures, g.closers[i]())
	}
	g.closers = nil
	return errors.Join(failures...)
}

// emptyStream removes the stream and, unless config is nil, makes it anew: no contender meets another's messages,
// nor what the server remembers of their ids.
func (g *ground) emptyStream(ctx context.Context, config *jetstream.StreamConfig) error {
	err := g.js.DeleteStream(ctx, streamName)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("remove stream: %w", err)
	}
	if config == nil {
		return nil
	}
	if _, err := g.js.CreateStream(ctx, *config); err != nil {
		return fmt.Errorf("make stream: %w", err)
	}
	return nil
}

// poll asks until the answer is yes or an error; p has to run meanwhile.
func poll(ctx context.Context, what string, p *process, done func() (bool, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if yes, err := done(); yes || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-p.gone:
			return p.endedEarly()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}
