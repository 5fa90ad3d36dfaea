package publish

import (
	"errors"
	"net"
	"sync"
	"time"
)

// dialer reaches servers by connections whose writes are bounded by progress, not by the message's size.
type dialer struct {
	net.Dialer
	stall time.Duration

	mu      sync.Mutex
	conn    net.Conn // the last one
	severed bool
}

func newDialer(timeout, stall time.Duration) *dialer {
	d := &dialer{stall: stall}
	d.Timeout = timeout
	d.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}
	return d
}

// Dial is nats.CustomDialer's.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.Dialer.Dial(network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.severed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	d.conn = &stalling{Conn: conn, limit: d.stall}
	return d.conn, nil
}

// sever ends the connection at the socket, and lets none be made again: the client holds its lock while it waits for a
// peer that hangs, and would not be closed before.
func (d *dialer) sever() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.severed = true
	if d.conn != nil {
		_ = d.conn.Close()
	}
}

// stalling gives up a connection when a piece of a write finds no room for limit: the peer hangs, or is gone. A slow
// link may take its time for a large message.
type stalling struct {
	net.Conn
	limit time.Duration
}

// pieceSize over the limit is the slowest link that is served: 16 KiB in 4 s.
const pieceSize = 16 << 10

func (c *stalling) Write(p []byte) (written int, err error) {
	for {
		if err := c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[:min(len(p), pieceSize)])
		written += n
		if p = p[n:]; err != nil || len(p) == 0 {
			return written, err
		}
	}
}
