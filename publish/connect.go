package publish

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/natscontext"
)

// Config is how to reach NATS. At most one way to authenticate is used beside what a context brings.
type Config struct {
	Name        string // shown by the server
	URL         string // several are separated by commas
	Context     string // a natscli context by name or absolute path: its servers, credentials, prefixes
	CredsFile   string
	NKeyFile    string
	User        string
	Password    string
	Token       string
	TLS         TLS
	InboxPrefix string
	Domain      string // of JetStream
	// WriteTimeout is how long the server may take nothing of a write before the connection is given up; 0 means 4 s.
	WriteTimeout time.Duration
	// Fence is asked before each write to a server. With an error nothing is written, what was published and not yet
	// written is dropped, and the connection is given up and made again. nil never objects.
	Fence func() error
}

// TLS names the files of a TLS connection. First: the handshake comes before the server's greeting.
type TLS struct {
	CA, Cert, Key string
	First         bool
}

// Hooks are called from the client's goroutines, must not block, and may be nil.
type Hooks struct {
	Disconnected func(error)
	Reconnected  func()
	// Refused says that the server will not have what we do, whatever we try again: a permission is missing, or the
	// credentials were withdrawn.
	Refused func(error)
}

// Conn is a connection that comes back by itself for as long as it is not closed. Nothing is kept to be sent later:
// what is published while it is away fails at once.
type Conn struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	log    *slog.Logger
	prefix string // of the JetStream API, with the dot
	dialer *dialer

	mu     sync.Mutex
	closed bool
	up     context.Context //nolint:containedctx // no call's: it ends with the connection to the present server
	down   context.CancelCauseFunc
}

// Connect reaches one of the servers or gives a *ConnectError; it does not try again.
func Connect(ctx context.Context, c Config, log *slog.Logger, h Hooks) (*Conn, error) {
	conn := &Conn{log: log}
	conn.setUp()
	opts, err := conn.options(ctx, c, h)
	if err != nil {
		return nil, &ConnectError{Servers: servers(c), Err: err, Fix: "check the nats.* keys"}
	}
	settings, err := conn.dial(c, opts)
	if err == nil {
		err = conn.useJetStream(c, settings)
	}
	if err != nil {
		conn.Close()
		fix := connectHint(err)
		if fix == "" {
			fix = "check the nats.* keys"
		}
		return nil, &ConnectError{Servers: servers(c), Err: err, Fix: fix}
	}
	return conn, nil
}

func (c *Conn) dial(cfg Config, opts []nats.Option) (settings natscontext.Settings, err error) {
	if cfg.Context != "" {
		c.nc, settings, err = natscontext.Connect(cfg.Context, opts...)
	} else {
		c.nc, err = nats.Connect(cfg.URL, opts...)
	}
	return settings, err
}

func (c *Conn) useJetStream(cfg Config, settings natscontext.Settings) (err error) {
	domain := cfg.Domain
	if domain == "" {
		domain = settings.JSDomain
	}
	switch {
	case domain != "":
		c.prefix = "$JS." + domain + ".API."
		c.js, err = jetstream.NewWithDomain(c.nc, domain)
	case settings.JSAPIPrefix != "":
		c.prefix = strings.TrimSuffix(settings.JSAPIPrefix, ".") + "."
		c.js, err = jetstream.NewWithAPIPrefix(c.nc, settings.JSAPIPrefix)
	default:
		c.prefix = "$JS.API."
		c.js, err = jetstream.New(c.nc)
	}
	return err
}

func (c *Conn) options(ctx context.Context, cfg Config, h Hooks) ([]nats.Option, error) {
	writeTimeout := cfg.WriteTimeout
	if writeTimeout == 0 {
		writeTimeout = 4 * time.Second
	}
	c.dialer = newDialer(dialTimeout(ctx), writeTimeout, cfg.Fence)
	opts := []nats.Option{
		nats.Name(cfg.Name),
		nats.ReconnectBufSize(-1),
		nats.SkipSubjectValidation(), // Stream.Check has looked at the subject
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.Timeout(dialTimeout(ctx)),
		nats.SetCustomDialer(c.dialer),
		nats.FlusherTimeout(0), // the dialer's connections bound their writes
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(2),
		nats.NoCallbacksAfterClientClose(),
		nats.DisconnectErrHandler(c.onDisconnect(h)),
		nats.ReconnectHandler(c.onReconnect(h)),
		nats.ErrorHandler(c.onError(h)),
		nats.ClosedHandler(c.onClosed(h)),
	}
	if cfg.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(cfg.InboxPrefix))
	}
	auth, err := authOptions(cfg)
	return append(append(opts, auth...), tlsOptions(cfg.TLS)...), err
}

func authOptions(cfg Config) (opts []nats.Option, err error) {
	if cfg.User != "" {
		opts = append(opts, nats.UserInfo(cfg.User, cfg.Password))
	}
	if cfg.Token != "" {
		opts = append(opts, nats.Token(cfg.Token))
	}
	if cfg.CredsFile != "" {
		opts = append(opts, nats.UserCredentials(cfg.CredsFile))
	}
	if cfg.NKeyFile != "" {
		nkey, err := nats.NkeyOptionFromSeed(cfg.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read nkey file %s: %w", cfg.NKeyFile, err)
		}
		opts = append(opts, nkey)
	}
	return opts, nil
}

func tlsOptions(t TLS) (opts []nats.Option) {
	if t.CA != "" {
		opts = append(opts, nats.RootCAs(t.CA))
	}
	if t.Cert != "" || t.Key != "" {
		opts = append(opts, nats.ClientCert(t.Cert, t.Key))
	}
	if t.First {
		opts = append(opts, nats.TLSHandshakeFirst())
	}
	return opts
}

// pingInterval makes a half-open connection known after three of it, 9 s; a link may take 6 s for an answer.
const pingInterval = 3 * time.Second

// reconnectDelay is called after every server of the list was tried.
func reconnectDelay(attempts int) time.Duration {
	d := maxBackoff
	if attempts < 6 {
		d = min(minBackoff<<attempts, maxBackoff)
	}
	return d/2 + rand.N(d/2)
}

func dialTimeout(ctx context.Context) time.Duration {
	const longest = 5 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		return max(min(time.Until(deadline), longest), time.Millisecond)
	}
	return longest
}

// servers gives the URLs without what is secret in them.
func servers(c Config) string {
	if c.Context != "" {
		return fmt.Sprintf("the servers of context %q", c.Context)
	}
	list := strings.Split(c.URL, ",")
	for i, s := range list {
		list[i] = withoutUser(strings.TrimSpace(s))
	}
	return strings.Join(list, ",")
}

func withoutUser(s string) string {
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return s[strings.LastIndexByte(s, '@')+1:]
}

// NATS is the connection itself.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// JetStream is the JetStream API of the configured domain.
func (c *Conn) JetStream() jetstream.JetStream { return c.js }

// MaxPayload is the connected server's limit for headers and body together.
func (c *Conn) MaxPayload() int { return int(c.nc.MaxPayload()) }

// ServerVersion is the connected server's.
func (c *Conn) ServerVersion() string { return c.nc.ConnectedServerVersion() }

// Connected reports whether a server is there at this moment.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// PublishMsg makes Conn the Sender of Lanes.
func (c *Conn) PublishMsg(m *nats.Msg) error { return c.nc.PublishMsg(m) }

// Drop gives the connection up and makes it again. What was published and not yet written goes on its way first, if the
// fence lets it.
func (c *Conn) Drop() { _ = c.nc.ForceReconnect() } // it fails on a closed connection, which has nothing to drop

// Close ends the connection at once. It may be called again.
func (c *Conn) Close() {
	c.mu.Lock()
	c.closed = true
	c.down(nats.ErrConnectionClosed)
	c.mu.Unlock()
	if c.nc != nil {
		c.dialer.sever()
		c.nc.Close()
	}
}
