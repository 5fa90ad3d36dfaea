package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/leash"
	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
)

const database = "demo"

// ground is what the demo stands on: a folder, a PostgreSQL cluster and a NATS server. It is gone after close, and
// also when this process ends without it.
type ground struct {
	keep     bool
	dir      string
	leash    *leash.Leash // nil when the folder is kept
	bin      string
	postgres *pgcluster.Cluster
	nats     *server.Server
	natsURL  string
}

// prepare makes everything up to an empty database and an empty JetStream. On an error nothing is left.
func prepare(ctx context.Context, keep bool, say func(string, ...any)) (_ *ground, err error) {
	g := &ground{keep: keep}
	defer func() {
		if err != nil {
			g.keep = false
			err = errors.Join(begun(ctx, err), g.close())
		}
	}()
	say("finding PostgreSQL")
	if g.bin, err = pgcluster.FindBinaries(); err != nil {
		return nil, &exit.Error{Code: exit.Postgres, Err: err, Hint: "install PostgreSQL and PostGIS: make setup"}
	}
	say("making a cluster with %s/initdb", g.bin)
	if g.postgres, err = pgcluster.New(ctx, pgcluster.Options{BinDir: g.bin}); err != nil {
		return nil, refused(err)
	}
	if err = g.makeDir(); err != nil {
		return nil, err
	}
	say("starting PostgreSQL on port %d", g.postgres.Port())
	if err = g.postgres.Start(ctx); err != nil {
		return nil, refused(err)
	}
	if err = g.makeDatabase(ctx); err != nil {
		return nil, err
	}
	say("starting NATS with JetStream")
	if g.nats, err = startNATS(filepath.Join(g.dir, "jetstream")); err != nil {
		return nil, err
	}
	g.natsURL = g.nats.ClientURL()
	return g, nil
}

// refused marks what initdb or the postmaster did not do. Their own exit codes mean nothing to our caller.
func refused(err error) error {
	return &exit.Error{Code: exit.Postgres, Err: err, Hint: "PostgreSQL says why, above; make setup installs what the demo needs"}
}

// begun is the error of a step before the first row: where ctx has ended, that is the reason, and not what broke off.
func begun(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("start the demo: %w", context.Cause(ctx))
	}
	return err
}

// makeDir makes the folder beside the cluster's own, so that the data can be moved into it at the end.
func (g *ground) makeDir() (err error) {
	parent := filepath.Dir(filepath.Dir(g.postgres.DataDir()))
	if g.dir, err = os.MkdirTemp(parent, "tidegate-demo-"); err != nil {
		return fmt.Errorf("make the demo's folder: %w", err)
	}
	if g.keep {
		return os.Chmod(g.dir, 0o711) // PostgreSQL's user must be able to pass
	}
	g.leash, err = leash.Hold(g.dir)
	return err
}

func (g *ground) makeDatabase(ctx context.Context) error {
	for _, step := range []struct{ database, sql string }{
		{"postgres", "CREATE DATABASE " + database},
		{database, "CREATE EXTENSION postgis"},
	} {
		conn, err := g.postgres.Connect(ctx, step.database)
		if err != nil {
			return fmt.Errorf("connect to the new cluster: %w", err)
		}
		_, err = conn.Exec(ctx, step.sql)
		conn.Close(ctx)
		if err != nil {
			return g.explain(step.sql, err)
		}
	}
	return nil
}

// explain says what to do where PostGIS is not installed for the PostgreSQL that was found.
func (g *ground) explain(sql string, err error) error {
	var pg *pgconn.PgError
	notThere := errors.As(err, &pg) && (pg.Code == "0A000" || pg.Code == "58P01")
	if !notThere {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return &exit.Error{
		Code: exit.Postgres,
		Err:  fmt.Errorf("PostGIS is not installed for the PostgreSQL in %s: %s", g.bin, pg.Message),
		Hint: "install it: make setup; or set " + pgcluster.BinEnv + " to the folder of a PostgreSQL that has it",
	}
}

// connect gives a connection of its own to the demo's database.
func (g *ground) connect(ctx context.Context) (*pgx.Conn, error) {
	return g.postgres.Connect(ctx, database)
}

// close stops both servers and removes what they wrote, or moves it into the folder that is kept. It keeps going.
func (g *ground) close() error {
	var failures []error
	if g.nats != nil {
		g.nats.Shutdown()
		g.nats.WaitForShutdown()
	}
	if g.postgres != nil {
		if g.keep {
			failures = append(failures, g.keepCluster())
		}
		failures = append(failures, g.postgres.Remove())
	}
	if g.leash != nil {
		failures = append(failures, g.leash.Release())
	} else if !g.keep && g.dir != "" {
		failures = append(failures, os.RemoveAll(g.dir))
	}
	return errors.Join(failures...)
}

// keepCluster stops PostgreSQL in good order and moves its data.
func (g *ground) keepCluster() error {
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	defer cancel()
	if _, err := g.postgres.Stop(ctx, pgcluster.Fast); err != nil {
		return err
	}
	return os.Rename(g.postgres.DataDir(), filepath.Join(g.dir, "postgres"))
}

// howToLook says how the servers of a kept folder are started again.
func (g *ground) howToLook() string {
	as := ""
	if os.Geteuid() == 0 {
		as = "sudo -u postgres "
	}
	port := g.natsURL[strings.LastIndexByte(g.natsURL, ':')+1:]
	return fmt.Sprintf(`kept in %[1]s
  bridge's log:    %[1]s/bridge.log
  configuration:   %[1]s/tidegate.yaml
  the database:    %[2]s%[3]s/postgres -D %[1]s/postgres -k /tmp
                   psql '%[4]s'
  the messages:    nats-server -js -sd %[1]s/jetstream -p %[5]s
                   nats -s %[6]s stream view %[7]s
  away with it:    rm -r %[1]s`,
		g.dir, as, g.bin, g.postgres.URL(database), port, g.natsURL, stream)
}
