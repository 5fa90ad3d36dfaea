package testkit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/leash"
	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
)

// NATSServer is a nats-server with JetStream in a process of its own. It keeps its port and its store over every
// restart. Its methods are for the test's goroutine.
type NATSServer struct {
	options natsOptions
	held    *leash.Leash
	program string
	port    int
	process *Process
}

// NATSBinEnv names the environment variable that says which nats-server to run, instead of the one of our module.
const NATSBinEnv = "NATS_SERVER_BIN"

var natsBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(NATSBinEnv); path != "" {
		return path, nil
	}
	return build("natsd", "/internal/testkit/natsd")
})

// NATS starts a server for one test.
func NATS(t testing.TB, options ...NATSOption) *NATSServer {
	t.Helper()
	program, err := natsBinary()
	if err != nil {
		t.Fatal(err)
	}
	held, err := holdTemp("tidegate-nats-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := held.Release(); err != nil {
			t.Error(err)
		}
	})
	n := &NATSServer{held: held, program: program}
	for _, option := range options {
		option(&n.options)
	}
	t.Cleanup(func() {
		if n.process != nil {
			n.process.kill()
		}
	})
	showOnFailure(t, "nats-server", n.Log)
	if err := n.firstStart(); err != nil {
		t.Fatal(err)
	}
	return n
}

// firstStart starts the server on a port that is free; another process may take it in between.
func (n *NATSServer) firstStart() error {
	for attempt := 1; ; attempt++ {
		port, err := pgcluster.FreePort()
		if err != nil {
			return err
		}
		n.port = port
		err = n.start()
		if err == nil || attempt == 5 || !strings.Contains(n.Log(), "address already in use") {
			return err
		}
	}
}

// start runs the server and waits until it greets a connection: by then JetStream has recovered its streams.
func (n *NATSServer) start() error {
	conf := filepath.Join(n.held.Dir(), "nats.conf")
	if err := os.WriteFile(conf, []byte(n.options.conf(n.port, n.held.Dir())), 0o600); err != nil {
		return err
	}
	process, err := startProcess(n.held, "nats-server", exec.Command(n.program, "-c", conf))
	if err != nil {
		return err
	}
	n.process = process
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !n.greets() {
		select {
		case <-tick.C:
		case <-process.Done():
			return fmt.Errorf("start nats-server: %s", tail(n.Log(), 5))
		case <-deadline.C:
			return fmt.Errorf("start nats-server: not ready within %v", startTimeout)
		}
	}
	return nil
}

// greets reports whether a connection gets the server's INFO.
func (n *NATSServer) greets() bool {
	conn, err := net.DialTimeout("tcp", n.Address(), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	greeting := make([]byte, 5)
	_, err = io.ReadFull(conn, greeting)
	return err == nil && bytes.Equal(greeting, []byte("INFO "))
}

// Address is host and port, the same after every restart.
func (n *NATSServer) Address() string { return "127.0.0.1:" + strconv.Itoa(n.port) }

// StoreDir is where JetStream keeps its files; they are the test's while the server is stopped.
func (n *NATSServer) StoreDir() string { return filepath.Join(n.held.Dir(), "store") }

// PID is the process id of the last start.
func (n *NATSServer) PID() int { return n.process.PID() }

// Log is what the server has logged over all its starts.
func (n *NATSServer) Log() string {
	text, err := os.ReadFile(filepath.Join(n.held.Dir(), "nats-server.log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Start starts a server that was stopped or killed.
func (n *NATSServer) Start(t testing.TB) {
	t.Helper()
	if n.process.Running() {
		t.Fatal("start nats-server: it runs")
	}
	if err := n.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop shuts the server down in order.
func (n *NATSServer) Stop(t testing.TB) {
	t.Helper()
	n.process.Signal(t, syscall.SIGTERM)
	n.process.Wait(t, stopTimeout)
}

// Kill9 ends the server by SIGKILL.
func (n *NATSServer) Kill9(t testing.TB) {
	t.Helper()
	n.process.Kill(t)
}

// Signal sends a signal: SIGSTOP and SIGCONT make a server that hangs and comes back.
func (n *NATSServer) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	n.process.Signal(t, signal)
}

// Restart stops the server in order and starts it again.
func (n *NATSServer) Restart(t testing.TB) {
	t.Helper()
	n.Stop(t)
	n.Start(t)
}

// Reconfigure restarts the server with other options; the store stays.
func (n *NATSServer) Reconfigure(t testing.TB, options ...NATSOption) {
	t.Helper()
	n.Stop(t)
	for _, option := range options {
		option(&n.options)
	}
	n.Start(t)
}

// Connect connects to the server until the test ends. The connection comes back for as long as the test runs.
func (n *NATSServer) Connect(t testing.TB, options ...nats.Option) *nats.Conn {
	t.Helper()
	defaults := []nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond)}
	if certs := n.options.tls; certs != nil {
		defaults = append(defaults, nats.RootCAs(certs.CAFile), nats.ClientCert(certs.ClientCertFile, certs.ClientKeyFile))
	}
	conn, err := nats.Connect(n.URL(), append(defaults, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// JetStream is Connect, for JetStream.
func (n *NATSServer) JetStream(t testing.TB, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(n.Connect(t, options...))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Stream makes a stream and gives it.
func (n *NATSServer) Stream(t testing.TB, config jetstream.StreamConfig) jetstream.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	stream, err := n.JetStream(t).CreateStream(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}
