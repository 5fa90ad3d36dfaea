package testkit_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestDatabaseHasPostGISAndIsDroppedWithItsSlotsAndSessions(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	var url string
	t.Run("inner", func(t *testing.T) {
		url = pg.Database(t)
		testkit.Connect(t, url)
		testkit.Exec(t, url, "SELECT pg_create_logical_replication_slot('left_behind', 'pgoutput')")
		if got := testkit.Value[string](t, url, "SELECT ST_AsText(ST_Point($1, 2))", 1.0); got != "POINT(1 2)" {
			t.Errorf("ST_Point: %s, want POINT(1 2)", got)
		}
	})
	postgres := pg.URL("postgres")
	for _, sql := range []string{
		"SELECT count(*) FROM pg_database WHERE datname LIKE 'app%'",
		"SELECT count(*) FROM pg_replication_slots",
	} {
		if n := testkit.Value[int](t, postgres, sql); n != 0 {
			t.Errorf("%s: %d, want 0", sql, n)
		}
	}
}

func TestClusterOfATestIsConfiguredStoppedAndRestarted(t *testing.T) {
	pg := testkit.Postgres(t, testkit.Conf("max_slot_wal_keep_size", "64MB"))
	url := pg.PlainDatabase(t)
	testkit.Exec(t, url, "CREATE TABLE n (i int); INSERT INTO n VALUES (1), (2)")
	pg.Restart(t, testkit.Immediate)
	if got := testkit.Column[int](t, url, "SELECT i FROM n ORDER BY i"); len(got) != 2 || got[1] != 2 {
		t.Errorf("rows after a crash: %v, want [1 2]", got)
	}
	if got := testkit.Value[string](t, url, "SHOW max_slot_wal_keep_size"); got != "64MB" {
		t.Errorf("max_slot_wal_keep_size %s, want 64MB", got)
	}
	if took := pg.Stop(t, testkit.Fast); took <= 0 {
		t.Errorf("a stop took %v", took)
	}
}

func TestPostgresAsksForTLSAndPassword(t *testing.T) {
	certs := testkit.NewCerts(t, "app")
	pg := testkit.Postgres(t, testkit.PGTLS(certs), testkit.Password("secret"))
	url := pg.URL("postgres")
	verified := strings.Replace(url, "sslmode=require", "sslmode=verify-full&sslrootcert="+certs.CAFile, 1)
	for _, url := range []string{url, verified} {
		if !testkit.Value[bool](t, url, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") {
			t.Error("a connection without TLS")
		}
	}
}

func put(t *testing.T, js jetstream.JetStream, subject string) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ack, err := js.Publish(ctx, subject, nil, jetstream.WithRetryAttempts(100))
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

func TestNATSKeepsPortAndStreamOverKillStopAndPause(t *testing.T) {
	server := testkit.NATS(t)
	js := server.JetStream(t)
	server.Stream(t, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	address, pid := server.Address(), server.PID()
	put(t, js, "s")
	server.Kill9(t)
	server.Start(t)
	put(t, js, "s")
	server.Restart(t)
	put(t, js, "s")
	server.Signal(t, syscall.SIGSTOP)
	server.Signal(t, syscall.SIGCONT)
	if seq := put(t, js, "s"); seq != 4 {
		t.Errorf("the fourth message is number %d", seq)
	}
	if server.Address() != address || server.PID() == pid {
		t.Errorf("restarted as %s, process %d: want %s and another process than %d", server.Address(), server.PID(), address, pid)
	}
}

func TestNATSAsksForCredentials(t *testing.T) {
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		server testkit.NATSOption
		client []nats.Option
	}{
		"user":  {testkit.NATSUser("app", "it's a: secret"), nil},
		"token": {testkit.NATSToken("s3cret"), nil},
		"nkey":  {testkit.NATSNKey(public), []nats.Option{nats.Nkey(public, user.Sign)}},
		"tls":   {testkit.NATSTLS(testkit.NewCerts(t, "app")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := testkit.NATS(t, c.server, testkit.NATSMaxPayload(2048))
			if max := server.Connect(t, c.client...).MaxPayload(); max != 2048 {
				t.Errorf("max payload %d, want 2048", max)
			}
			if conn, err := nats.Connect(server.BareURL()); err == nil {
				conn.Close()
				t.Error("let in without credentials")
			}
		})
	}
}

func TestConfigTextNeedsEveryValue(t *testing.T) {
	got := testkit.ConfigText(t, "slot: {name: {{.Slot}}}", map[string]string{"Slot": "s"})
	if want := "slot: {name: s}"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
