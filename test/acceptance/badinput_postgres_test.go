package acceptance_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// altered gives a URL of the database with another user, password, database or parameters.
func altered(t *testing.T, dsn string, alter func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	alter(u)
	return u.String()
}

func TestWrongWayToPostgresIsNamed(t *testing.T) {
	t.Parallel()
	certs, foreign := testkit.NewCerts(t, "app"), testkit.NewCerts(t, "app")
	pg := testkit.Postgres(t, testkit.Password("hunter2"), testkit.PGTLS(certs))
	s := sceneOn(t, pg, pg.PlainDatabase(t))
	s.begun(t)
	testkit.Exec(t, s.url, "CREATE ROLE reader LOGIN PASSWORD 'hunter2'; CREATE ROLE outsider LOGIN REPLICATION PASSWORD 'hunter2'")
	testkit.Exec(t, s.url, "REVOKE CONNECT ON DATABASE "+s.slot(t)+" FROM PUBLIC; GRANT CONNECT ON DATABASE "+s.slot(t)+" TO reader")
	as := func(user string) func(*url.URL) {
		return func(u *url.URL) { u.User = url.UserPassword(user, "hunter2") }
	}
	for name, tc := range map[string]struct {
		alter func(*url.URL)
		want  refusal
	}{
		"password": {
			func(u *url.URL) { u.User = url.UserPassword("postgres", "secret") },
			refusal{exit.Postgres, []string{"28P01", `user "postgres"`}, "check user and password in postgres.url"},
		},
		"role": {
			as("nobody_here"),
			refusal{exit.Postgres, []string{`"nobody_here"`}, "postgres.url"},
		},
		"database": {
			func(u *url.URL) { u.Path = "/nowhere" },
			refusal{exit.Postgres, []string{"3D000", `"nowhere"`}, "check the database name in postgres.url"},
		},
		"TLS off where the server wants it": {
			func(u *url.URL) { u.RawQuery = "sslmode=disable" },
			refusal{exit.Postgres, []string{"28000", "no encryption"}, "sslmode=require"},
		},
		"certificate of an unknown authority": {
			func(u *url.URL) { u.RawQuery = "sslmode=verify-full&sslrootcert=" + foreign.CAFile },
			refusal{exit.Postgres, []string{"certificate"}, "sslrootcert"},
		},
		"no CONNECT": {
			as("outsider"),
			refusal{exit.Postgres, []string{"42501", "permission denied for database"}, "GRANT CONNECT"},
		},
		"no REPLICATION": {
			as("reader"),
			refusal{exit.Postgres, []string{"42501", "walsender"}, "ALTER ROLE <role> REPLICATION"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.refuses(t, change{"TIDEGATE_POSTGRES_URL": altered(t, s.url, tc.alter)}, tc.want)
		})
	}
	s.recovers(t, change{"TIDEGATE_POSTGRES_URL": altered(t, s.url, func(u *url.URL) {
		u.Host, u.RawQuery = "localhost:"+u.Port(), "sslmode=verify-full&sslrootcert="+certs.CAFile
	})})
}

func TestTLSWhereTheServerHasNoneIsNamed(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	s.refuses(t, change{"TIDEGATE_POSTGRES_URL": strings.Replace(s.url, "sslmode=disable", "sslmode=require", 1)},
		refusal{exit.Postgres, []string{"TLS", "server refused TLS connection"}, "sslmode=prefer"})
	s.recovers(t, nil)
}

// TestUnreachablePostgresIsWaitedFor: a wrong port looks like a server that is being restarted.
func TestUnreachablePostgresIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	port, err := pgcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	wrong := altered(t, s.url, func(u *url.URL) { u.Host = "127.0.0.1:" + strconv.Itoa(port) })
	p := s.bin.Start(t, testkit.Call{
		Args: []string{"run"}, Config: s.config,
		Env: change{"TIDEGATE_POSTGRES_URL": wrong, "TIDEGATE_HTTP_READY_GRACE": "100ms"},
	})
	waits(t, p, "127.0.0.1:"+strconv.Itoa(port))
	stop(t, p)
	s.recovers(t, nil)
}

// waits finds that the bridge tries again and again, says at what, and is not ready.
func waits(t *testing.T, p *testkit.Process, what string) {
	t.Helper()
	const again = `"msg":"session ended; beginning another"`
	testkit.Eventually(t, 20*time.Second, func() bool { return strings.Count(p.Log(), again) >= 3 }, "the bridge does not try again")
	if !contains(p.Log(), what) {
		t.Errorf("the log does not name %q", what)
	}
	var text string
	testkit.Eventually(t, 20*time.Second, func() bool {
		status, body := p.Get(t, "/readyz")
		text = body
		return status == 503
	}, "the bridge stays ready")
	if !contains(text, what) {
		t.Errorf("/readyz does not name %q: %s", what, text)
	}
	if status, _ := p.Get(t, "/livez"); status != 200 {
		t.Errorf("waiting counts as dead: /livez answers %d", status)
	}
}

func TestServerThatCannotDecodeIsRefused(t *testing.T) {
	t.Parallel()
	pg := testkit.Postgres(t, testkit.Conf("wal_level", "replica"))
	s := sceneOn(t, pg, pg.PlainDatabase(t))
	s.insert(t, 3)
	publish := change{"TIDEGATE_SLOT_SNAPSHOT": "publish"}
	s.refuses(t, publish, refusal{exit.Postgres, []string{"wal_level", "replica"}, "ALTER SYSTEM SET wal_level = logical"})

	pg.Set(t, "wal_level", "logical")
	pg.Set(t, "synchronous_standby_names", "*")
	pg.Restart(t, testkit.Fast)
	s.refuses(t, publish, refusal{exit.Postgres, []string{"synchronous_standby_names", "tidegate_" + s.slot(t)}, "ALTER SYSTEM SET synchronous_standby_names"})

	pg.Set(t, "synchronous_standby_names", "")
	if err := pg.Reload(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() bool {
		return testkit.Value[string](t, s.url, "SELECT current_setting('synchronous_standby_names')") == ""
	}, "the setting is not reloaded")
	s.recovers(t, publish)
}
