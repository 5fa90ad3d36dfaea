package publish

import (
	"errors"
	"net"
	"sync"
	"time"
)

// dialer reaches servers by connections whose writes are fenced, and bounded by progress, not by the message's size.
type dialer struct {
	net.Dialer
	stall time.Duration
	fence func() error // nil never objects

	mu      sync.Mutex
	conn    net.Conn // the last one
	severed bool
}

func newDialer(timeout, stall time.Duration, fence func() error) *dialer {
	d := &dialer{stall: stall, fence: fence}
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
	d.conn = &guarded{Conn: conn, limit: d.stall, fence: d.fence}
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

// guarded gives up a connection when a piece of a write finds no room for limit: the peer hangs, or is gone. A slow
// link may take its time for a large message. Nothing is written once the fence says no: the client keeps what is
// published in a buffer of its own, and only the socket is the place where it can be held back for good.
type guarded struct {
	net.Conn
	limit time.Duration
	fence func() error
}

// pieceSize over the limit is the slowest link that is served: 16 KiB in 4 s.
const pieceSize = 16 << 10

func (c *guarded) Write(p []byte) (written int, err error) {
	for {
		if c.fence != nil {
			if err := c.fence(); err != nil {
				return written, err
			}
		}
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
