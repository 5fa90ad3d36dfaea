package testkit

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection through a Proxy: the client's to the proxy and the proxy's to the server.
type link struct {
	client, server *net.TCPConn  // server is nil where none was reached
	dead           chan struct{} // closed: nothing passes any more
	over           chan struct{} // closed: the test has ended
	dying          sync.Once
	broken         atomic.Bool // reset: neither side may see an orderly end
}

func (l *link) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

// wait waits for d, or until the link is dead.
func (l *link) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.dead:
	case <-l.over:
	}
}

// swallow lets nothing pass from now on.
func (l *link) swallow() { l.dying.Do(func() { close(l.dead) }) }

// close ends both connections in order. It may be called again, as may reset.
func (l *link) close() {
	l.client.Close()
	if l.server != nil {
		l.server.Close()
	}
}

// reset ends both connections so that either side gets an error at once.
func (l *link) reset() {
	l.broken.Store(true)
	for _, c := range []*net.TCPConn{l.client, l.server} {
		if c != nil {
			_ = c.SetLinger(0) // an error says that it is closed
			c.Close()
		}
	}
}
