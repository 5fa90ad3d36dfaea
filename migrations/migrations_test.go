package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/migrations"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func up(t *testing.T, url string, o migrations.Options) *migrations.Result {
	t.Helper()
	r, err := migrations.Up(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func names(all []migrations.Migration) string {
	var s []string
	for _, m := range all {
		s = append(s, m.Name)
	}
	return strings.Join(s, " ")
}

// states gives "name: state" of every migration.
func states(t *testing.T, url string) string {
	t.Helper()
	list, err := migrations.List(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, m := range list {
		if (m.State == migrations.Applied) == m.AppliedAt.IsZero() {
			t.Errorf("%s is %s, applied at %v", m.Name, m.State, m.AppliedAt)
		}
		s = append(s, m.Name+": "+m.State)
	}
	return strings.Join(s, ", ")
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func query[T any](t *testing.T, conn *pgx.Conn, sql string) (value T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

const allApplied = "outbox: applied, features: applied, parked: applied"

func TestSecondRunChangesNothing(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	if got := states(t, url); got != "outbox: pending, features: pending, parked: pending" {
		t.Errorf("before: %s", got)
	}
	if got := query[bool](t, connect(t, url), "SELECT to_regnamespace('tidegate') IS NULL"); !got {
		t.Error("status made the schema")
	}
	first := up(t, url, migrations.Options{})
	if names(first.Applied) != "outbox features parked" || len(first.Kept) != 0 {
		t.Errorf("first run: %+v", first)
	}
	second := up(t, url, migrations.Options{})
	if len(second.Applied)+len(second.Waiting)+len(second.Kept) != 0 {
		t.Errorf("second run: %+v", second)
	}
	if got := states(t, url); got != allApplied {
		t.Errorf("after: %s", got)
	}
}

func TestRunsAtTheSameTimeApplyEachMigrationOnce(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	const runs = 6
	results := make(chan *migrations.Result, runs)
	failures := make(chan error, runs)
	for range runs {
		go func() {
			r, err := migrations.Up(t.Context(), url, migrations.Options{})
			results <- r
			failures <- err
		}()
	}
	var applied []string
	for range runs {
		r, err := <-results, <-failures
		if err != nil {
			t.Error(err)
			continue
		}
		if len(r.Applied) > 0 {
			applied = append(applied, names(r.Applied))
		}
	}
	if !slices.Equal(applied, []string{"outbox features parked"}) {
		t.Errorf("applied: %q", applied)
	}
	if n := query[int](t, connect(t, url), "SELECT count(*) FROM tidegate.schema_version"); n != 4 {
		t.Errorf("%d rows of versions, want 0 to 3", n)
	}
}

func TestAnotherMigrationIsWaitedForAndTheWaitCanBeCancelled(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	exec(t, connect(t, url), "SELECT pg_advisory_lock(x'7469646567617465'::bigint)")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := migrations.Up(ctx, url, migrations.Options{Waiting: cancel})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "wait for another migration") {
		t.Errorf("got %v", err)
	}
}

func TestSpatialTablesWaitForPostGIS(t *testing.T) {
	url := testkit.SharedPostgres(t).PlainDatabase(t)
	if _, err := migrations.Up(t.Context(), url, migrations.Options{RequirePostGIS: true}); !errors.Is(err, migrations.ErrNoPostGIS) {
		t.Errorf("required: %v", err)
	}
	if got := states(t, url); got != "outbox: pending, features: needs postgis, parked: pending" {
		t.Errorf("after the refusal: %s", got)
	}
	r := up(t, url, migrations.Options{})
	if names(r.Applied) != "outbox parked" || names(r.Waiting) != "features" {
		t.Errorf("without: %+v", r)
	}
	if got := states(t, url); got != "outbox: applied, features: needs postgis, parked: applied" {
		t.Errorf("without: %s", got)
	}
	r = up(t, url, migrations.Options{CreatePostGIS: true, RequirePostGIS: true})
	if names(r.Applied) != "features" || states(t, url) != allApplied {
		t.Errorf("with: %+v, %s", r, states(t, url))
	}
}

func TestPostGISIsFoundInASchemaOfItsOwn(t *testing.T) {
	url := testkit.SharedPostgres(t).PlainDatabase(t)
	conn := connect(t, url)
	exec(t, conn, `CREATE SCHEMA "Ext ensions"`)
	exec(t, conn, `CREATE EXTENSION postgis SCHEMA "Ext ensions"`)
	up(t, url, migrations.Options{})
	if got := query[string](t, conn, "SELECT find_srid FROM \"Ext ensions\".find_srid('public', 'features', 'geom')"); got != "4326" {
		t.Errorf("srid %s", got)
	}
}

func TestExistingTableIsLeftAsItIs(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	conn := connect(t, url)
	exec(t, conn, "CREATE TABLE public.outbox (id bigint, note text)")
	exec(t, conn, "INSERT INTO public.outbox VALUES (1, 'mine')")
	r := up(t, url, migrations.Options{})
	if want := []string{`relation "outbox" already exists, skipping`}; !slices.Equal(r.Kept, want) {
		t.Errorf("kept %q", r.Kept)
	}
	if got := query[string](t, conn, "SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = 'public.outbox'::regclass AND attnum > 0"); got != "id note" {
		t.Errorf("columns %s", got)
	}
	if got := query[string](t, conn, "SELECT note FROM public.outbox"); got != "mine" {
		t.Errorf("row %s", got)
	}
}

func TestScriptDoesWhatUpDoes(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	byUp, byScript := pg.Database(t), pg.PlainDatabase(t)
	up(t, byUp, migrations.Options{})
	script, err := migrations.Script(true)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		exec(t, connect(t, byScript), script)
	}
	if got := states(t, byScript); got != allApplied {
		t.Errorf("status after the script: %s", got)
	}
	if r := up(t, byScript, migrations.Options{}); len(r.Applied) != 0 {
		t.Errorf("up after the script: %+v", r)
	}
	if a, b := describe(t, connect(t, byUp)), describe(t, connect(t, byScript)); a != b {
		t.Errorf("by up:\n%s\nby script:\n%s", a, b)
	}
}

func TestScriptWithoutPostGISKeepsAllElse(t *testing.T) {
	url := testkit.SharedPostgres(t).PlainDatabase(t)
	script, err := migrations.Script(false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, url).Exec(t.Context(), script); err == nil {
		t.Error("the spatial step did not fail")
	}
	if got := states(t, url); got != "outbox: applied, features: needs postgis, parked: applied" {
		t.Errorf("status: %s", got)
	}
}

// describe gives every column, index and table setting that the migrations made.
func describe(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	return query[string](t, conn, `
		SELECT string_agg(line, E'\n' ORDER BY line) FROM (
			SELECT format('%s.%s %s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
			              pg_get_expr(d.adbin, d.adrelid)) AS line
			  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
			 WHERE c.relname IN ('outbox', 'features', 'feature_outbox', 'parked', 'schema_version') AND c.relkind = 'r'
			UNION ALL SELECT indexdef FROM pg_indexes WHERE tablename IN ('outbox', 'features', 'feature_outbox', 'parked', 'schema_version')
			UNION ALL SELECT format('%s %s', relname, reloptions) FROM pg_class WHERE relname IN ('outbox', 'features', 'feature_outbox', 'parked')
		) lines`)
}

func TestTablesTakeWhatApplicationsWrite(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	up(t, url, migrations.Options{})
	conn := connect(t, url)
	for i := range 3 {
		exec(t, conn, fmt.Sprintf(`INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', '%d', 'OrderPlaced', '{"total": 4999}')`, i))
	}
	exec(t, conn, `INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', '1', 'OrderForgotten', NULL)`)
	if got := query[string](t, conn, "SELECT string_agg(seq::text, ' ' ORDER BY created_at, seq) FROM outbox"); got != "1 2 3 4" {
		t.Errorf("seq %s", got)
	}
	if _, err := conn.Exec(t.Context(), `INSERT INTO outbox (seq, aggregate_type, aggregate_id, event_type) VALUES (9, 'a', 'b', 'c')`); err == nil {
		t.Error("seq can be written by hand")
	}
	exec(t, conn, `INSERT INTO features (id, geom) VALUES (4471, ST_SetSRID(ST_MakePoint(13.40, 52.52), 4326))`)
	exec(t, conn, `UPDATE features SET version = version + 1, updated_at = now() WHERE id = 4471`)
	exec(t, conn, `INSERT INTO feature_outbox (feature_id, feature_version, event_type, routing_key) VALUES (4471, 2, 'moved', '881f1d4891fffff')`)
	exec(t, conn, `INSERT INTO feature_outbox (feature_id, feature_version, event_type) VALUES (4471, 3, 'retired')`)
	if got := query[int](t, conn, "SELECT sum(schema_version)::int FROM feature_outbox"); got != 4 {
		t.Errorf("schema versions add up to %d", got)
	}
	if got := query[int](t, conn, "SELECT count(*)::int FROM pg_sequence WHERE seqcache <> 1"); got != 0 {
		t.Errorf("%d sequences hand out numbers in advance", got)
	}
}
