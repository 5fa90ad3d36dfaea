package publish

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// must gives v of a call in a test's preparation.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestEveryWayToAuthenticate(t *testing.T) {
	user := must(nkeys.CreateUser())
	for name, c := range map[string]struct {
		server func(*server.Options)
		config Config
		wrong  Config
	}{
		"user": {
			func(o *server.Options) { o.Username, o.Password = "gate", "right" },
			Config{User: "gate", Password: "right"},
			Config{User: "gate", Password: "wrong-secret"},
		},
		"token": {
			func(o *server.Options) { o.Authorization = "right" },
			Config{Token: "right"},
			Config{Token: "wrong-secret"},
		},
		"nkey": {
			func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: must(user.PublicKey())}} },
			Config{NKeyFile: write(t, "gate.nk", must(user.Seed()))},
			Config{NKeyFile: write(t, "other.nk", must(must(nkeys.CreateUser()).Seed()))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, c.server)
			c.config.URL, c.wrong.URL = s.url(), strings.Replace(s.url(), "nats://", "nats://gate:wrong-secret@", 1)
			ensure(t, connectWith(t, c.config, Hooks{}), StreamConfig{Name: "S"}, "x")
			_, err := Connect(testContext(t), c.wrong, quiet(), Hooks{})
			wantConnectError(t, err, "refused the credentials", Fatal)
		})
	}
}

func wantConnectError(t *testing.T, err error, says string, class Class) {
	t.Helper()
	var refused *ConnectError
	if !errors.As(err, &refused) || !strings.Contains(err.Error()+": "+Explain(err), says) {
		t.Fatalf("error %v, want %q", err, says)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Fatalf("the error shows a secret: %v", err)
	}
	if got, _ := Classify(err); got != class {
		t.Fatalf("class %d of %v", got, err)
	}
}

func TestCredentialsFileAuthenticates(t *testing.T) {
	operator, account, user := must(nkeys.CreateOperator()), must(nkeys.CreateAccount()), must(nkeys.CreateUser())
	operatorClaims := jwt.NewOperatorClaims(must(operator.PublicKey()))
	operatorJWT := must(operatorClaims.Encode(operator))
	accountClaims := jwt.NewAccountClaims(must(account.PublicKey()))
	accountClaims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	resolver := &server.MemAccResolver{}
	if err := resolver.Store(must(account.PublicKey()), must(accountClaims.Encode(operator))); err != nil {
		t.Fatal(err)
	}
	system := must(must(nkeys.CreateAccount()).PublicKey())
	if err := resolver.Store(system, must(jwt.NewAccountClaims(system).Encode(operator))); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(o *server.Options) {
		o.SystemAccount = system
		o.TrustedOperators = []*jwt.OperatorClaims{must(jwt.DecodeOperatorClaims(operatorJWT))}
		o.AccountResolver = resolver
	})
	userJWT := must(jwt.NewUserClaims(must(user.PublicKey())).Encode(account))
	creds := write(t, "gate.creds", must(jwt.FormatUserConfig(userJWT, must(user.Seed()))))
	connectWith(t, Config{URL: s.url(), CredsFile: creds}, Hooks{})
}

func TestContextBringsServersAndCredentials(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.Username, o.Password = "gate", "right" })
	path := write(t, "nats/context/prod.json", fmt.Appendf(nil, `{"url":%q,"user":"gate","password":"right","inbox_prefix":"_GATE"}`, s.url()))
	c := connectWith(t, Config{Context: path}, Hooks{})
	ensure(t, c, StreamConfig{Name: "S"}, "x")
	if inbox := c.NATS().NewInbox(); !strings.HasPrefix(inbox, "_GATE.") {
		t.Errorf("inbox %s", inbox)
	}
	t.Setenv("XDG_CONFIG_HOME", strings.TrimSuffix(path, "/nats/context/prod.json"))
	connectWith(t, Config{Context: "prod"}, Hooks{})
	_, err := Connect(testContext(t), Config{Context: "none"}, quiet(), Hooks{})
	wantConnectError(t, err, `context "none"`, Fatal)
}

func TestUnreachableServersAreNamed(t *testing.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Connect(testContext(t), Config{URL: "nats://u:secret@" + addr}, quiet(), Hooks{})
	wantConnectError(t, err, addr, Transient)
}

func TestSecondServerIsTried(t *testing.T) {
	s := startServer(t, nil)
	connectWith(t, Config{URL: "nats://127.0.0.1:1, " + s.url()}, Hooks{})
}

func TestDomainAndInboxPrefixAreUsed(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.JetStreamDomain = "hub" })
	c := connectWith(t, Config{URL: s.url(), Domain: "hub", InboxPrefix: "_GATE"}, Hooks{})
	st := ensure(t, c, StreamConfig{Name: "S"}, "x.*")
	put(t, c, rowFor(st, "a", 1))
	if tail := readTail(t, c, st, 0); tail.Count != 1 {
		t.Errorf("%d messages read", tail.Count)
	}
	k, _ := openCheckpoints(t, c)
	if err := k.Save(testContext(t), testCheckpoint()); err != nil {
		t.Error(err)
	}
	if _, cp := openCheckpoints(t, c); cp == nil {
		t.Error("the checkpoint was not found again")
	}
}

// certificates makes an authority and one certificate for 127.0.0.1 that serves both sides.
func certificates(t *testing.T) (ca, cert, key string, pair tls.Certificate, pool *x509.CertPool) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	der := must(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: must(x509.MarshalECPrivateKey(private))})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	cert = write(t, "cert.pem", certPEM)
	return cert, cert, write(t, "key.pem", keyPEM), must(tls.X509KeyPair(certPEM, keyPEM)), pool
}

func TestTLS(t *testing.T) {
	ca, cert, key, pair, pool := certificates(t)
	for _, first := range []bool{false, true} {
		s := startServer(t, func(o *server.Options) {
			o.TLS, o.TLSVerify, o.TLSHandshakeFirst = true, true, first
			o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
		})
		both := TLS{CA: ca, Cert: cert, Key: key, First: first}
		ensure(t, connectWith(t, Config{URL: s.url(), TLS: both}, Hooks{}), StreamConfig{Name: "S"}, "x")
		both.CA = ""
		_, err := Connect(testContext(t), Config{URL: s.url(), TLS: both}, quiet(), Hooks{})
		wantConnectError(t, err, "set nats.tls.ca", Fatal)
	}
	plain := startServer(t, nil)
	_, err := Connect(testContext(t), Config{URL: plain.url(), TLS: TLS{CA: ca}}, quiet(), Hooks{})
	wantConnectError(t, err, "one side wants TLS", Fatal)
	_, err = Connect(testContext(t), Config{URL: plain.url(), TLS: TLS{CA: "/nowhere/ca.pem"}}, quiet(), Hooks{})
	wantConnectError(t, err, "/nowhere/ca.pem", Fatal)
}

func TestMissingPermissionIsReported(t *testing.T) {
	s := startServer(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "gate", Password: "right", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{"$JS.API.>"}},
		}}}
	})
	refused := make(chan error, 4)
	c := connectWith(t, Config{URL: s.url(), User: "gate", Password: "right"}, Hooks{Refused: func(err error) { refused <- err }})
	if err := c.PublishMsg(&nats.Msg{Subject: "x.a"}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-refused:
		if class, _ := Classify(err); class != Fatal || !strings.Contains(err.Error(), "x.a") || !strings.Contains(Explain(err), "grant it") {
			t.Fatalf("class %d: %v", class, err)
		}
	case <-testContext(t).Done():
		t.Fatal("nothing was reported")
	}
}

func TestWithdrawnCredentialsAreReported(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.Username, o.Password = "gate", "right" })
	refused, lost := make(chan error, 4), make(chan error, 4)
	c := connectWith(t, Config{URL: s.url(), User: "gate", Password: "right"}, Hooks{
		Disconnected: func(err error) { lost <- err }, Refused: func(err error) { refused <- err },
	})
	s.stop()
	<-lost
	if err := c.PublishMsg(&nats.Msg{Subject: "x"}); !errors.Is(err, nats.ErrReconnectBufExceeded) {
		t.Fatalf("publish while disconnected: %v", err)
	}
	s.opts.Password = "another"
	s.start()
	select {
	case err := <-refused:
		if class, _ := Classify(err); class != Fatal {
			t.Fatalf("class %d: %v", class, err)
		}
	case <-testContext(t).Done():
		t.Fatal("nothing was reported")
	}
}
