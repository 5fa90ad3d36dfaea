package relay_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// hung is a bridge whose broker hangs with more sent to it than the sockets hold: the next write blocks.
func hung(t *testing.T, pg *testkit.PG) (*bridge, *testkit.NATSServer) {
	t.Helper()
	url := pg.Database(t)
	nats := testkit.NATS(t)
	testkit.Exec(t, url, outboxTable)
	b := start(t, load(t, eventConfig, map[string]string{"PG": url, "NATS": nats.URL()}))
	testkit.Eventually(t, 20*time.Second, func() bool { return slots(t, url, "active AND confirmed_flush_lsn IS NOT NULL") == 1 }, "the slot is not taken")
	testkit.Exec(t, url, insertRow)
	js := nats.JetStream(t)
	testkit.Eventually(t, 20*time.Second, func() bool { return messages(t, js, "OUTBOX") == 1 }, "no row arrives")
	nats.Signal(t, syscall.SIGSTOP)
	t.Cleanup(func() { nats.Signal(t, syscall.SIGCONT) })
	testkit.Exec(t, url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "+
		"SELECT 'order', 'o'||i, 'placed', to_jsonb(repeat('x', 200000)) FROM generate_series(1, 250) i")
	testkit.Eventually(t, 20*time.Second, func() bool {
		return testkit.Value[bool](t, url, "SELECT coalesce(bool_or(sent_lsn - confirmed_flush_lsn > 1e5), false) "+
			"FROM pg_stat_replication r JOIN pg_replication_slots s ON s.active_pid = r.pid")
	}, "the rows are not sent")
	return b, nats
}

func TestBrokerThatHangsDoesNotHoldUpAShutdown(t *testing.T) {
	pg := testkit.Postgres(t)
	b, nats := hung(t, pg)
	if took := pg.Stop(t, testkit.Fast); took > 4*time.Second {
		t.Errorf("the shutdown took %s", took)
	}
	nats.Signal(t, syscall.SIGCONT)
	if err := b.end(t); err != nil {
		t.Fatal(err)
	}
}

func TestBrokerThatHangsDoesNotKeepTheBridgeFromStopping(t *testing.T) {
	b, _ := hung(t, testkit.SharedPostgres(t))
	began := time.Now()
	if err := b.end(t); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	t.Logf("stopped within %s", took.Round(time.Millisecond))
	if took > 8*time.Second {
		t.Error("the broker kept the bridge from stopping")
	}
}
