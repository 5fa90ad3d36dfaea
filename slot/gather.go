package slot

import (
	"crypto/tls"
	"net"
	"syscall"
	"time"
)

const (
	// gatherFor is how long bytes are left to gather in a busy stream, at most: it is what a row's latency may grow by.
	gatherFor = 500 * time.Microsecond
	// gatherBytes ends the gathering early.
	gatherBytes = 64 << 10
	// gatherAfter is how many reads in a row have to follow each other within gatherFor before the stream is busy.
	gatherAfter = 16
)

// gather keeps a busy stream from waking the process for every small message. A walsender sends each change by itself;
// when each one is read at once, everybody on the way of the row, the walsender and nats-server too, works row by row,
// and that costs several times as much. So between two reads of a busy stream the kernel is asked to say nothing
// before gatherBytes are there or gatherFor is over. A stream that is not busy is read at once.
type gather struct {
	raw    syscall.RawConn // nil: this connection cannot be told to gather
	last   time.Time       // of the last read
	streak int
	on     bool
}

func newGather(c net.Conn) gather {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return gather{}
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return gather{}
	}
	return gather{raw: raw}
}

// heard takes note of a read that brought bytes.
func (g *gather) heard(now time.Time) {
	if g.raw == nil || g.on {
		return
	}
	if now.Sub(g.last) < gatherFor {
		g.streak++
	} else {
		g.streak = 0
	}
	g.last = now
	if g.streak >= gatherAfter {
		g.on = g.threshold(gatherBytes)
		g.streak = 0
	}
}

// wait lets bytes gather; the connection's read deadline bounds it.
func (g *gather) wait() {
	waited := false
	_ = g.raw.Read(func(uintptr) bool {
		done := waited
		waited = true
		return done
	})
}

// end makes the connection speak up at the first byte again.
func (g *gather) end() {
	if g.on {
		g.threshold(1)
		g.on = false
	}
}

// threshold says how many bytes have to be there before the connection counts as readable.
func (g *gather) threshold(n int) (ok bool) {
	err := g.raw.Control(func(fd uintptr) {
		ok = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, n) == nil
	})
	return ok && err == nil
}
