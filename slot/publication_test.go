package slot

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func ensure(t testing.TB, c Config, create bool) (bool, error) {
	t.Helper()
	return EnsurePublication(t.Context(), testkit.Connect(t, c.URL), c.Publication, c.Tables, create)
}

func TestPublicationIsMadeOnceForInsertsOnly(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	if created, err := ensure(t, c, true); created || err != nil {
		t.Fatalf("made again: %v, %v", created, err)
	}
	kind := testkit.Value[string](t, c.URL, `SELECT concat_ws(',', pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot) FROM pg_publication`)
	if kind != "t,f,f,f,t" {
		t.Fatalf("insert,update,delete,truncate,via root: %s", kind)
	}
	c.Publication = `we"ird, name`
	if created, err := ensure(t, c, true); !created || err != nil {
		t.Fatalf("a name that needs quotes: %v, %v", created, err)
	}
	if _, err := CreateSlot(t.Context(), c, false); err != nil {
		t.Fatal(err)
	}
	k := &taker{}
	r := begin(t, c, k)
	insert(t, c, "one")
	awaitRows(t, k, 1)
	r.stop(t)
}

func TestPublicationThatYieldsTooLittleIsDriftAndItsFixMendsIt(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	spoils := map[string]string{
		"does not exist":      `DROP PUBLICATION tidegate`,
		"does not publish":    `ALTER PUBLICATION tidegate SET TABLE other`,
		"not publish inserts": `ALTER PUBLICATION tidegate SET (publish = 'update')`,
	}
	if serverVersion(t, pg) >= 15 { // before, PostgreSQL had no row filters
		spoils["publishes only the row"] = `ALTER PUBLICATION tidegate SET TABLE outbox WHERE (id > 7)`
	}
	for name, spoil := range spoils {
		c := newConfig(t, pg)
		testkit.Exec(t, c.URL, `CREATE TABLE other (id int); `+spoil)
		_, err := ensure(t, c, false)
		var drift *DriftError
		if !errors.As(err, &drift) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fix, _, _ := strings.Cut(Explain(err), "; a slot")
		testkit.Exec(t, c.URL, fix)
		if _, err := ensure(t, c, false); err != nil {
			t.Errorf("%s: after %s: %v", name, fix, err)
		}
	}
}

func TestSomebodysPublicationIsNotAltered(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	testkit.Exec(t, c.URL, `CREATE TABLE other (id int); ALTER PUBLICATION tidegate SET TABLE other`)
	var drift *DriftError
	if created, err := ensure(t, c, true); created || !errors.As(err, &drift) {
		t.Fatalf("%v, %v", created, err)
	}
	if got := testkit.Column[string](t, c.URL, `SELECT tablename::text FROM pg_publication_tables`); len(got) != 1 || got[0] != "other" {
		t.Fatalf("the publication holds %v", got)
	}
}

func TestPartitionsArePublishedUnderTheirRoot(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	testkit.Exec(t, c.URL, `CREATE TABLE parted (id int, payload text) PARTITION BY RANGE (id);
		CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (100)`)
	c.Tables, c.Publication = []string{"public.parted"}, "parted"
	if _, err := ensure(t, c, true); err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, c.URL, `ALTER PUBLICATION parted SET (publish_via_partition_root = false)`)
	var drift *DriftError
	if _, err := ensure(t, c, false); !errors.As(err, &drift) || !strings.Contains(Explain(err), "publish_via_partition_root = true") {
		t.Fatalf("%v", err)
	}
}

func TestTablesThatCannotBePublishedAreRefused(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	c := newConfig(t, pg)
	testkit.Exec(t, c.URL, `CREATE UNLOGGED TABLE fast (id int); CREATE VIEW seen AS SELECT 1; CREATE SCHEMA "odd.one"`)
	for table, text := range map[string]string{"public.absent": "does not exist", "public.fast": "unlogged", "public.seen": "no table", "nodot": "does not exist"} {
		c.Tables = []string{"public.outbox", table}
		_, err := ensure(t, c, true)
		wantRefused(t, err, text, "")
	}
}

func TestStrangerToTheTableIsToldWhatItsOwnerMustRun(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	testkit.Exec(t, c.URL, `DROP PUBLICATION tidegate`)
	stranger := asRole(t, c, "REPLICATION")
	_, err := ensure(t, stranger, true)
	wantRefused(t, err, "permission denied", `CREATE PUBLICATION "tidegate" FOR TABLE "public"."outbox"`)
	_, sql, _ := strings.Cut(Explain(err), "run: ")
	testkit.Exec(t, c.URL, sql)
	if _, err := ensure(t, stranger, true); err != nil {
		t.Fatal(err)
	}
}
