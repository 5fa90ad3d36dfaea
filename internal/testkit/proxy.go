package testkit

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy stands between clients and one server, and does to their connections what a network does. Its methods may be
// called from any goroutine.
type Proxy struct {
	target   string
	listener *net.TCPListener
	passed   atomic.Int64
	latency  atomic.Int64 // nanoseconds
	rate     atomic.Int64 // bytes a second; 0: no limit

	mu    sync.Mutex
	state proxyState
	links map[*link]bool
}

// proxyState is what becomes of new connections.
type proxyState int

const (
	passing    proxyState = iota
	refusing              // reset at once
	swallowing            // let in, never answered
	ended
)

// NewProxy begins to listen, for one server's host and port, until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, listener: listener, links: map[*link]bool{}}
	go p.accept()
	t.Cleanup(func() {
		listener.Close()
		p.become(ended, (*link).reset)
	})
	return p
}

// ProxyURL is NewProxy for the server that a URL names, and gives the URL that goes through the proxy.
func ProxyURL(t testing.TB, target string) (p *Proxy, through string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p = NewProxy(t, u.Host)
	u.Host = p.Address()
	return p, u.String()
}

// Address is where clients connect to, host and port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Passed counts how often something was handed on.
func (p *Proxy) Passed() int64 { return p.passed.Load() }

// Cut resets every connection; new ones are let through.
func (p *Proxy) Cut() { p.become(passing, (*link).reset) }

// Close ends every connection in order; new ones are let through.
func (p *Proxy) Close() { p.become(passing, (*link).close) }

// Refuse resets every connection, and new ones too, until Heal.
func (p *Proxy) Refuse() { p.become(refusing, (*link).reset) }

// Swallow makes every connection half-open for good: it stays, nothing comes through any more, and neither side learns
// that the other has left. New ones are let in and swallowed as well until Heal, which does not revive them.
func (p *Proxy) Swallow() { p.become(swallowing, (*link).swallow) }

// Heal lets new connections through.
func (p *Proxy) Heal() { p.become(passing, func(*link) {}) }

// Slow delays everything by latency, in each direction, and lets no more than bytesPerSecond of a connection's
// direction through; 0 lifts either.
func (p *Proxy) Slow(latency time.Duration, bytesPerSecond int) {
	p.latency.Store(int64(latency))
	p.rate.Store(int64(bytesPerSecond))
}

// become changes what becomes of new connections, and does something to all that there are.
func (p *Proxy) become(s proxyState, do func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == ended {
		return
	}
	p.state = s
	for l := range p.links {
		if s == ended {
			close(l.over)
		}
		do(l)
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.AcceptTCP()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

// serve joins a client to the server until one of them leaves.
func (p *Proxy) serve(client *net.TCPConn) {
	l := &link{client: client, dead: make(chan struct{}), over: make(chan struct{})}
	if p.now() == passing {
		if server, err := net.DialTimeout("tcp", p.target, 5*time.Second); err == nil {
			l.server, _ = server.(*net.TCPConn)
		}
	}
	switch p.admit(l) {
	case swallowing:
		<-l.over
	case passing:
		var both sync.WaitGroup
		both.Go(func() { p.pass(l, l.server, l.client) })
		both.Go(func() { p.pass(l, l.client, l.server) })
		both.Wait()
		l.close()
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	default:
		l.reset()
	}
}

func (p *Proxy) now() proxyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// admit says what becomes of a new link: one that has not reached the server is none.
func (p *Proxy) admit(l *link) proxyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state
	switch {
	case s == swallowing:
		l.swallow()
	case s == passing && l.server == nil:
		return refusing
	case s != passing:
		return s
	}
	p.links[l] = true
	return s
}

// chunk is what was read at once, and when it is to arrive.
type chunk struct {
	data []byte
	due  time.Time
}

// pass hands on one direction of a link until either side leaves. On a swallowed link it drops what comes.
func (p *Proxy) pass(l *link, to, from *net.TCPConn) {
	underway := make(chan chunk, 2048) // bounds what a slow way holds; the sender waits then
	var writing sync.WaitGroup
	writing.Go(func() { p.deliver(l, to, underway) })
	for {
		data := make([]byte, 4<<10)
		n, err := from.Read(data)
		if n > 0 && !l.isDead() {
			p.brake(l, n)
			underway <- chunk{data[:n], time.Now().Add(time.Duration(p.latency.Load()))}
		}
		if err != nil {
			break
		}
	}
	close(underway)
	writing.Wait()
	if l.isDead() {
		<-l.over // the other side must not learn of it
	}
	if !l.broken.Load() {
		_ = to.CloseWrite() // an error says that it is closed
	}
}

// brake waits for as long as n bytes take.
func (p *Proxy) brake(l *link, n int) {
	if rate := p.rate.Load(); rate > 0 {
		l.wait(time.Duration(n) * time.Second / time.Duration(rate))
	}
}

// deliver writes what is due. It drains the channel to its end whatever happens.
func (p *Proxy) deliver(l *link, to *net.TCPConn, underway <-chan chunk) {
	for c := range underway {
		l.wait(time.Until(c.due))
		if l.isDead() {
			continue
		}
		if _, err := to.Write(c.data); err != nil {
			l.close() // the other direction's reader has to end, too
			continue
		}
		p.passed.Add(1)
	}
}
