package relay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// busy writes rows in transactions of one to eight, some rolled back, until it is ended. It goes on over lost
// connections.
func busy(t *testing.T, url string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for ctx.Err() == nil {
				writeSome(ctx, url, w)
			}
		})
	}
	end = sync.OnceFunc(func() {
		cancel()
		writers.Wait()
	})
	t.Cleanup(end)
	return end
}

// writeSome makes one connection and works on it until that breaks.
func writeSome(ctx context.Context, url string, w int) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for range pace.C {
		end := "COMMIT"
		if rand.N(10) == 0 {
			end = "ROLLBACK"
		}
		_, err := conn.Exec(ctx, fmt.Sprintf("BEGIN; INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "+
			"SELECT 'order', 'w%d-' || (g %% 5), 'placed', to_jsonb(repeat('x', %d)) FROM generate_series(1, %d) g; %s",
			w, rand.N(300), 1+rand.N(8), end))
		if err != nil {
			return
		}
	}
}

// faults breaks one thing at a time, each several times.
var faults = []struct {
	name string
	do   func(t *testing.T, pg *testkit.PG, url string, nats *testkit.NATSServer)
}{
	{"walsender ended", func(t *testing.T, _ *testkit.PG, url string, _ *testkit.NATSServer) {
		testkit.Exec(t, url, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL")
	}},
	{"every connection of the bridge ended", func(t *testing.T, _ *testkit.PG, url string, _ *testkit.NATSServer) {
		testkit.Exec(t, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tidegate%'")
	}},
	{"NATS killed", func(t *testing.T, _ *testkit.PG, _ string, nats *testkit.NATSServer) {
		nats.Kill9(t)
		nats.Start(t)
	}},
	{"NATS hangs for a moment", func(t *testing.T, _ *testkit.PG, _ string, nats *testkit.NATSServer) {
		nats.Signal(t, syscall.SIGSTOP)
		timer := time.NewTimer(time.Second)
		<-timer.C
		nats.Signal(t, syscall.SIGCONT)
	}},
	{"PostgreSQL restarted", func(t *testing.T, pg *testkit.PG, _ string, _ *testkit.NATSServer) { pg.Restart(t, testkit.Fast) }},
	{"PostgreSQL crashed", func(t *testing.T, pg *testkit.PG, _ string, _ *testkit.NATSServer) { pg.Restart(t, testkit.Immediate) }},
	{"both at once", func(t *testing.T, pg *testkit.PG, _ string, nats *testkit.NATSServer) {
		nats.Kill9(t)
		pg.Restart(t, testkit.Fast)
		nats.Start(t)
	}},
}

func TestNothingIsLostDoubledOrReorderedWhateverBreaksUnderALivingBridge(t *testing.T) {
	pg := testkit.Postgres(t)
	url := pg.Database(t)
	nats := testkit.NATS(t)
	testkit.Exec(t, url, outboxTable)
	cfg := load(t, eventConfig, map[string]string{"PG": url, "NATS": nats.URL()})
	b := start(t, cfg)
	js := nats.JetStream(t)
	testkit.Eventually(t, 20*time.Second, func() bool { return slots(t, url, "active AND confirmed_flush_lsn IS NOT NULL") == 1 }, "the slot is not taken")
	end := busy(t, url)
	progress := func() {
		stored := messages(t, js, "OUTBOX")
		testkit.Eventually(t, 30*time.Second, func() bool { return messages(t, js, "OUTBOX") > stored+50 }, "no progress")
	}
	progress()
	for _, fault := range faults {
		t.Log(fault.name)
		fault.do(t, pg, url, nats)
		progress()
	}
	end()
	t.Log(testkit.AllStored(t, 30*time.Second, url, nats, "OUTBOX", oracle.Outbox("app")))
	if err := b.end(t); err != nil {
		t.Fatal(err)
	}
}
