package slot

import (
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// proxy stands between a client and PostgreSQL: it can cut its connections, or swallow what passes.
type proxy struct {
	url    string
	frozen atomic.Bool
	passed atomic.Int64 // reads handed on

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pc, err := pgx.ParseConfig(target)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = listener.Addr().String()
	p := &proxy{url: u.String()}
	address := net.JoinHostPort(pc.Host, strconv.Itoa(int(pc.Port)))
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, server)
			p.mu.Unlock()
			go p.pass(client, server)
			go p.pass(server, client)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		p.cut()
	})
	return p
}

// pass hands on what it reads, or drops it while frozen.
func (p *proxy) pass(dst, src net.Conn) {
	defer dst.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !p.frozen.Load() {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
			p.passed.Add(1)
		}
		if err != nil {
			return
		}
	}
}

// cut closes every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func replaceDatabase(t testing.TB, target, database string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	return u.String()
}
