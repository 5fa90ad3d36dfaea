package relay_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// storedIDs gives the outbox ids of a subject's messages as they stand in the stream.
func storedIDs(t *testing.T, js jetstream.JetStream, subject string) (ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	consumer, err := js.OrderedConsumer(ctx, "OUTBOX", jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}, HeadersOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := consumer.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	for range info.NumPending {
		m, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.Headers().Get(event.HeaderID))
	}
	return ids
}

// The duplicate window is 100 ms here: it is our memory that is tested, and not the broker's.
func TestCopyThatIsCutShortAgainAndAgainPublishesEveryRowOnce(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	nats := testkit.NATS(t)
	testkit.Exec(t, url, outboxTable)
	const rows = 40_000
	testkit.Exec(t, url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type) SELECT 'order', 'o' || i % 2, 'placed' FROM generate_series(1, $1) i", rows)
	text := strings.Replace(eventConfig, "duplicate_window: 2s", "duplicate_window: 100ms", 1) + "slot: {snapshot: publish}\n"
	cfg := load(t, text, map[string]string{"PG": url, "NATS": nats.URL()})
	js := nats.JetStream(t)
	cuts := []struct {
		name string
		cut  func(b *bridge)
	}{
		{"connections ended", func(*bridge) {
			testkit.Exec(t, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'tidegate%'")
		}},
		{"NATS killed", func(*bridge) {
			nats.Kill9(t)
			nats.Start(t)
		}},
		{"bridge stopped", func(b *bridge) {
			if err := b.end(t); err != nil {
				t.Fatal(err)
			}
		}},
	}
	b := start(t, cfg)
	for _, c := range cuts {
		stored := messages(t, js, "OUTBOX")
		testkit.Eventually(t, 30*time.Second, func() bool { return messages(t, js, "OUTBOX") > stored+500 }, "the copy does not go on")
		t.Log(c.name, "at", messages(t, js, "OUTBOX"))
		testkit.Exec(t, url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type) SELECT 'order', 'o' || i % 2, 'moved' FROM generate_series(1, 50) i")
		c.cut(b)
		select {
		case err := <-b.done:
			if err != nil {
				t.Fatal(err)
			}
			b = start(t, cfg)
		default:
		}
	}
	t.Log(testkit.AllStored(t, 60*time.Second, url, nats, "OUTBOX", oracle.Outbox("app")))
	committed := testkit.Column[string](t, url, "SELECT id::text FROM outbox WHERE aggregate_id = 'o0' ORDER BY seq")
	if stored := storedIDs(t, js, "outbox.order.o0"); !slices.Equal(stored, committed) {
		t.Errorf("the %d rows of an aggregate are stored in another order than they were written in", len(committed))
	}
	if err := b.end(t); err != nil {
		t.Fatal(err)
	}
}
