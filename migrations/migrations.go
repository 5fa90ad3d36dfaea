// Package migrations makes the tables that tidegate brings along: the outboxes, an example of a table of features, and
// the schema tidegate for what the bridge itself keeps. It never changes a table that exists already, and takes nothing
// back: tables with an application's rows are dropped by hand.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed sql/*.sql
var files embed.FS

const (
	schema       = "tidegate"
	versionTable = schema + ".schema_version"

	// lockID is the advisory lock that all who migrate a database take: "tidegate" in ASCII.
	lockID = 0x7469646567617465
)

// ErrNoPostGIS says that the database has no PostGIS where it is asked for.
var ErrNoPostGIS = errors.New("extension postgis is not installed in this database")

// Migration is one step.
type Migration struct {
	Version int64
	Name    string
	PostGIS bool // it needs the extension
}

// All lists the migrations in their order.
func All() []Migration {
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var all []Migration
	for _, path := range names {
		number, name, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(path, "sql/"), ".sql"), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic(fmt.Errorf("migration %s: %w", path, err)) // the names are ours, and tested
		}
		name, needs := strings.CutSuffix(name, "_postgis")
		all = append(all, Migration{Version: version, Name: name, PostGIS: needs})
	}
	return all
}

func (m Migration) path() string {
	suffix := ""
	if m.PostGIS {
		suffix = "_postgis"
	}
	return fmt.Sprintf("sql/%05d_%s%s.sql", m.Version, m.Name, suffix)
}

// Options say how Up treats PostGIS. With neither, migrations that need the extension wait until it is there.
type Options struct {
	CreatePostGIS  bool // install the extension where it is missing
	RequirePostGIS bool // fail with ErrNoPostGIS, before anything is changed, where it is missing

	// Waiting is called when another session is migrating and this one waits for it; may be nil.
	Waiting func()
}

// Result is what Up did.
type Result struct {
	Applied []Migration
	Waiting []Migration // they need PostGIS
	Kept    []string    // what Postgres said about tables and indexes that existed already and were left as they are
}

// Up applies what has not been applied to the database that conn leads to. It may run any number of times, in several
// processes at once: they go one after the other, and later ones find nothing to do.
func Up(ctx context.Context, conn string, o Options) (*Result, error) {
	var r Result
	config, err := parse(conn)
	if err != nil {
		return nil, err
	}
	guard, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	// Closing the connection is what releases the lock, also when the server is gone.
	defer guard.Close(context.WithoutCancel(ctx))
	if err := lock(ctx, guard, o.Waiting); err != nil {
		return nil, err
	}
	gis, err := prepare(ctx, guard, o)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["search_path"] = searchPath(gis)
	var notices sync.Mutex
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Code == "42P07" { // duplicate_table
			notices.Lock()
			defer notices.Unlock()
			r.Kept = append(r.Kept, n.Message)
		}
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	return &r, r.apply(ctx, db, gis != "")
}

// parse adds what every session of a migration needs: a name in pg_stat_activity, UTC, and a server that takes writes.
func parse(conn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(conn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["application_name"] = "tidegate_migrate"
	config.RuntimeParams["timezone"] = "UTC"
	if config.ValidateConnect == nil {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return config, nil
}

func lock(ctx context.Context, conn *pgx.Conn, waiting func()) error {
	var free bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", int64(lockID)).Scan(&free); err != nil {
		return fmt.Errorf("take migration lock: %w", err)
	}
	if free {
		return nil
	}
	if waiting != nil {
		waiting()
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(lockID)); err != nil {
		return fmt.Errorf("wait for another migration: %w", err)
	}
	return nil
}

// prepare makes what the migrations need and gives the schema that PostGIS lies in, "" without it.
func prepare(ctx context.Context, conn *pgx.Conn, o Options) (gis string, err error) {
	if o.CreatePostGIS {
		if _, err := conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS postgis"); err != nil {
			return "", fmt.Errorf("create extension postgis: %w", err)
		}
	}
	if gis, err = postGIS(ctx, conn); err != nil {
		return "", err
	}
	if gis == "" && o.RequirePostGIS {
		return "", ErrNoPostGIS
	}
	return gis, prepareVersions(ctx, conn)
}

// prepareVersions makes the schema and the table of versions. Where they exist no privilege to create is needed.
func prepareVersions(ctx context.Context, conn *pgx.Conn) error {
	var hasSchema, hasTable bool
	err := conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL, to_regclass($2) IS NOT NULL", schema, versionTable).Scan(&hasSchema, &hasTable)
	if err != nil {
		return fmt.Errorf("look for %s: %w", versionTable, err)
	}
	if !hasSchema {
		if _, err := conn.Exec(ctx, createSchema); err != nil {
			return fmt.Errorf("create schema %s: %w", schema, err)
		}
	}
	if !hasTable {
		if _, err := conn.Exec(ctx, createVersionTable+note(0)); err != nil {
			return fmt.Errorf("create table %s: %w", versionTable, err)
		}
	}
	return nil
}

func postGIS(ctx context.Context, conn *pgx.Conn) (schema string, err error) {
	const query = `SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'postgis'`
	err = conn.QueryRow(ctx, query).Scan(&schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for extension postgis: %w", err)
	}
	return schema, nil
}

// searchPath finds the types of PostGIS wherever it was installed.
func searchPath(gis string) string {
	if gis == "" || gis == "public" {
		return "public"
	}
	return "public, " + pgx.Identifier{gis}.Sanitize()
}

// apply runs goose over what the database can take. Migrations that waited for PostGIS may be older than applied ones.
func (r *Result) apply(ctx context.Context, db *sql.DB, hasPostGIS bool) error {
	steps, err := fs.Sub(files, "sql")
	if err != nil {
		return fmt.Errorf("open migrations: %w", err)
	}
	byVersion := map[int64]Migration{}
	var exclude []int64
	for _, m := range All() {
		byVersion[m.Version] = m
		if m.PostGIS && !hasPostGIS {
			exclude, r.Waiting = append(exclude, m.Version), append(r.Waiting, m)
		}
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, steps,
		goose.WithTableName(versionTable), goose.WithExcludeVersions(exclude), goose.WithAllowOutofOrder(true),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	done, err := provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		done = partial.Applied
		err = fmt.Errorf("apply migration %s: %w", byVersion[partial.Failed.Source.Version].Name, partial.Err)
	} else if err != nil {
		err = fmt.Errorf("apply migrations: %w", err)
	}
	for _, d := range done {
		r.Applied = append(r.Applied, byVersion[d.Source.Version])
	}
	return err
}
