package relay_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// drifting is a bridge that has published a row and confirmed what came before.
type drifting struct {
	*bridge
	url  string
	nats *testkit.NATSServer
	js   jetstream.JetStream
	cfg  *config.Config
}

func newDrifting(t *testing.T, table string) *drifting {
	t.Helper()
	d := &drifting{url: testkit.SharedPostgres(t).Database(t), nats: testkit.NATS(t)}
	testkit.Exec(t, d.url, table)
	d.js = d.nats.JetStream(t)
	d.cfg = load(t, eventConfig+"slot: {snapshot: publish, name: {{.Slot}}}\n", map[string]string{
		"PG": d.url, "NATS": d.nats.URL(), "Slot": testkit.Value[string](t, d.url, "SELECT current_database()::text"),
	})
	d.run(t)
	testkit.Exec(t, d.url, insertRow)
	testkit.Eventually(t, 20*time.Second, func() bool { return messages(t, d.js, "OUTBOX") == 1 }, "no row arrives")
	return d
}

func (d *drifting) run(t *testing.T) {
	t.Helper()
	d.bridge = start(t, d.cfg)
	testkit.Eventually(t, 20*time.Second, func() bool { return slots(t, d.url, "active AND confirmed_flush_lsn IS NOT NULL") == 1 }, "the slot is not taken")
}

// spoil runs statements in one transaction and gives a position in the WAL in front of its commit.
func (d *drifting) spoil(t *testing.T, sql string) decoder.LSN {
	t.Helper()
	conn := testkit.Connect(t, d.url)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "BEGIN; "+sql); err != nil {
		t.Fatal(err)
	}
	var text string
	if err := conn.QueryRow(t.Context(), "SELECT pg_current_wal_insert_lsn()::text").Scan(&text); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	return parseLSN(t, text)
}

func parseLSN(t *testing.T, text string) decoder.LSN {
	t.Helper()
	lsn, err := decoder.ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

// ends waits for the bridge to end with drift, and finds that nothing behind the change was confirmed.
func (d *drifting) ends(t *testing.T, before decoder.LSN, says string) error {
	t.Helper()
	began := time.Now()
	err := d.wait(t, 5*time.Second)
	t.Logf("after %s: %v\n%s", time.Since(began).Round(time.Millisecond), err, exit.Hint(err))
	if exit.Code(err) != exit.Drift || !strings.Contains(err.Error(), says) || exit.Hint(err) == "" {
		t.Fatalf("ended with code %d, and does not say %q", exit.Code(err), says)
	}
	confirmed := parseLSN(t, testkit.Value[string](t, d.url, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE database = current_database()"))
	if confirmed > before {
		t.Fatalf("confirmed %s, behind the change at %s", confirmed, before)
	}
	return err
}

// mend runs the SQL that a hint begins with.
func (d *drifting) mend(t *testing.T, err error) {
	t.Helper()
	sql, _, _ := strings.Cut(exit.Hint(err), "; then start again")
	sql, _, _ = strings.Cut(sql, "; should it be missing still")
	sql, _, _ = strings.Cut(sql, "; a slot that is older")
	if regexp.MustCompile(`^(ALTER|CREATE)`).MatchString(sql) {
		testkit.Exec(t, d.url, sql)
	}
	d.run(t)
	stored := messages(t, d.js, "OUTBOX")
	testkit.Exec(t, d.url, insertRow)
	testkit.Eventually(t, 20*time.Second, func() bool { return messages(t, d.js, "OUTBOX") > stored }, "after the mending no row arrives")
	if err := d.end(t); err != nil {
		t.Fatal(err)
	}
}

const partedTable = `CREATE TABLE outbox (
	id uuid DEFAULT gen_random_uuid(), seq bigint GENERATED ALWAYS AS IDENTITY (CACHE 1),
	aggregate_type text NOT NULL, aggregate_id text NOT NULL, event_type text NOT NULL, payload jsonb,
	created_at timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (created_at);
	CREATE TABLE outbox_all PARTITION OF outbox FOR VALUES FROM ('2000-01-01') TO ('2100-01-01')`

// Each of these makes PostgreSQL leave rows out, or would, without an error.
func TestWhatLeavesRowsOutEndsTheBridgeWithTheWindowAtRisk(t *testing.T) {
	for name, tc := range map[string]struct{ table, sql, says string }{
		"publication dropped":       {outboxTable, "DROP PUBLICATION tidegate", "publication tidegate: it does not exist"},
		"other table":               {outboxTable, "CREATE TABLE other (a int); ALTER PUBLICATION tidegate SET TABLE other", "does not publish public.outbox"},
		"inserts left out":          {outboxTable, "ALTER PUBLICATION tidegate SET (publish = 'update')", "does not publish inserts"},
		"table made again":          {outboxTable, "DROP TABLE outbox; " + outboxTable, "does not publish public.outbox"},
		"table made again, added":   {outboxTable, "DROP TABLE outbox; " + outboxTable + "; ALTER PUBLICATION tidegate ADD TABLE outbox", "table public.outbox: it is another table"},
		"row filter":                {outboxTable, "ALTER PUBLICATION tidegate SET TABLE outbox WHERE (event_type <> 'placed')", "publishes only the rows"},
		"altered and altered back":  {outboxTable, "ALTER PUBLICATION tidegate SET (publish = 'update'); ALTER PUBLICATION tidegate SET (publish = 'insert')", "publication tidegate: it was altered"},
		"partitions for themselves": {partedTable, "ALTER PUBLICATION tidegate SET (publish_via_partition_root = false)", "does not publish public.outbox under that name"},
		"one partition only":        {partedTable, "ALTER PUBLICATION tidegate SET TABLE outbox_all", "does not publish public.outbox"},
		"unlogged partition":        {partedTable, "CREATE UNLOGGED TABLE outbox_fast PARTITION OF outbox FOR VALUES FROM ('2200-01-01') TO ('2300-01-01')", "outbox_fast is unlogged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrifting(t, tc.table)
			before := d.spoil(t, tc.sql)
			if name != "publication dropped" { // a row would be decoded without it, and the slot be stuck
				testkit.Exec(t, d.url, insertRow)
			}
			err := d.ends(t, before, tc.says)
			for _, part := range []string{"committed between", "nothing behind", "public.outbox"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("it does not say %q", part)
				}
			}
			if hint := exit.Hint(err); !strings.Contains(hint, `SELECT * FROM "public"."outbox" WHERE "created_at" >= '`) {
				t.Errorf("it does not say how the rows are had: %s", hint)
			}
			d.mend(t, err)
		})
	}
}

// A column's change is seen before any row of the new shape, so no row is left out.
func TestColumnThatChangesUnderTheBridgeLosesNoRow(t *testing.T) {
	for name, tc := range map[string]struct{ sql, back string }{
		"renamed": {
			"ALTER TABLE outbox RENAME COLUMN event_type TO kind; INSERT INTO outbox (aggregate_type, aggregate_id, kind) VALUES ('order', 'o', 'placed')",
			"ALTER TABLE outbox RENAME COLUMN kind TO event_type",
		},
		"of another type": {"ALTER TABLE outbox ALTER created_at DROP DEFAULT, ALTER created_at TYPE text; INSERT INTO outbox (aggregate_type, aggregate_id, event_type, created_at) VALUES ('order', 'o', 'placed', 'now')", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrifting(t, outboxTable)
			before := d.spoil(t, tc.sql)
			d.ends(t, before, "column")
		})
	}
}

// TestStuckSlotSaysHowToBeginAnew: from PostgreSQL 13 to 17 a slot cannot pass a row that was written without the
// publication.
func TestStuckSlotSaysHowToBeginAnew(t *testing.T) {
	d := newDrifting(t, outboxTable)
	before := d.spoil(t, "DROP PUBLICATION tidegate; "+insertRow)
	testkit.Exec(t, d.url, insertRow)
	err := d.ends(t, before, "publication tidegate")
	sql, _, _ := strings.Cut(exit.Hint(err), ";")
	testkit.Exec(t, d.url, sql)
	d.bridge = start(t, d.cfg)
	stuck := d.ends(t, before, "does not exist at the slot's position")
	if hint := exit.Hint(stuck); !strings.Contains(hint, "SELECT pg_drop_replication_slot('") || !strings.Contains(hint, "tidegate accept") {
		t.Fatalf("it says %s", hint)
	}
	testkit.Exec(t, d.url, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()")
	kv, err := d.js.KeyValue(t.Context(), "tidegate")
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Delete(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	d.run(t)
	testkit.Eventually(t, 20*time.Second, func() bool { return messages(t, d.js, "OUTBOX") >= 3 }, "the rows are not published again")
	if err := d.end(t); err != nil {
		t.Fatal(err)
	}
}

// TestRowsThatAreLeftOutUnderLoadAreAmongThoseThatTheHintFinds alters and alters back between two looks.
func TestRowsThatAreLeftOutUnderLoadAreAmongThoseThatTheHintFinds(t *testing.T) {
	d := newDrifting(t, outboxTable)
	end := busy(t, d.url)
	testkit.Eventually(t, 30*time.Second, func() bool { return messages(t, d.js, "OUTBOX") > 200 }, "no progress")
	before := d.spoil(t, "ALTER PUBLICATION tidegate SET (publish = 'update')")
	rows := func() int { return testkit.Value[int](t, d.url, "SELECT count(*)::int FROM outbox") }
	was := rows()
	testkit.Eventually(t, 5*time.Second, func() bool { return rows() > was+20 }, "nobody writes")
	testkit.Exec(t, d.url, "ALTER PUBLICATION tidegate SET (publish = 'insert')")
	err := d.ends(t, before, "publication tidegate")
	end()
	d.run(t)
	testkit.Exec(t, d.url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ('order', 'last', 'placed')")
	stored := idsUntil(t, d.js, "last")
	if err := d.end(t); err != nil {
		t.Fatal(err)
	}
	query := regexp.MustCompile(`SELECT \* (FROM "public"."outbox" WHERE "created_at" >= '[^']+')`).FindStringSubmatch(exit.Hint(err))
	found := map[string]bool{}
	for _, id := range testkit.Column[string](t, d.url, "SELECT id::text "+query[1]) {
		found[id] = true
	}
	missing := 0
	for _, id := range testkit.Column[string](t, d.url, "SELECT id::text FROM outbox") {
		if stored["app/public.outbox/"+id] {
			continue
		}
		missing++
		if !found[id] {
			t.Errorf("row %s is missing in the stream, and the hint does not find it", id)
		}
	}
	if missing == 0 {
		t.Fatal("no row was left out: the test has shown nothing")
	}
	t.Logf("%d rows were left out", missing)
}

// idsUntil reads the stream until a message of an aggregate.
func idsUntil(t *testing.T, js jetstream.JetStream, until string) map[string]bool {
	t.Helper()
	consumer, err := js.OrderedConsumer(t.Context(), "OUTBOX", jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for {
		m, err := consumer.Next(jetstream.FetchMaxWait(20 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		ids[m.Headers().Get("Nats-Msg-Id")] = true
		if m.Headers().Get("Tidegate-Aggregate-Id") == until {
			return ids
		}
	}
}

// A publication that changes where nobody is left out goes on.
func TestOtherTablesInThePublicationDoNotDisturb(t *testing.T) {
	d := newDrifting(t, outboxTable)
	for i, sql := range []string{
		"CREATE TABLE other (a int); ALTER PUBLICATION tidegate ADD TABLE other", "ALTER PUBLICATION tidegate DROP TABLE other",
		"CREATE INDEX ON outbox (aggregate_id)", "ALTER TABLE outbox ADD COLUMN more text", "GRANT SELECT ON outbox TO public",
	} {
		testkit.Exec(t, d.url, sql)
		testkit.Exec(t, d.url, insertRow)
		end := parseLSN(t, testkit.Value[string](t, d.url, "SELECT pg_current_wal_insert_lsn()::text"))
		testkit.Eventually(t, 20*time.Second, func() bool {
			return slots(t, d.url, fmt.Sprintf("confirmed_flush_lsn >= '%s'", end)) == 1
		}, "after %s nothing is confirmed", sql)
		if n := messages(t, d.js, "OUTBOX"); n != uint64(i+2) {
			t.Fatalf("%d messages after %s", n, sql)
		}
	}
	if err := d.end(t); err != nil {
		t.Fatal(err)
	}
}

// While a change is in the WAL and not visible, what lies behind it may be incomplete: it is stored, and not confirmed.
func TestNothingIsConfirmedBehindAChangeThatIsNotVisible(t *testing.T) {
	d := newDrifting(t, outboxTable)
	conn := testkit.Connect(t, d.url)
	if _, err := conn.Exec(t.Context(), "BEGIN; ALTER PUBLICATION tidegate SET (publish = 'update')"); err != nil {
		t.Fatal(err)
	}
	before := parseLSN(t, testkit.Value[string](t, d.url, "SELECT pg_current_wal_insert_lsn()::text"))
	testkit.Exec(t, d.url, insertRow)
	testkit.Eventually(t, 20*time.Second, func() bool { return messages(t, d.js, "OUTBOX") == 2 }, "the row is not stored")
	if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, d.url, insertRow)
	d.ends(t, before, "does not publish inserts")
}

// A stream that was narrowed does not answer, as during an election.
func TestStreamThatWasNarrowedEndsTheBridgeSoon(t *testing.T) {
	d := newDrifting(t, outboxTable)
	narrow := func(subjects ...string) {
		st, err := d.js.Stream(t.Context(), "OUTBOX")
		if err != nil {
			t.Fatal(err)
		}
		cfg := st.CachedInfo().Config
		cfg.Subjects = subjects
		if _, err := d.js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	st, err := d.js.Stream(t.Context(), "OUTBOX")
	if err != nil {
		t.Fatal(err)
	}
	whole := st.CachedInfo().Config.Subjects
	narrow("elsewhere")
	before := d.spoil(t, insertRow)
	d.ends(t, before, "OUTBOX")
	narrow(whole...)
	d.run(t)
	testkit.Eventually(t, 20*time.Second, func() bool { return messages(t, d.js, "OUTBOX") == 2 }, "the row is lost")
	if err := d.end(t); err != nil {
		t.Fatal(err)
	}
}
