package slot

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// cataloged makes an outbox and a partitioned one in a publication, with another table beside them.
func cataloged(t *testing.T, pg *testkit.PG) (Config, *pgx.Conn) {
	t.Helper()
	c := newConfig(t, pg)
	testkit.Exec(t, c.URL, `CREATE TABLE other (id int PRIMARY KEY);
		CREATE TABLE parted (id int, payload text) PARTITION BY RANGE (id);
		CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (100);
		CREATE TABLE parted_2 (id int, payload text);
		ALTER PUBLICATION tidegate ADD TABLE parted`)
	c.Tables = append(c.Tables, "public.parted")
	conn, err := ConnectSQL(t.Context(), c, "drift")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSQL(conn) })
	return c, conn
}

func readingCatalog(t *testing.T, c Config, conn *pgx.Conn) *Catalog {
	t.Helper()
	now, err := ReadCatalog(t.Context(), conn, c.Publication, c.Tables)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func TestWhatLeavesNoRowOutIsNoDrift(t *testing.T) {
	c, conn := cataloged(t, testkit.SharedPostgres(t))
	base := readingCatalog(t, c, conn)
	if !base.Equal(readingCatalog(t, c, conn)) || base.Open(nil) {
		t.Fatal("a catalog that nobody touches has changed")
	}
	for _, sql := range []string{
		`ALTER PUBLICATION tidegate ADD TABLE other`,
		`ALTER PUBLICATION tidegate SET TABLE outbox, parted`,
		`ALTER PUBLICATION tidegate ADD TABLE other`,
		`ALTER PUBLICATION tidegate DROP TABLE other`,
		`COMMENT ON PUBLICATION tidegate IS 'ours'`,
		`CREATE INDEX ON outbox (payload); CREATE INDEX ON parted (payload)`,
		`ANALYZE`,
		`VACUUM`,
		`VACUUM FULL outbox`,
		`VACUUM FREEZE pg_publication`,
		`VACUUM FULL pg_publication_rel`,
		`TRUNCATE outbox`,
		`GRANT SELECT ON outbox TO public`,
		`ALTER TABLE outbox ADD COLUMN more int`,
		`ALTER TABLE outbox SET (autovacuum_enabled = false)`,
		`ALTER TABLE outbox REPLICA IDENTITY FULL`,
		`ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (100) TO (200)`,
		`CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM (200) TO (300)`,
		`ALTER TABLE parted DETACH PARTITION parted_1`,
		`BEGIN; ALTER PUBLICATION tidegate SET (publish = 'update'); ROLLBACK`,
		`CREATE PUBLICATION another FOR TABLE outbox; DROP PUBLICATION another`,
		`SELECT FROM pg_publication FOR UPDATE`,
	} {
		before := base
		testkit.Exec(t, c.URL, sql)
		now := readingCatalog(t, c, conn)
		again := readingCatalog(t, c, conn)
		if err := before.Compare(now, c.Publication); err != nil || again.Open(now) {
			t.Errorf("%s: %v, open %v", sql, err, again.Open(now))
		}
	}
}

func TestWhatMayHaveLeftRowsOutIsDriftAlthoughItIsMended(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	version15 := testkit.Value[int](t, pg.URL("postgres"), `SELECT current_setting('server_version_num')::int`) >= 150000
	for _, tc := range []struct{ says, sql string }{
		{"publication tidegate: it was altered", `ALTER PUBLICATION tidegate SET (publish = 'update'); ALTER PUBLICATION tidegate SET (publish = 'insert')`},
		{"publication tidegate: it was altered", `ALTER PUBLICATION tidegate RENAME TO away; ALTER PUBLICATION away RENAME TO tidegate`},
		{"publication tidegate: it was altered", `ALTER PUBLICATION tidegate SET (publish_via_partition_root = false); ALTER PUBLICATION tidegate SET (publish_via_partition_root = true)`},
		{"publication tidegate: it was dropped", `DROP PUBLICATION tidegate; CREATE PUBLICATION tidegate FOR TABLE outbox, parted WITH (publish = 'insert', publish_via_partition_root = true)`},
		{"table public.outbox: publication tidegate was altered", `ALTER PUBLICATION tidegate SET TABLE other, parted; ALTER PUBLICATION tidegate SET TABLE outbox, parted`},
		{"table public.parted: publication tidegate was altered", `ALTER PUBLICATION tidegate DROP TABLE parted; ALTER PUBLICATION tidegate ADD TABLE parted`},
		{"table public.outbox: publication tidegate was altered", `15 ALTER PUBLICATION tidegate SET TABLE outbox WHERE (id > 7), parted; ALTER PUBLICATION tidegate SET TABLE outbox, parted`},
		{"table public.outbox: publication tidegate was altered", `15 ALTER PUBLICATION tidegate SET TABLE outbox (id), parted; ALTER PUBLICATION tidegate SET TABLE outbox, parted`},
		{"table public.outbox: it is another", `DROP TABLE outbox; CREATE TABLE outbox (id int, payload text); ALTER PUBLICATION tidegate ADD TABLE outbox`},
		{"table public.parted: it, or a partition", `CREATE UNLOGGED TABLE fast PARTITION OF parted FOR VALUES FROM (900) TO (999)`},
	} {
		sql, newer := strings.CutPrefix(tc.sql, "15 ")
		if newer && !version15 {
			continue
		}
		c, conn := cataloged(t, pg)
		base := readingCatalog(t, c, conn)
		testkit.Exec(t, c.URL, sql)
		now := readingCatalog(t, c, conn)
		var drift *DriftError
		if err := base.Compare(now, c.Publication); base.Equal(now) || !errors.As(err, &drift) || !strings.Contains(err.Error(), tc.says) || len(drift.Tables) == 0 {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// A schema in the publication holds the table too: then taking the table out leaves nothing out.
func TestTableThatIsHeldTwiceMayLoseOne(t *testing.T) {
	c, conn := cataloged(t, testkit.SharedPostgres(t))
	testkit.Exec(t, c.URL, `ALTER PUBLICATION tidegate ADD TABLES IN SCHEMA public`)
	base := readingCatalog(t, c, conn)
	testkit.Exec(t, c.URL, `ALTER PUBLICATION tidegate DROP TABLE outbox`)
	now := readingCatalog(t, c, conn)
	if err := base.Compare(now, c.Publication); err != nil || base.Equal(now) {
		t.Fatalf("the schema holds it: %v", err)
	}
	testkit.Exec(t, c.URL, `ALTER PUBLICATION tidegate ADD TABLE outbox; ALTER PUBLICATION tidegate DROP TABLES IN SCHEMA public`)
	var drift *DriftError
	if err := now.Compare(readingCatalog(t, c, conn), c.Publication); !errors.As(err, &drift) {
		t.Fatalf("held by another than before: %v", err)
	}
}

// A change that is not visible may be committed in the WAL already: in front of the position that was read before it.
func TestChangeThatIsNotVisibleYetIsOpen(t *testing.T) {
	c, conn := cataloged(t, testkit.SharedPostgres(t))
	base := readingCatalog(t, c, conn)
	for _, sql := range []string{
		`ALTER PUBLICATION tidegate SET (publish = 'update')`,
		`SAVEPOINT a; ALTER PUBLICATION tidegate SET (publish = 'update'); RELEASE a`,
		`DROP PUBLICATION tidegate`,
		`ALTER PUBLICATION tidegate SET TABLE other`,
		`ALTER TABLE outbox RENAME TO away`,
		`DROP TABLE outbox`,
	} {
		other := testkit.Connect(t, c.URL)
		if _, err := other.Exec(t.Context(), "BEGIN; "+sql); err != nil {
			t.Fatal(err)
		}
		now := readingCatalog(t, c, conn)
		if !now.Open(base) || !now.Equal(base) {
			t.Errorf("%s: open %v, equal %v", sql, now.Open(base), now.Equal(base))
		}
		if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		other.Close(context.Background())
		if now := readingCatalog(t, c, conn); now.Open(base) || !now.Equal(base) {
			t.Errorf("%s: open after it was rolled back", sql)
		}
	}
}

// TestCommitThatWaitsForAStandbyIsOpen: decoded by everybody, seen by nobody.
func TestCommitThatWaitsForAStandbyIsOpen(t *testing.T) {
	pg := testkit.Postgres(t)
	c, conn := cataloged(t, pg)
	base := readingCatalog(t, c, conn)
	testkit.Exec(t, c.URL, `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
	testkit.Exec(t, c.URL, `SELECT pg_reload_conf()`)
	testkit.Eventually(t, patience, func() bool {
		return testkit.Value[string](t, c.URL, `SHOW synchronous_standby_names`) == "nobody"
	}, "the setting is in force")
	altering := testkit.Connect(t, c.URL+applicationName(c.URL, "altering"))
	done := make(chan error, 1)
	go func() {
		_, err := altering.Exec(context.Background(), `ALTER PUBLICATION tidegate SET (publish = 'update')`)
		done <- err
	}()
	testkit.Eventually(t, patience, func() bool {
		return testkit.Value[int](t, c.URL, `SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'altering' AND wait_event = 'SyncRep'`) == 1
	}, "the commit waits")
	if now := readingCatalog(t, c, conn); !now.Open(base) || !now.Equal(base) {
		t.Fatalf("open %v, equal %v", now.Open(base), now.Equal(base))
	}
	testkit.Exec(t, c.URL, `ALTER SYSTEM RESET synchronous_standby_names`)
	testkit.Exec(t, c.URL, `SELECT pg_reload_conf()`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if now := readingCatalog(t, c, conn); now.Open(base) || base.Compare(now, c.Publication) == nil {
		t.Fatal("the change is visible, and no drift")
	}
}
