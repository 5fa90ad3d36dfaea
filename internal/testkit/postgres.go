package testkit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
)

// How a PG is stopped.
const (
	Fast      = pgcluster.Fast
	Immediate = pgcluster.Immediate
)

// PG is a running PostgreSQL cluster.
type PG struct {
	*pgcluster.Cluster

	mu        sync.Mutex
	databases int
	hasGIS    bool // the template database with PostGIS exists
}

// PGOption changes what Postgres makes.
type PGOption func(*pgcluster.Options)

// Conf sets one of PostgreSQL's settings.
func Conf(name, value string) PGOption {
	return func(o *pgcluster.Options) { o.Conf[name] = value }
}

// HBA replaces the rules for connections by TCP.
func HBA(rules ...string) PGOption {
	return func(o *pgcluster.Options) { o.HBA = rules }
}

// Password makes connections by TCP need one; URL carries it.
func Password(password string) PGOption {
	return func(o *pgcluster.Options) { o.Password = password }
}

// PGTLS makes connections by TCP need TLS, with the certificates' server side.
func PGTLS(certs *Certs) PGOption {
	return func(o *pgcluster.Options) {
		o.TLS = &pgcluster.TLS{Cert: certs.ServerCert, Key: certs.ServerKey, ClientCA: certs.CA}
	}
}

// BinDir chooses another PostgreSQL than the installed one.
func BinDir(dir string) PGOption {
	return func(o *pgcluster.Options) { o.BinDir = dir }
}

// Postgres starts a cluster for one test: what stops, crashes or configures the server needs its own.
func Postgres(t testing.TB, options ...PGOption) *PG {
	t.Helper()
	pg, err := startPG(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Remove(); err != nil {
			t.Error(err)
		}
	})
	showOnFailure(t, "PostgreSQL", pg.Log)
	return pg
}

// SharedPostgres gives the one cluster that all tests of the binary share; each takes a Database of its own.
func SharedPostgres(t testing.TB) *PG {
	t.Helper()
	pg, err := sharedPG()
	if err != nil {
		t.Fatal(err)
	}
	before := len(pg.Log())
	showOnFailure(t, "the shared PostgreSQL", func() string { return pg.Log()[before:] })
	return pg
}

var sharedPG = sync.OnceValues(func() (*PG, error) {
	pg, err := startPG(nil)
	if err == nil {
		shared.add(pg.Remove)
	}
	return pg, err
})

func startPG(options []PGOption) (*PG, error) {
	o := pgcluster.Options{Conf: map[string]string{}}
	for _, option := range options {
		option(&o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cluster, err := pgcluster.New(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := cluster.Start(ctx); err != nil {
		return nil, errors.Join(err, cluster.Remove())
	}
	return &PG{Cluster: cluster}, nil
}

// Start starts a stopped cluster on its old port and data.
func (pg *PG) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := pg.Cluster.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

// Stop stops the cluster and gives the time that took. It fails the test after half a minute, still stopping.
func (pg *PG) Stop(t testing.TB, mode pgcluster.Mode) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	took, err := pg.Cluster.Stop(ctx, mode)
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// Restart stops the cluster and starts it on its old port and data.
func (pg *PG) Restart(t testing.TB, mode pgcluster.Mode) {
	t.Helper()
	pg.Stop(t, mode)
	pg.Start(t)
}

// Set changes a setting from the next Start on, or from the next Reload where PostgreSQL allows that.
func (pg *PG) Set(t testing.TB, name, value string) {
	t.Helper()
	if err := pg.Cluster.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

// Backup stops the cluster, copies its data folder and starts it again.
func (pg *PG) Backup(t testing.TB) {
	t.Helper()
	pg.Stop(t, Fast)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := pg.Cluster.Backup(ctx); err != nil {
		t.Fatal(err)
	}
	pg.Start(t)
}

// Restore stops the cluster and starts it as it was at the time of Backup.
func (pg *PG) Restore(t testing.TB) { pg.restore(t, false) }

// FailOver is Restore to a standby that had come as far as Backup, and is promoted now: a new timeline begins.
func (pg *PG) FailOver(t testing.TB) {
	t.Helper()
	pg.restore(t, true)
	pg.admin(t, "postgres", "SELECT pg_promote()")
}

func (pg *PG) restore(t testing.TB, standby bool) {
	t.Helper()
	pg.Stop(t, Immediate)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := pg.Cluster.Restore(ctx, standby); err != nil {
		t.Fatal(err)
	}
	pg.Start(t)
}
