package acceptance_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// must gives v of a call that cannot fail in a test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// file writes a file of the test.
func file(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEveryWayIntoNATS logs in as configured, and is told by exit code 6 where the server refuses.
func TestEveryWayIntoNATS(t *testing.T) {
	t.Parallel()
	user, other := must(nkeys.CreateUser()), must(nkeys.CreateUser())
	seed := file(t, "gate.nk", must(user.Seed()))
	operator := newOperator()
	creds := file(t, "gate.creds", operator.user(must(nkeys.CreateUser())))
	for name, tc := range map[string]struct {
		server testkit.NATSOption
		mine   []nats.Option // how the test itself gets in
		right  change
		wrong  change
	}{
		"user and password": {
			server: testkit.NATSUser("gate", "hunter2"),
			right:  change{"TIDEGATE_NATS_USER": "gate", "TIDEGATE_NATS_PASSWORD": "hunter2"},
			wrong:  change{"TIDEGATE_NATS_USER": "gate", "TIDEGATE_NATS_PASSWORD": "secret"},
		},
		"password in a file": {
			server: testkit.NATSUser("gate", "hunter2"),
			right:  change{"TIDEGATE_NATS_USER": "gate", "TIDEGATE_NATS_PASSWORD_FILE": file(t, "right", []byte("hunter2\n"))},
			wrong:  change{"TIDEGATE_NATS_USER": "gate", "TIDEGATE_NATS_PASSWORD_FILE": file(t, "wrong", []byte("secret\n"))},
		},
		"token": {
			server: testkit.NATSToken("hunter2"),
			right:  change{"TIDEGATE_NATS_TOKEN": "hunter2"},
			wrong:  change{"TIDEGATE_NATS_TOKEN": "secret"},
		},
		"nkey": {
			server: testkit.NATSNKey(must(user.PublicKey())),
			mine:   []nats.Option{must(nats.NkeyOptionFromSeed(seed))},
			right:  change{"TIDEGATE_NATS_NKEY_FILE": seed},
			wrong:  change{"TIDEGATE_NATS_NKEY_FILE": file(t, "other.nk", must(other.Seed()))},
		},
		"credentials file": {
			server: testkit.NATSConf(operator.conf()),
			mine:   []nats.Option{nats.UserCredentials(creds)},
			right:  change{"TIDEGATE_NATS_CREDS_FILE": creds},
			wrong:  change{"TIDEGATE_NATS_CREDS_FILE": file(t, "other.creds", newOperator().user(other))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pg := testkit.SharedPostgres(t)
			s := &scene{pg: pg, url: pg.PlainDatabase(t), nats: testkit.NATS(t, tc.server), bin: testkit.Binary(t)}
			s.js = s.nats.JetStream(t, tc.mine...)
			s.config = testkit.ConfigText(t, sharedConfig, map[string]string{"PG": s.url, "Slot": s.slot(t), "NATS": s.nats.BareURL()})
			testkit.Exec(t, s.url, outboxTable)
			s.insert(t, 2)
			refused := refusal{exit.NATS, []string{s.nats.Address(), "Authorization"}, "nats.user"}
			s.refuses(t, tc.wrong, refused)
			s.refuses(t, nil, refused)
			tc.right["TIDEGATE_SLOT_SNAPSHOT"] = "publish"
			s.recovers(t, tc.right)
		})
	}
}

// operator is an operator of NATS with one account, all of it on paper.
type operator struct{ key, account, system nkeys.KeyPair }

func newOperator() operator {
	return operator{must(nkeys.CreateOperator()), must(nkeys.CreateAccount()), must(nkeys.CreateAccount())}
}

// conf is the configuration of a server that trusts the operator.
func (o operator) conf() string {
	account := jwt.NewAccountClaims(must(o.account.PublicKey()))
	account.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	system := jwt.NewAccountClaims(must(o.system.PublicKey()))
	return fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { %s: %s, %s: %s }",
		must(jwt.NewOperatorClaims(must(o.key.PublicKey())).Encode(o.key)), system.Subject,
		account.Subject, must(account.Encode(o.key)), system.Subject, must(system.Encode(o.key)))
}

// user is a credentials file for the account.
func (o operator) user(key nkeys.KeyPair) []byte {
	claims := must(jwt.NewUserClaims(must(key.PublicKey())).Encode(o.account))
	return must(jwt.FormatUserConfig(claims, must(key.Seed())))
}

func TestContextOfTheNATSToolBringsServersAndLogin(t *testing.T) {
	t.Parallel()
	s := sharedScene(t, testkit.NATSUser("gate", "hunter2"))
	s.begun(t)
	context := file(t, "prod.json", fmt.Appendf(nil, `{"url": %q, "user": "gate", "password": "hunter2"}`, s.nats.BareURL()))
	s.config = strings.Replace(s.config, "nats: {url: \""+s.nats.URL()+"\"}", "nats: {context: "+context+"}", 1)
	s.refuses(t, change{"TIDEGATE_NATS_CONTEXT": "no_such_context"}, refusal{exit.NATS, []string{`context "no_such_context"`}, "nats."})
	s.recovers(t, nil)
}

func TestTLSOnBothSides(t *testing.T) {
	t.Parallel()
	certs, foreign := testkit.NewCerts(t, "postgres"), testkit.NewCerts(t, "postgres")
	pg := testkit.Postgres(t, testkit.PGTLS(certs), testkit.HBA("hostssl all all 127.0.0.1/32 cert"))
	dsn := pg.URL("postgres") + "&sslcert=" + certs.ClientCertFile + "&sslkey=" + certs.ClientKeyFile + "&sslrootcert=" + certs.CAFile
	s := &scene{
		pg: pg, url: strings.NewReplacer("127.0.0.1", "localhost", "sslmode=require", "sslmode=verify-full").Replace(dsn),
		nats: testkit.NATS(t, testkit.NATSTLS(certs)), bin: testkit.Binary(t),
	}
	s.js = s.nats.JetStream(t)
	s.config = testkit.ConfigText(t, sharedConfig, map[string]string{"PG": s.url, "Slot": "postgres", "NATS": s.nats.URL()})
	testkit.Exec(t, s.url, outboxTable)
	s.insert(t, 2)
	tls := func(ca, cert, key string) change {
		return change{"TIDEGATE_NATS_TLS_CA": ca, "TIDEGATE_NATS_TLS_CERT": cert, "TIDEGATE_NATS_TLS_KEY": key, "TIDEGATE_SLOT_SNAPSHOT": "publish"}
	}
	plain := tls(certs.CAFile, certs.ClientCertFile, certs.ClientKeyFile)
	plain["TIDEGATE_POSTGRES_URL"] = altered(t, s.url, func(u *url.URL) { u.RawQuery = "sslmode=require" })
	stranger := tls(certs.CAFile, certs.ClientCertFile, certs.ClientKeyFile)
	stranger["TIDEGATE_POSTGRES_URL"] = strings.NewReplacer(certs.ClientCertFile, foreign.ClientCertFile, certs.ClientKeyFile, foreign.ClientKeyFile).Replace(s.url)
	for name, tc := range map[string]struct {
		change change
		want   refusal
	}{
		"NATS certificate of an unknown authority": {
			tls(foreign.CAFile, certs.ClientCertFile, certs.ClientKeyFile),
			refusal{exit.NATS, []string{s.nats.Address(), "certificate"}, "set nats.tls.ca"},
		},
		"NATS without a client certificate": {
			tls(certs.CAFile, "", ""),
			refusal{exit.NATS, []string{s.nats.Address(), "certificate"}, "nats.tls.cert"},
		},
		"NATS client certificate of another authority": {
			tls(certs.CAFile, foreign.ClientCertFile, foreign.ClientKeyFile),
			refusal{exit.NATS, []string{s.nats.Address(), "certificate"}, "nats.tls.cert"},
		},
		"file that is not there": {
			tls("/nowhere/ca.pem", "", ""),
			refusal{exit.Usage, []string{"nats.tls.ca", "/nowhere/ca.pem"}, "can read"},
		},
		"Postgres client certificate of another authority": {
			stranger,
			refusal{exit.Postgres, []string{"TLS", "certificate"}, "sslcert"},
		},
		"Postgres without a client certificate": {
			plain,
			refusal{exit.Postgres, []string{"28000", "certificate"}, "sslcert"},
		},
	} {
		t.Run(name, func(t *testing.T) { s.refuses(t, tc.change, tc.want) })
	}
	s.recovers(t, tls(certs.CAFile, certs.ClientCertFile, certs.ClientKeyFile))
}

// TestServersOfAListAreTriedInTurn on either side; of two databases the one that can be written to is taken.
func TestServersOfAListAreTriedInTurn(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	dead, err := pgcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s.recovers(t, change{
		"TIDEGATE_NATS_URL":     fmt.Sprintf("nats://127.0.0.1:%d, %s", dead, s.nats.URL()),
		"TIDEGATE_POSTGRES_URL": altered(t, s.url, func(u *url.URL) { u.Host = fmt.Sprintf("127.0.0.1:%d,%s", dead, u.Host) }),
	})
}

// TestMissingPermissionIsRefused: the user may log in, but not do what a bridge does.
func TestMissingPermissionIsRefused(t *testing.T) {
	t.Parallel()
	users := func(name, permissions string) string {
		return fmt.Sprintf("{user: %s, password: %s, permissions: { publish: [%s], subscribe: [\"_INBOX.>\"] }}", name, name, permissions)
	}
	s := sharedScene(t, testkit.NATSConf("no_auth_user: app\nauthorization { users: [ {user: app, password: app}, "+
		users("no_api", `"outbox.>"`)+", "+users("no_publish", `"$JS.API.>", "$KV.tidegate.>"`)+", "+users("no_checkpoint", `"$JS.API.>", "outbox.>"`)+" ] }"))
	s.begun(t)
	for user, subject := range map[string]string{"no_api": "$JS.API.", "no_publish": "outbox.", "no_checkpoint": "$KV.tidegate."} {
		t.Run(user, func(t *testing.T) {
			s.insert(t, 1)
			s.refuses(t, change{"TIDEGATE_NATS_USER": user, "TIDEGATE_NATS_PASSWORD": user},
				refusal{exit.NATS, []string{"ermissions", subject}, "grant it to the bridge's user"})
		})
	}
	s.recovers(t, nil)
}
