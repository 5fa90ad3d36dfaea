package slot

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

const patience = 20 * time.Second

// newConfig makes a database with an outbox and a publication, and no slot.
func newConfig(t testing.TB, pg *testkit.PG) Config {
	t.Helper()
	u := pg.PlainDatabase(t)
	testkit.Exec(t, u, `CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload text)`)
	name := "slot_" + testkit.Value[string](t, u, `SELECT current_database()`)
	c := Config{URL: u, Slot: name, Publication: "tidegate", Tables: []string{"public.outbox"}}
	if _, err := EnsurePublication(t.Context(), testkit.Connect(t, u), c.Publication, c.Tables, true); err != nil {
		t.Fatal(err)
	}
	return c
}

// newSlot is newConfig with its slot.
func newSlot(t testing.TB, pg *testkit.PG) Config {
	t.Helper()
	c := newConfig(t, pg)
	if _, err := CreateSlot(t.Context(), c, false); err != nil {
		t.Fatal(err)
	}
	return c
}

// serverVersion is the server's major version, for what differs by it.
func serverVersion(t testing.TB, pg *testkit.PG) int {
	t.Helper()
	return testkit.Value[int](t, pg.URL("postgres"), `SELECT current_setting('server_version_num')::int / 10000`)
}

// withSetting sets one of the server's settings for replication connections only.
func withSetting(t testing.TB, c Config, setting string) Config {
	t.Helper()
	u, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("options", "-c "+setting)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	c.ReplicationURL = u.String()
	return c
}

func insert(t testing.TB, c Config, payloads ...string) {
	t.Helper()
	for _, p := range payloads {
		testkit.Exec(t, c.URL, `INSERT INTO outbox (payload) VALUES ($1)`, p)
	}
}

func confirmedFlush(t testing.TB, c Config) decoder.LSN {
	t.Helper()
	return lsnOf(t, c, `SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '`+c.Slot+`'`)
}

func lsnOf(t testing.TB, c Config, query string) decoder.LSN {
	t.Helper()
	lsn, err := decoder.ParseLSN(testkit.Value[string](t, c.URL, query))
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

const currentLSN = `SELECT pg_current_wal_insert_lsn()::text`

// taker is a Handler that keeps the payloads, and confirms what it may when confirms is set.
type taker struct {
	stream   *Stream
	confirms bool
	full     atomic.Bool

	mu       sync.Mutex
	rows     []string
	sizes    []int
	messages []string
	oversize []*TooLargeError
	commits  int
	flushes  int
}

func (k *taker) Handle(m *decoder.Message, _ decoder.LSN) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch m.Kind {
	case decoder.KindInsert:
		data := m.New[1].Data
		k.rows = append(k.rows, string(data[:min(len(data), 100)]))
		k.sizes = append(k.sizes, len(data))
	case decoder.KindLogical:
		k.messages = append(k.messages, string(m.Logical.Prefix)+"="+string(m.Logical.Content))
	case decoder.KindCommit:
		k.commits++
		if k.confirms {
			k.stream.Confirm(m.Commit.EndLSN)
		}
	}
	return nil
}

func (k *taker) Idle(walEnd decoder.LSN) {
	if k.confirms {
		k.stream.Confirm(walEnd)
	}
}

func (k *taker) Full() bool { return k.full.Load() }

func (k *taker) Flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flushes++
}

func (k *taker) got() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.rows)
}

// goesOn is a taker that goes on past oversized rows.
type goesOn struct{ *taker }

func (g goesOn) Oversize(e *TooLargeError) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.oversize = append(g.oversize, e)
	return nil
}

// running is a Stream whose Run runs.
type running struct {
	*Stream
	cancel context.CancelFunc
	done   chan error
}

func connect(t testing.TB, c Config) *Stream {
	t.Helper()
	s, err := Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func startStream(t testing.TB, c Config) *Stream {
	t.Helper()
	s := connect(t, c)
	if _, err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func launch(t testing.TB, s *Stream, h Handler) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Stream: s, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx, h) }()
	t.Cleanup(func() {
		cancel()
		s.Close()
	})
	return r
}

// begin runs a session of c into k.
func begin(t testing.TB, c Config, k *taker) *running {
	t.Helper()
	k.stream = startStream(t, c)
	return launch(t, k.stream, k)
}

// ended waits for Run to return.
func (r *running) ended(t testing.TB) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		t.Fatal("Run does not return")
		return nil
	}
}

// stop ends the session in order.
func (r *running) stop(t testing.TB) {
	t.Helper()
	r.cancel()
	if err := r.ended(t); !errors.Is(err, context.Canceled) {
		t.Fatalf("Run: %v", err)
	}
	if err := r.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func awaitRows(t testing.TB, k *taker, n int) []string {
	t.Helper()
	testkit.Eventually(t, patience, func() bool { return len(k.got()) >= n }, "%d rows arrive", n)
	return k.got()
}

// awaitCommits waits until n transactions were handed over whole.
func awaitCommits(t testing.TB, k *taker, n int) []string {
	t.Helper()
	testkit.Eventually(t, patience, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.commits >= n
	}, "%d transactions arrive", n)
	return k.got()
}

func wantRows(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
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
