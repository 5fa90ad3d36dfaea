package publish

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"

	"github.com/nats-io/nats.go"
)

func (c *Conn) onDisconnect(h Hooks) nats.ConnErrHandler {
	return func(_ *nats.Conn, err error) {
		c.log.Warn("nats connection lost", "error", err)
		c.setDown()
		if h.Disconnected != nil {
			h.Disconnected(err)
		}
	}
}

func (c *Conn) onReconnect(h Hooks) nats.ConnHandler {
	return func(nc *nats.Conn) {
		c.setUp()
		c.log.Info("nats connection is back", "server", nc.ConnectedServerName())
		if h.Reconnected != nil {
			h.Reconnected()
		}
	}
}

func (c *Conn) onError(h Hooks) nats.ErrHandler {
	return func(_ *nats.Conn, _ *nats.Subscription, err error) {
		c.log.Warn("nats reported an error", "error", err)
		if errors.Is(err, nats.ErrPermissionViolation) && h.Refused != nil {
			h.Refused(&RefusedError{Doing: "use NATS", Err: err, Fix: "grant it to the bridge's user"})
		}
	}
}

func (c *Conn) setUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up, c.down = context.WithCancelCause(context.Background())
}

func (c *Conn) setDown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down(nats.ErrDisconnected)
}

// bounded gives a context for one request: it ends after callTimeout, and at once when the connection is lost, for then
// no answer can come. Its end is told by context.Cause.
func (c *Conn) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	ctx, lost := context.WithCancelCause(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	stop := context.AfterFunc(up, func() { lost(context.Cause(up)) })
	return ctx, func() {
		stop()
		cancel()
		lost(nil)
	}
}

// causeOf gives the reason for which ctx ended, if it has, and else err.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// onClosed tells of a connection that the client itself gave up, which it does when a server refuses the same
// credentials twice.
func (c *Conn) onClosed(h Hooks) nats.ConnHandler {
	return func(nc *nats.Conn) {
		c.mu.Lock()
		ours := c.closed
		c.mu.Unlock()
		if ours || h.Refused == nil {
			return
		}
		err := nc.LastError()
		if err == nil {
			err = nats.ErrConnectionClosed
		}
		h.Refused(&RefusedError{Doing: "reconnect to NATS", Err: err, Fix: connectHint(err)})
	}
}

// connectHint says what to look at.
func connectHint(err error) string {
	var (
		unknownCA *tls.CertificateVerificationError
		hostname  x509.HostnameError
		record    tls.RecordHeaderError
		peer      *net.OpError
	)
	switch {
	case errors.As(err, &peer) && peer.Op == "remote error":
		return "the server ended the TLS handshake; set nats.tls.cert and nats.tls.key to a certificate that its authority signed"
	case isAny(err, nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired):
		return "the server refused the credentials; check nats.user, nats.token, nats.nkey_file or nats.creds_file"
	case errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, nats.ErrSecureConnRequired):
		return "one side wants TLS and the other does not; set nats.tls.ca, or use a tls:// URL"
	case errors.As(err, &hostname):
		return "the server's certificate is for another name; use that name in nats.url"
	case errors.As(err, &unknownCA):
		return "the server's certificate is not trusted; set nats.tls.ca to the authority that signed it"
	case errors.As(err, &record):
		return "the server does not speak TLS from the first byte; unset nats.tls.first, or set handshake_first there"
	case isAny(err, nats.ErrNoServers, nats.ErrTimeout):
		return "is the server running, and is nats.url right"
	}
	if class, _ := classifyClient(err); class == Transient {
		return "is the server running, and is nats.url right"
	}
	return ""
}
