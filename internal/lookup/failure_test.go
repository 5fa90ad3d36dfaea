package lookup_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/geometry"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/lookup"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// as gives the URL for another role.
func as(t testing.TB, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

func TestWhatCannotPassByItselfEndsTheBatchWithAHint(t *testing.T) {
	tests := []struct {
		name   string
		setup  string
		change func(*lookup.Table)
		role   string
		code   int
		text   string
	}{
		{
			name: "row security", role: "filtered", code: exit.Postgres, text: "row-level security",
			setup: "DROP ROLE IF EXISTS filtered; CREATE ROLE filtered LOGIN; GRANT SELECT ON features TO filtered; ALTER TABLE features ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON features USING (version = 1)",
		},
		{name: "no privilege", role: "bare", code: exit.Postgres, text: "permission denied for table features", setup: "DROP ROLE IF EXISTS bare; CREATE ROLE bare LOGIN"},
		{name: "no such role", role: "nobody", code: exit.Postgres, text: `role "nobody" does not exist`},
		{
			name: "no such table", code: exit.Drift, text: "the table does not exist",
			change: func(table *lookup.Table) { table.Table = "public.nosuch" },
		},
		{
			name: "no such geometry", code: exit.Drift, text: `column "shape" does not exist`,
			change: func(table *lookup.Table) { table.Geom = "shape" },
		},
		{
			name: "no such version", code: exit.Drift, text: `column "rev" does not exist`,
			change: func(table *lookup.Table) { table.Version = "rev" },
		},
		{
			name: "no such key", code: exit.Drift, text: `column "nr" does not exist`,
			change: func(table *lookup.Table) { table.ID = "nr" },
		},
		{
			name: "geometry of another type", code: exit.Drift, text: "cannot cast",
			change: func(table *lookup.Table) { table.Geom = "version" },
		},
		{name: "no PostGIS", code: exit.Postgres, text: "no PostGIS", setup: "DROP EXTENSION postgis CASCADE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, "id int PRIMARY KEY, version int, geom geometry")
			if tt.setup != "" {
				f.exec(tt.setup)
			}
			if tt.change != nil {
				tt.change(&f.table)
			}
			l := f.lookup
			if tt.role != "" {
				l = open(t, as(t, f.url, tt.role))
			}
			err := l.Batch(t.Context(), []*lookup.Row{f.row("1", "1")})
			if err == nil || exit.Code(err) != tt.code || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v (code %d), want %q with code %d", err, exit.Code(err), tt.text, tt.code)
			}
			if exit.Hint(err) == "" {
				t.Error("no hint")
			}
		})
	}
}

func TestTableThatChangedMeanwhileIsReadAsItIsNow(t *testing.T) {
	f := newFixture(t, "id text PRIMARY KEY, version text, geom geometry")
	f.exec("INSERT INTO features VALUES ('1', '1', 'SRID=4326;POINT(1 1)')")
	changes := []string{
		"ALTER TABLE features ALTER id TYPE bigint USING id::bigint, ALTER version TYPE int USING version::int",
		"ALTER TABLE features ALTER geom TYPE geography",
		"BEGIN; DROP TABLE features; CREATE TABLE features (geom geometry, version bigint, id uuid); COMMIT",
	}
	row := f.row("1", "1")
	f.batch(row)
	for _, change := range changes[:2] {
		f.exec(change)
		f.batch(row)
		wantJSON(t, row.Feature, `{"type":"Point","coordinates":[1,1]}`)
	}
	f.exec(changes[2])
	f.batch(row)
	if row.Feature.Status != geometry.StatusMissing {
		t.Errorf("status %q in the new table", row.Feature.Status)
	}
}

func TestServerRestartedInTheMiddleOfABatchIsAskedAgain(t *testing.T) {
	pg := testkit.Postgres(t)
	f := newFixtureOn(t, pg, "id int PRIMARY KEY, version int, geom geometry")
	f.exec("INSERT INTO features SELECT i, 1, ST_SetSRID(ST_MakePoint(i, 1), 4326) FROM generate_series(1, 100) AS i")
	f.exec("CREATE TABLE lock (); CREATE FUNCTION gate(geometry) RETURNS geometry LANGUAGE plpgsql AS $$ BEGIN PERFORM FROM lock; RETURN $1; END $$")
	f.exec("CREATE VIEW gated AS SELECT id, version, gate(geom) AS geom FROM features")
	f.table.Table = "public.gated"
	var rows []*lookup.Row
	for i := range 100 {
		rows = append(rows, f.row(string('0'+rune(i%10)), "1"))
	}
	f.exec("BEGIN; LOCK TABLE lock") // the batch stands still in the middle
	answered := make(chan error, 1)
	go func() { answered <- f.lookup.Batch(t.Context(), rows) }()
	testkit.Eventually(t, patience, func() bool {
		return testkit.Value[bool](t, f.url,
			"SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'tidegate lookup' AND wait_event_type = 'Lock'")
	}, "the batch is being answered")
	pg.Stop(t, testkit.Immediate)
	testkit.Eventually(t, patience, func() bool {
		cause, waiting := f.lookup.Waiting()
		return waiting && strings.HasPrefix(cause, "geometry look-up: ") && !strings.Contains(cause, "127.0.0.1")
	}, "the cause is named")
	pg.Start(t)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		want := geometry.StatusOK
		if i%10 == 0 {
			want = geometry.StatusMissing
		}
		if r.Feature.Status != want {
			t.Errorf("row %d: status %q, want %q", i, r.Feature.Status, want)
		}
	}
}

func TestStandbyIsNotTrusted(t *testing.T) {
	pg := testkit.Postgres(t)
	f := newFixtureOn(t, pg, "id int PRIMARY KEY, version int, geom geometry")
	standby(t, pg)
	answered := make(chan error, 1)
	go func() { answered <- f.lookup.Batch(t.Context(), []*lookup.Row{f.row("1", "1")}) }()
	testkit.Eventually(t, patience, func() bool {
		cause, _ := f.lookup.Waiting()
		return strings.Contains(cause, "is a standby")
	}, "the cause is named")
	testkit.Exec(t, f.url, "SELECT pg_promote()")
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
}

// standby starts the cluster again as a standby that follows nobody.
func standby(t *testing.T, pg *testkit.PG) {
	t.Helper()
	pg.Stop(t, testkit.Fast)
	file := filepath.Join(pg.DataDir(), "standby.signal")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	pg.Start(t)
}

func TestUnreadableURLIsRefusedAtOnce(t *testing.T) {
	if _, err := lookup.New("postgres://localhost:port/app", nil); err == nil {
		t.Error("no error")
	}
}
