package lookup_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/geometry"
	"github.com/tidegate-cdc/tidegate/internal/lookup"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

const patience = 30 * time.Second

// fixture is a database of its own with a table features, and a Lookup on it.
type fixture struct {
	t      testing.TB
	url    string
	conn   *pgx.Conn
	table  lookup.Table
	lookup *lookup.Lookup
}

func TestMain(m *testing.M) { testkit.Main(m) }

func newFixture(t testing.TB, columns string) *fixture {
	t.Helper()
	return newFixtureOn(t, testkit.SharedPostgres(t), columns)
}

func newFixtureOn(t testing.TB, pg *testkit.PG, columns string) *fixture {
	t.Helper()
	f := &fixture{t: t, url: pg.Database(t)}
	f.conn = testkit.Connect(t, f.url)
	f.exec("CREATE TABLE features (" + columns + ")")
	f.table = lookup.Table{Table: "public.features", ID: "id", Version: "version", Geom: "geom", AssumeSRID: 4326, MaxBytes: 1 << 20}
	f.lookup = open(t, f.url)
	return f
}

func open(t testing.TB, url string) *lookup.Lookup {
	t.Helper()
	l, err := lookup.New(url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.conn.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
}

func (f *fixture) row(id, version string) *lookup.Row {
	return &lookup.Row{Table: &f.table, ID: []byte(id), Version: []byte(version), Feature: &geometry.Feature{}}
}

func (f *fixture) batch(rows ...*lookup.Row) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if err := f.lookup.Batch(ctx, rows); err != nil {
		f.t.Fatal(err)
	}
}

func wantJSON(t *testing.T, g *geometry.Feature, want string) {
	t.Helper()
	if string(g.JSON) != want {
		t.Errorf("geometry %s (%s), want %s", g.JSON, g.Status, want)
	}
}
