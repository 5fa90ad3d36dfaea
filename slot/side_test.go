package slot

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func inspect(t testing.TB, c Config) *Server {
	t.Helper()
	s, err := Inspect(t.Context(), testkit.Connect(t, c.URL), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asRole gives the configuration with another role, made for the test with the given attributes.
func asRole(t testing.TB, c Config, attributes string) Config {
	t.Helper()
	role := "role_" + c.Slot
	testkit.Exec(t, c.URL, "CREATE ROLE "+role+" LOGIN "+attributes)
	owner := c.URL
	t.Cleanup(func() { dropRole(t, owner, role) })
	c.URL = replaceRole(t, c.URL, role)
	return c
}

func replaceRole(t testing.TB, target, role string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

func dropRole(t testing.TB, owner, role string) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, owner)
	if err == nil {
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "DROP OWNED BY "+role+"; DROP ROLE "+role)
	}
	if err != nil {
		t.Error(err)
	}
}

func wantRefused(t testing.TB, err error, text, fix string) {
	t.Helper()
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), text) || !strings.Contains(Explain(err), fix) || Transient(err) {
		t.Fatalf("%v (fix: %s), want a refusal with %q, fix %q", err, Explain(err), text, fix)
	}
}

func TestRoleWithoutPrivilegesMayInspect(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	super, plain := inspect(t, c), inspect(t, asRole(t, c, ""))
	if err := plain.Check(c); err != nil {
		t.Fatal(err)
	}
	if plain.Slot == nil || *plain.Slot != *super.Slot || plain.SystemID != super.SystemID || plain.Database != super.Database {
		t.Fatalf("a plain role sees %+v, a superuser %+v", plain, super)
	}
	sys := connect(t, c).System()
	if sys.ID != super.SystemID || sys.Timeline != super.Timeline || sys.Database != super.Database || super.DatabaseOID == 0 {
		t.Fatalf("IDENTIFY_SYSTEM says %+v, SQL %+v", sys, super)
	}
}

func TestReplicationRoleNeedsNoMoreThanReplication(t *testing.T) {
	c := asRole(t, newConfig(t, testkit.SharedPostgres(t)), "REPLICATION")
	if _, err := CreateSlot(t.Context(), c, false); err != nil {
		t.Fatal(err)
	}
	k := &taker{confirms: true}
	r := begin(t, c, k)
	r.stop(t)
	if err := DropSlot(t.Context(), testkit.Connect(t, c.URL), c.Slot); err != nil {
		t.Fatal(err)
	}
}

func TestRoleWithoutReplicationIsRefused(t *testing.T) {
	c := asRole(t, newSlot(t, testkit.SharedPostgres(t)), "")
	_, err := Connect(t.Context(), c)
	wantRefused(t, err, "42501", "REPLICATION")
	_, err = CreateSlot(t.Context(), c, false)
	wantRefused(t, err, "42501", "REPLICATION")
}

func TestMissingSlotIsSeenAsNone(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	s := inspect(t, c)
	if s.Slot != nil || s.Check(c) != nil {
		t.Fatalf("%+v, %v", s.Slot, s.Check(c))
	}
}

func TestForeignSlotsAreRefused(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	theirs, ours := newSlot(t, pg), newConfig(t, pg)
	ours.Slot = theirs.Slot
	wantRefused(t, inspect(t, ours).Check(ours), "belongs to database", "slot.name")
	_, err := connect(t, ours).Start(t.Context())
	wantRefused(t, err, "not created in this database", "another database")

	ours.Slot = "other_plugin"
	testkit.Exec(t, ours.URL, `SELECT pg_create_logical_replication_slot('other_plugin', 'test_decoding')`)
	wantRefused(t, inspect(t, ours).Check(ours), "test_decoding", "slot.name")
}

func TestWrongPasswordAndDatabaseAreRefused(t *testing.T) {
	pg := testkit.Postgres(t, testkit.Password("right"))
	c := newConfig(t, pg)
	wrong := c
	wrong.URL = strings.Replace(c.URL, "right", "wr0ng", 1)
	_, err := ConnectSQL(t.Context(), wrong, "test")
	wantRefused(t, err, "28P01", "password")
	_, err = Connect(t.Context(), wrong)
	wantRefused(t, err, "28P01", "password")
	if text := err.Error() + Explain(err); strings.Contains(text, "wr0ng") {
		t.Fatalf("the password is in the error: %s", text)
	}
	wrong.URL = replaceDatabase(t, c.URL, "nowhere")
	_, err = Connect(t.Context(), wrong)
	wantRefused(t, err, "3D000", "database name")
	wrong.URL = "postgres://u:s3cret@h:port/db"
	_, err = Connect(t.Context(), wrong)
	wantRefused(t, err, "postgres.url", "postgres.url")
	if strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("the password is in the error: %s", err)
	}
}

func TestServerWithoutLogicalWALIsRefused(t *testing.T) {
	pg := testkit.Postgres(t, testkit.Conf("wal_level", "replica"),
		testkit.Conf("synchronous_standby_names", `ANY 1 ("TIDEGATE_x", other)`), testkit.Conf("synchronous_commit", "local"))
	c := Config{URL: pg.URL("postgres"), Slot: "x", Publication: "p"}
	s := inspect(t, c)
	wantRefused(t, s.Check(c), "wal_level", "ALTER SYSTEM")
	_, err := CreateSlot(t.Context(), c, false)
	wantRefused(t, err, "wal_level", "ALTER SYSTEM")
	s.WALLevel = "logical"
	wantRefused(t, s.Check(c), "commits would wait", "synchronous_standby_names")
}

func TestLostSlotIsToldApartAndKeepsWhereItsGapBegins(t *testing.T) {
	pg := testkit.Postgres(t, testkit.Conf("max_slot_wal_keep_size", "1MB"))
	c := newSlot(t, pg)
	confirmed := confirmedFlush(t, c)
	for range 4 {
		insert(t, c, "one")
		testkit.Exec(t, c.URL, `SELECT pg_switch_wal()`)
	}
	testkit.Exec(t, c.URL, `CHECKPOINT`)
	var lost *LostError
	if err := inspect(t, c).Check(c); !errors.As(err, &lost) || lost.Confirmed != confirmed {
		t.Fatalf("Check: %v, confirmed was %s", err, confirmed)
	}
	if _, err := connect(t, c).Start(t.Context()); !errors.As(err, &lost) {
		t.Fatalf("Start: %v", err)
	}
}

func TestConnectionsToDifferentServersAreRefused(t *testing.T) {
	c, other := newSlot(t, testkit.SharedPostgres(t)), testkit.Postgres(t)
	c.ReplicationURL, c.URL = c.URL, other.URL("postgres")
	_, err := connect(t, c).Start(t.Context())
	wantRefused(t, err, "replication_url", "same server")
}

func TestSeveralHostsMeanTheOneThatCanBeWritten(t *testing.T) {
	t.Setenv("PGTARGETSESSIONATTRS", "")
	for dsn, want := range map[string]bool{
		"postgres://u@a,b/db":                     true,
		"host=a,a port=5432,5433 sslmode=disable": true,
		"postgres://u@a/db":                       false,
	} {
		for _, c := range []Config{{URL: dsn}, {ReplicationURL: dsn}} {
			pc, err := c.replicationConfig()
			if err != nil {
				t.Fatal(err)
			}
			if got := pc.ValidateConnect != nil; got != want {
				t.Errorf("%s: asks for a writable server: %v, want %v", dsn, got, want)
			}
		}
	}
}
