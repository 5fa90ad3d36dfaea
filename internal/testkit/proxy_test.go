package testkit_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// echo answers what it is sent, and tells when a client has left.
func echo(t *testing.T) (address string, left <-chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	leaving := make(chan error, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, err := io.Copy(conn, conn)
				conn.Close()
				leaving <- err
			}()
		}
	}()
	return listener.Addr().String(), leaving
}

func dial(t *testing.T, p *testkit.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// answer sends a word and gives what comes back within wait.
func answer(conn net.Conn, word string, wait time.Duration) (string, error) {
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return "", err
	}
	back := make([]byte, len(word))
	n, err := io.ReadFull(conn, back)
	return string(back[:n]), err
}

func mustAnswer(t *testing.T, conn net.Conn) {
	t.Helper()
	if back, err := answer(conn, "hello", 10*time.Second); err != nil || back != "hello" {
		t.Fatalf("%q, %v", back, err)
	}
}

func TestProxyCutsAndLetsNewConnectionsThrough(t *testing.T) {
	address, left := echo(t)
	p := testkit.NewProxy(t, address)
	conn := dial(t, p)
	mustAnswer(t, conn)
	p.Cut()
	if _, err := answer(conn, "hello", 10*time.Second); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a cut connection: %v", err)
	}
	if err := <-left; err == nil {
		t.Error("the server has seen an orderly end")
	}
	mustAnswer(t, dial(t, p))
	p.Close()
	if err := <-left; err != nil {
		t.Errorf("closed, the server has seen %v", err)
	}
	p.Refuse()
	if conn, err := net.Dial("tcp", p.Address()); err == nil { // else it was reset before the call returned
		if _, err := answer(conn, "hello", 10*time.Second); err == nil {
			t.Error("a refused connection is answered")
		}
		conn.Close()
	}
	p.Heal()
	mustAnswer(t, dial(t, p))
}

func TestHalfOpenConnectionsStayAndAreNeverAnswered(t *testing.T) {
	address, left := echo(t)
	p := testkit.NewProxy(t, address)
	old := dial(t, p)
	mustAnswer(t, old)
	p.Swallow()
	wantSilence(t, old)
	wantSilence(t, dial(t, p))
	p.Heal()
	wantSilence(t, old)
	mustAnswer(t, dial(t, p))
	old.Close()
	select {
	case err := <-left:
		t.Errorf("the server has learned that the client left: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
}

func wantSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	var timeout net.Error
	if back, err := answer(conn, "hello", 100*time.Millisecond); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%q, %v", back, err)
	}
}

func TestSlowProxyDelaysAndBrakesEachDirection(t *testing.T) {
	address, _ := echo(t)
	p := testkit.NewProxy(t, address)
	conn := dial(t, p)
	mustAnswer(t, conn)
	took := func(word string) time.Duration {
		began := time.Now()
		if back, err := answer(conn, word, 20*time.Second); err != nil || back != word {
			t.Fatalf("%d bytes, %v", len(back), err)
		}
		return time.Since(began)
	}
	p.Slow(200*time.Millisecond, 0)
	if d := took("hello"); d < 400*time.Millisecond {
		t.Errorf("there and back took %v", d)
	}
	p.Slow(0, 100_000)
	if d := took(strings.Repeat("x", 50_000)); d < 500*time.Millisecond {
		t.Errorf("50 kB at 100 kB/s took %v", d)
	}
	p.Slow(0, 0)
	mustAnswer(t, conn)
}
