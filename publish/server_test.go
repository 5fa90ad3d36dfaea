package publish

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// testServer is a nats-server with JetStream which can be stopped and started on the same port and store: in this
// process, or where NATS_SERVER_BIN names a program, in one of its own.
type testServer struct {
	*server.Server
	t       testing.TB
	opts    *server.Options
	process *testkit.NATSServer
}

func startServer(t testing.TB, change func(*server.Options)) *testServer {
	t.Helper()
	if os.Getenv(testkit.NATSBinEnv) != "" {
		if change != nil {
			t.Fatalf("%s is set, and this test configures a server in its own process", testkit.NATSBinEnv)
		}
		return &testServer{t: t, process: testkit.NATS(t)}
	}
	s := &testServer{t: t, opts: &server.Options{
		ServerName: "test", Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	}}
	if change != nil {
		change(s.opts)
	}
	s.start()
	s.opts.Port = s.Addr().(*net.TCPAddr).Port
	t.Cleanup(s.stop)
	return s
}

func (s *testServer) start() {
	s.t.Helper()
	if s.process != nil {
		s.process.Start(s.t)
		return
	}
	opts := s.opts.Clone()
	srv, err := server.NewServer(opts)
	if err != nil {
		s.t.Fatalf("make server: %v", err)
	}
	s.Server = srv
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		s.t.Fatal("the server does not get ready")
	}
}

func (s *testServer) stop() {
	if s.process != nil {
		s.process.Stop(s.t)
		return
	}
	s.Shutdown()
	s.WaitForShutdown()
}

func (s *testServer) url() string {
	if s.process != nil {
		return s.process.URL()
	}
	return fmt.Sprintf("nats://127.0.0.1:%d", s.opts.Port)
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func connect(t testing.TB, s *testServer) *Conn {
	t.Helper()
	return connectWith(t, Config{Name: "test", URL: s.url()}, Hooks{})
}

func connectWith(t testing.TB, c Config, h Hooks) *Conn {
	t.Helper()
	conn, err := Connect(testContext(t), c, quiet(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func ensure(t testing.TB, c *Conn, s StreamConfig, subjects ...string) *Stream {
	t.Helper()
	s.Create = true
	st, err := c.EnsureStream(testContext(t), s, subjects, false)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// put stores a message as the bridge would and gives its sequence.
func put(t testing.TB, c *Conn, r *Row) uint64 {
	t.Helper()
	m := nats.NewMsg(r.Msg.Subject)
	for _, h := range r.Msg.Headers {
		m.Header.Set(h.Name, h.Value)
	}
	m.Data = r.Msg.Body
	ack, err := c.JetStream().PublishMsg(testContext(t), m)
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

// putForeign stores a message of somebody else.
func putForeign(t testing.TB, c *Conn, subject string) uint64 {
	t.Helper()
	ack, err := c.JetStream().Publish(testContext(t), subject, []byte("theirs"))
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

func rowFor(s *Stream, aggregate string, n int) *Row {
	r := testRow(aggregate, n)
	r.Stream = s
	return r
}

// streamIDs reads the whole stream, nothing deduplicated: the ids in their order.
func streamIDs(t testing.TB, c *Conn, name string) (ids []string) {
	t.Helper()
	ctx := testContext(t)
	cons, err := c.JetStream().OrderedConsumer(ctx, name, jetstream.OrderedConsumerConfig{HeadersOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.streamInfo(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := cons.Messages() // Next on the consumer would make another for every message
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Stop()
	for uint64(len(ids)) < info.state.Messages {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			t.Fatalf("read message %d of %d: %v", len(ids)+1, info.state.Messages, err)
		}
		ids = append(ids, m.Headers().Get(event.HeaderMsgID))
	}
	return ids
}
