// Package acceptance_test runs the built program as its users do, beside a real PostgreSQL and a real nats-server, and
// gives it what is wrong. Afterwards the outbox table is compared with the whole stream, nothing deduplicated.
package acceptance_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// scene is one source, one NATS and what runs between them.
type scene struct {
	pg     *testkit.PG
	url    string
	nats   *testkit.NATSServer
	js     jetstream.JetStream
	bin    *testkit.Program
	config string
}

const configText = `
source: {name: app}
postgres: {url: "{{.PG}}"}
streams: [{name: OUTBOX, duplicate_window: 2s}]
outboxes: [{table: public.outbox, kind: event, stream: OUTBOX}]
park: {store: off}
nats: {url: "{{.NATS}}"}
`

const outboxTable = `CREATE TABLE outbox (
	id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	seq bigint GENERATED ALWAYS AS IDENTITY (CACHE 1),
	aggregate_type text NOT NULL, aggregate_id text NOT NULL, event_type text NOT NULL, payload jsonb,
	created_at timestamptz NOT NULL DEFAULT now())`

// pause lets time pass: the one thing that tests wait for by the clock.
func pause(d time.Duration) { <-time.After(d) }

func contains(text, part string) bool { return strings.Contains(text, part) }

// newScene starts a cluster and a server of its own, and makes the outbox. The duplicate window is 2 s: with outages
// that are longer it is our memory that is tested, not the broker's.
func newScene(t *testing.T, bin *testkit.Program, options ...testkit.PGOption) *scene {
	t.Helper()
	s := &scene{pg: testkit.Postgres(t, options...), nats: testkit.NATS(t), bin: bin}
	s.url = s.pg.Database(t)
	s.js = s.nats.JetStream(t)
	s.config = testkit.ConfigText(t, configText, map[string]string{"PG": s.url, "NATS": s.nats.URL()})
	testkit.Exec(t, s.url, outboxTable)
	return s
}

// start runs the bridge and waits until it streams.
func (s *scene) start(t *testing.T) *testkit.Process {
	t.Helper()
	p := s.bin.Start(t, testkit.Call{Args: []string{"run"}, Config: s.config})
	p.WaitLog(t, 30*time.Second, `"msg":"streaming"`)
	return p
}

// stop ends the bridge in order.
func stop(t *testing.T, p *testkit.Process) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	if code := p.Wait(t, 20*time.Second); code != 0 {
		t.Fatalf("the bridge ended with %d", code)
	}
}

func (s *scene) rows(t *testing.T) int {
	t.Helper()
	return testkit.Value[int](t, s.url, "SELECT count(*)::int FROM outbox")
}

// messages counts what the stream has ever stored: its last sequence.
func (s *scene) messages(t *testing.T) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	st, err := s.js.Stream(ctx, "OUTBOX")
	if err != nil {
		return 0
	}
	return st.CachedInfo().State.LastSeq
}

// settled waits until every committed row is stored.
func (s *scene) settled(t *testing.T, timeout time.Duration) {
	t.Helper()
	testkit.Eventually(t, timeout, func() bool { return s.messages(t) >= uint64(s.rows(t)) },
		"not every row is stored: %d rows, %d messages", s.rows(t), s.messages(t))
}

// judge compares table and stream: nothing may be missing, invented, doubled or out of order.
func (s *scene) judge(t *testing.T) {
	t.Helper()
	report := s.compare(t)
	t.Log(report)
	if report.Committed == 0 {
		t.Fatal("nothing was committed: the test has shown nothing")
	}
	if !report.Clean() {
		t.Fatal("the stream is not what was committed")
	}
}

func (s *scene) compare(t *testing.T) *oracle.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	report, err := oracle.Compare(ctx, testkit.Connect(t, s.url), s.js, "OUTBOX", oracle.Outbox("app"))
	if err != nil {
		t.Fatal(err)
	}
	return report
}
