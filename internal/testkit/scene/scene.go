// Package scene is one source, one destination and the program between them, each a process of its own, with an
// application that writes: what tests that break things begin with and end by comparing.
package scene

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/migrations"
)

const (
	// Stream is where the outbox is published to.
	Stream = "OUTBOX"
	// Source is the source's name.
	Source = "app"

	answerTimeout = 5 * time.Second
	startTimeout  = 30 * time.Second
	storedTimeout = 2 * time.Minute // not a promise: what takes too long is measured, and then reported
	judgeTimeout  = 2 * time.Minute
)

// Config is the configuration where Options names no other. The duplicate window is 2 s: with outages that are longer
// it is the bridge's memory that is tested, not the broker's.
const Config = `
source: {name: app}
postgres: {url: "{{.PG}}"}
streams: [{name: OUTBOX, duplicate_window: 2s}]
outboxes: [{table: public.outbox, kind: event, stream: OUTBOX}]
nats: {url: "{{.NATS}}"}
`

// Options says what is different from a cluster and a nats-server of the scene's own. The zero value is neither.
type Options struct {
	Postgres []testkit.PGOption
	NATS     []testkit.NATSOption

	// NATSURL and JS are servers that the caller has started, instead of one of the scene's own.
	NATSURL string
	JS      jetstream.JetStream

	// Through gives the addresses that the bridge uses, from the servers' own: of proxies, for example. The writer and
	// the comparison keep to the servers' own.
	Through func(pg, nats string) (viaPG, viaNATS string)

	// Config is a template that may name .PG and .NATS; empty: Config.
	Config string
	// Program is the bridge; nil: testkit.Binary.
	Program *testkit.Program
}

// Scene is what a test breaks. Its methods that take a testing.TB are for the test's goroutine.
type Scene struct {
	PG      *testkit.PG
	URL     string              // of the source's database
	NATS    *testkit.NATSServer // nil where Options brought servers
	JS      jetstream.JetStream
	Program *testkit.Program
	Config  string            // the configuration's text
	Env     map[string]string // of the bridges that are started from now on

	peak atomic.Int64

	foreigners sync.Mutex // held while one of them publishes: what is theirs is always known exactly
	foreign    uint64
	gone       uint64
}

// New starts what Options does not bring, and makes the outbox.
func New(t testing.TB, o Options) *Scene {
	t.Helper()
	s := &Scene{PG: testkit.Postgres(t, o.Postgres...), Program: o.Program, JS: o.JS}
	natsURL := o.NATSURL
	if natsURL == "" {
		s.NATS = testkit.NATS(t, o.NATS...)
		s.JS, natsURL = s.NATS.JetStream(t), s.NATS.URL()
	}
	if s.Program == nil {
		s.Program = testkit.Binary(t)
	}
	s.URL = s.PG.PlainDatabase(t)
	if _, err := migrations.Up(t.Context(), s.URL, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	pgURL := s.URL
	if o.Through != nil {
		pgURL, natsURL = o.Through(pgURL, natsURL)
	}
	if o.Config == "" {
		o.Config = Config
	}
	s.Config = testkit.ConfigText(t, o.Config, map[string]string{"PG": pgURL, "NATS": natsURL})
	return s
}

// Launch runs the bridge and does not wait for it.
func (s *Scene) Launch(t testing.TB) *testkit.Process {
	t.Helper()
	p := s.Program.Start(t, testkit.Call{Args: []string{"run"}, Config: s.Config, Env: s.Env})
	s.watchMemory(p)
	return p
}

// Start runs the bridge and waits until it streams.
func (s *Scene) Start(t testing.TB) *testkit.Process {
	t.Helper()
	p := s.Launch(t)
	p.WaitLog(t, startTimeout, `"msg":"streaming"`)
	return p
}

// Stop ends a bridge in order: it has to end with 0.
func Stop(t testing.TB, p *testkit.Process) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	if code := p.Wait(t, 20*time.Second); code != 0 {
		t.Fatalf("the bridge ended with %d", code)
	}
}

const memoryInterval = 100 * time.Millisecond

// watchMemory samples until the process has ended: a killed one cannot be asked.
func (s *Scene) watchMemory(p *testkit.Process) {
	go func() {
		tick := time.NewTicker(memoryInterval)
		defer tick.Stop()
		for {
			if peak, err := testkit.PeakMemoryOf(p.PID()); err == nil && peak > s.peak.Load() {
				s.peak.Store(peak) // two bridges at once may lose a sample, not the next one
			}
			select {
			case <-p.Done():
				return
			case <-tick.C:
			}
		}
	}()
}

// PeakMemory is the most memory that any of the scene's bridges has had resident, in bytes.
func (s *Scene) PeakMemory() int64 { return s.peak.Load() }

// Rows counts what is committed.
func (s *Scene) Rows(t testing.TB) int {
	t.Helper()
	return testkit.Value[int](t, s.URL, "SELECT count(*)::int FROM outbox")
}

// Stored is how many messages of ours the stream has ever stored: its last sequence, without others'. false: nobody answers now, or there is no stream yet.
func (s *Scene) Stored() (uint64, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	s.foreigners.Lock()
	defer s.foreigners.Unlock()
	stream, err := s.JS.Stream(ctx, Stream)
	if err != nil {
		return 0, false
	}
	return stream.CachedInfo().State.LastSeq + s.gone - s.foreign, true
}

// Gone says that the stream begins again at its first sequence, without n messages that Stored goes on to count.
func (s *Scene) Gone(n uint64) {
	s.foreigners.Lock()
	defer s.foreigners.Unlock()
	s.gone += n
}

// PublishForeign stores a message that is not of the source.
func (s *Scene) PublishForeign(ctx context.Context, m *nats.Msg) error {
	s.foreigners.Lock()
	defer s.foreigners.Unlock()
	_, err := s.JS.PublishMsg(ctx, m)
	if err == nil {
		s.foreign++
	}
	return err
}

// Foreign counts what PublishForeign has stored.
func (s *Scene) Foreign() int {
	s.foreigners.Lock()
	defer s.foreigners.Unlock()
	return int(s.foreign)
}

// AwaitStored waits for n messages more than there are now.
func (s *Scene) AwaitStored(t testing.TB, n uint64) {
	t.Helper()
	var first uint64
	known := false
	testkit.Eventually(t, storedTimeout, func() bool {
		stored, ok := s.Stored()
		if ok && !known {
			first, known = stored, true
		}
		return ok && stored >= first+n
	}, "%d more messages are stored", n)
}

// Compare compares the table with the whole stream; what is not of the source is left out once somebody has published such.
func (s *Scene) Compare(t testing.TB) *oracle.Report {
	t.Helper()
	ledger := s.Ledger(t)
	if s.Foreign() > 0 {
		ledger.Source = Source
	}
	ledger.Hold = true
	ctx, cancel := context.WithTimeout(context.Background(), judgeTimeout)
	defer cancel()
	if err := ledger.Stored(ctx, s.JS, Stream); err != nil {
		t.Fatal(err)
	}
	report := ledger.Report()
	return &report
}

// Ledger holds what is committed now.
func (s *Scene) Ledger(t testing.TB) *oracle.Ledger {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), judgeTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var ledger oracle.Ledger
	if err := ledger.Committed(ctx, conn, oracle.Outbox(Source)); err != nil {
		t.Fatal(err)
	}
	return &ledger
}

// AwaitAll waits until the stream has stored as many messages as there are rows.
func (s *Scene) AwaitAll(t testing.TB, timeout time.Duration) {
	t.Helper()
	rows := uint64(s.Rows(t))
	testkit.Eventually(t, timeout, func() bool {
		stored, ok := s.Stored()
		return ok && stored >= rows
	}, "all of %d rows are stored", rows)
}
