package relay_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/relay"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const baseConfig = `
source: {name: app}
postgres: {url: "{{.PG}}"}
streams: [{name: OUTBOX, duplicate_window: 2s}]
outboxes: [{table: public.outbox, kind: event, stream: OUTBOX}]
nats: {url: "{{.NATS}}"}
http: {listen: "127.0.0.1:0"}
log: {level: debug}
`

// eventConfig stops at the first poison row, so that no table of ours is needed.
const eventConfig = baseConfig + "park: {store: off}\n"

// load reads a configuration as the program would.
func load(t *testing.T, text string, values any) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tidegate.yaml")
	if err := os.WriteFile(file, []byte(testkit.ConfigText(t, text, values)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{File: file, Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// bridge is a running bridge of a test.
type bridge struct {
	stop context.CancelFunc
	done chan error
}

func start(t *testing.T, cfg *config.Config) *bridge {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	b, err := relay.New(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &bridge{stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- b.Run(ctx) }()
	t.Cleanup(cancel)
	return r
}

// end stops the bridge and gives what it ended with.
func (b *bridge) end(t *testing.T) error {
	t.Helper()
	b.stop()
	return b.wait(t, 20*time.Second)
}

func (b *bridge) wait(t *testing.T, timeout time.Duration) error {
	t.Helper()
	select {
	case err := <-b.done:
		b.done <- err
		return err
	case <-time.After(timeout):
		t.Fatal("the bridge does not end")
		return nil
	}
}

func messages(t *testing.T, js jetstream.JetStream, stream string) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return 0
	}
	return s.CachedInfo().State.Msgs
}

const outboxTable = `CREATE TABLE outbox (
	id uuid PRIMARY KEY DEFAULT gen_random_uuid(), seq bigint GENERATED ALWAYS AS IDENTITY (CACHE 1),
	aggregate_type text NOT NULL, aggregate_id text NOT NULL, event_type text NOT NULL, payload jsonb,
	created_at timestamptz NOT NULL DEFAULT now())`

func TestCommittedRowsReachTheStream(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	url := pg.Database(t)
	nats := testkit.NATS(t)
	testkit.Exec(t, url, outboxTable)
	cfg := load(t, eventConfig, map[string]string{"PG": url, "NATS": nats.URL()})
	b := start(t, cfg)
	testkit.Eventually(t, 20*time.Second, func() bool {
		return testkit.Value[int](t, url, "SELECT count(*)::int FROM pg_replication_slots WHERE active AND slot_name='tidegate'") == 1
	}, "the slot is not taken")
	testkit.Exec(t, url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) SELECT 'order', 'o'||(i%10), 'placed', jsonb_build_object('n', i) FROM generate_series(1,1000) i")
	js := nats.JetStream(t)
	testkit.Eventually(t, 20*time.Second, func() bool { return messages(t, js, "OUTBOX") == 1000 }, "the rows do not arrive")
	if err := b.end(t); err != nil {
		t.Fatal(err)
	}
}
