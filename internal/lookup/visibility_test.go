package lookup_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/geometry"
	"github.com/tidegate-cdc/tidegate/internal/lookup"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// hang makes the commits of other sessions wait for a standby that does not exist, until release.
func hang(t *testing.T, f *fixture) (release func()) {
	t.Helper()
	f.exec("SET synchronous_commit = local")
	set := func(sql string) {
		f.exec(sql)
		f.exec("SELECT pg_reload_conf()")
	}
	set("ALTER SYSTEM SET synchronous_standby_names = 'nosuch'")
	testkit.Eventually(t, patience, func() bool {
		return testkit.Value[string](t, f.url, "SHOW synchronous_standby_names") == "nosuch"
	}, "new sessions see the setting")
	return func() { set("ALTER SYSTEM RESET synchronous_standby_names") }
}

// commit runs statements in a transaction of another session and gives its xid once the commit is on its way.
func commit(t *testing.T, f *fixture, statements ...string) (xid uint32, done <-chan error) {
	t.Helper()
	conn := testkit.Connect(t, f.url)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range statements {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := tx.QueryRow(t.Context(), "SELECT pg_current_xact_id()::xid").Scan(&xid); err != nil {
		t.Fatal(err)
	}
	finished := make(chan error, 1)
	go func() { finished <- tx.Commit(context.Background()) }()
	return xid, finished
}

func hangs(t *testing.T, f *fixture, xid uint32) {
	t.Helper()
	testkit.Eventually(t, patience, func() bool {
		return testkit.Value[bool](t, f.url,
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_xid::text = $1", fmt.Sprint(xid))
	}, "commit of xid %d waits for a standby", xid)
}

func TestCommitThatWaitsForAStandbyIsWaitedForAndThenFound(t *testing.T) {
	f := newFixtureOn(t, testkit.Postgres(t), "id int PRIMARY KEY, version int, geom geometry")
	f.exec("INSERT INTO features VALUES (1, 1, 'SRID=4326;POINT(13.405 52.525)'), (2, 1, 'SRID=4326;POINT(3 3)')")
	release := hang(t, f)
	xid, committed := commit(t, f,
		"UPDATE features SET geom = 'SRID=4326;POINT(2.35 48.85)', version = 2 WHERE id = 1",
		"INSERT INTO features VALUES (77, 1, 'SRID=4326;POINT(1 1)')")
	hangs(t, f, xid)

	rows := []*lookup.Row{f.row("1", "2"), f.row("77", "1"), f.row("2", "1")}
	rows[0].XID, rows[1].XID = xid, xid
	answered := make(chan error, 1)
	go func() { answered <- f.lookup.Batch(t.Context(), rows) }()
	want := fmt.Sprintf("commit of xid %d waits for a synchronous standby", xid)
	testkit.Eventually(t, patience, func() bool {
		cause, waiting := f.lookup.Waiting()
		return waiting && cause == want
	}, "the cause is named: %s", want)
	select {
	case err := <-answered:
		t.Fatalf("answered before the commit was visible: %v, %q", err, rows[1].Feature.Status)
	default:
	}
	release()
	for _, c := range []<-chan error{committed, answered} {
		if err := <-c; err != nil {
			t.Fatal(err)
		}
	}
	for i, at := range []string{"[2.35,48.85]", "[1,1]", "[3,3]"} {
		wantJSON(t, rows[i].Feature, `{"type":"Point","coordinates":`+at+`}`)
		if rows[i].Feature.Status != geometry.StatusOK {
			t.Errorf("feature %s: status %q", rows[i].ID, rows[i].Feature.Status)
		}
	}
	if cause, waiting := f.lookup.Waiting(); waiting {
		t.Errorf("still waiting: %s", cause)
	}
}

func TestWaitForAStandbyIsGuessedWithoutThePrivilegeToSeeIt(t *testing.T) {
	f := newFixtureOn(t, testkit.Postgres(t), "id int PRIMARY KEY, version int, geom geometry")
	f.exec("CREATE ROLE reader LOGIN; GRANT SELECT ON features TO reader")
	release := hang(t, f)
	xid, committed := commit(t, f, "INSERT INTO features VALUES (77, 1, 'SRID=4326;POINT(1 1)')")
	hangs(t, f, xid)
	reader := open(t, as(t, f.url, "reader"))
	row := f.row("77", "1")
	row.XID = xid
	answered := make(chan error, 1)
	go func() { answered <- reader.Batch(t.Context(), []*lookup.Row{row}) }()
	testkit.Eventually(t, patience, func() bool {
		cause, _ := reader.Waiting()
		return strings.HasSuffix(cause, "it may wait for a synchronous standby")
	}, "the cause is guessed")
	release()
	for _, c := range []<-chan error{committed, answered} {
		if err := <-c; err != nil {
			t.Fatal(err)
		}
	}
	wantJSON(t, row.Feature, `{"type":"Point","coordinates":[1,1]}`)
}

func TestVisibleTransactionIsNotWaitedFor(t *testing.T) {
	f := newFixture(t, "id int PRIMARY KEY, version int, geom geometry")
	old := testkit.Connect(t, f.url) // an older transaction that stays open must not matter
	if _, err := old.Exec(t.Context(), "BEGIN; SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}
	xid, committed := commit(t, f, "INSERT INTO features VALUES (1, 1, 'SRID=4326;POINT(1 1)'), (2, 1, NULL)",
		"SAVEPOINT a", "UPDATE features SET version = 2", "RELEASE a")
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	current, stale := f.row("1", "2"), f.row("1", "3")
	gone := f.row("9", "1")
	current.XID, stale.XID, gone.XID = xid, xid, xid
	f.batch(current, stale, gone)
	for i, want := range []geometry.Status{geometry.StatusOK, geometry.StatusStale, geometry.StatusMissing} {
		if got := []*lookup.Row{current, stale, gone}[i].Feature.Status; got != want {
			t.Errorf("row %d: status %q, want %q", i, got, want)
		}
	}
}
