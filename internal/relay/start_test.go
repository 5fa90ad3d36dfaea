package relay_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

const insertRow = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ('order', 'o', 'placed')"

func slots(t *testing.T, url, where string) int {
	t.Helper()
	return testkit.Value[int](t, url, "SELECT count(*)::int FROM pg_replication_slots WHERE database = current_database() AND "+where)
}

// A slot waits for every open transaction: what they commit is older than it, and newer than any count before.
func TestRowsCommittedWhileTheSlotIsMadeAreNotLost(t *testing.T) {
	for _, snapshot := range []string{`""`, "publish"} {
		t.Run(snapshot, func(t *testing.T) {
			url := testkit.SharedPostgres(t).Database(t)
			nats := testkit.NATS(t)
			testkit.Exec(t, url, outboxTable)
			ctx := context.Background()
			tx, err := testkit.Connect(t, url).Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(ctx, insertRow); err != nil {
				t.Fatal(err)
			}
			b := start(t, load(t, eventConfig+"slot: {snapshot: "+snapshot+"}\n", map[string]string{"PG": url, "NATS": nats.URL()}))
			testkit.Eventually(t, 20*time.Second, func() bool { return slots(t, url, "confirmed_flush_lsn IS NULL") == 1 }, "the slot is not being made")
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, 20*time.Second, func() bool { return slots(t, url, "active AND confirmed_flush_lsn IS NOT NULL") == 1 }, "the slot is not taken")
			testkit.Exec(t, url, insertRow)
			js := nats.JetStream(t)
			testkit.Eventually(t, 10*time.Second, func() bool { return messages(t, js, "OUTBOX") == 2 }, "not both rows arrive")
			if err := b.end(t); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestInstancesThatStartTogetherShareOneSlot(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	nats := testkit.NATS(t)
	testkit.Exec(t, url, outboxTable)
	testkit.Exec(t, url, insertRow)
	cfg := load(t, eventConfig+"slot: {snapshot: publish}\n", map[string]string{"PG": url, "NATS": nats.URL()})
	var all []*bridge
	for range 4 {
		all = append(all, start(t, cfg))
	}
	js := nats.JetStream(t)
	testkit.Eventually(t, 20*time.Second, func() bool {
		for _, b := range all {
			select {
			case err := <-b.done:
				t.Fatalf("an instance ended: %v", err)
			default:
			}
		}
		return messages(t, js, "OUTBOX") == 1 && testkit.Value[int](t, url,
			"SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'tidegate_tidegate_standby'") == 3
	}, "no three stand by")
	for _, b := range all {
		if err := b.end(t); err != nil {
			t.Error(err)
		}
	}
}

// connections names what a database's bridges have open, without what a test has.
func connections(t *testing.T, url string) []string {
	t.Helper()
	return testkit.Column[string](t, url, "SELECT application_name FROM pg_stat_activity "+
		"WHERE datname = current_database() AND application_name LIKE 'tidegate%' ORDER BY 1")
}

func TestNoConnectionIsKeptThatNobodyUses(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	nats := testkit.NATS(t)
	testkit.Exec(t, url, outboxTable)
	cfg := load(t, eventConfig, map[string]string{"PG": url, "NATS": nats.URL()})
	first := start(t, cfg)
	active := []string{"tidegate_tidegate", "tidegate_tidegate_drift", "tidegate_tidegate_guard", "tidegate_tidegate_watch"}
	testkit.Eventually(t, 20*time.Second, func() bool { return slices.Equal(connections(t, url), active) },
		"an active instance has other connections than %v", active)
	second := start(t, cfg)
	both := append(slices.Clone(active), "tidegate_tidegate_guard", "tidegate_tidegate_standby")
	slices.Sort(both)
	testkit.Eventually(t, 20*time.Second, func() bool { return slices.Equal(connections(t, url), both) },
		"with a standby there are other connections than %v", both)
	if err := first.end(t); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() bool { return slices.Equal(connections(t, url), active) },
		"after the takeover there are other connections than %v", active)
	if err := second.end(t); err != nil {
		t.Fatal(err)
	}
}

func TestPermissionThatNATSDeniesEndsTheBridge(t *testing.T) {
	for _, denied := range []string{"$JS.API.STREAM.INFO.>", "$JS.API.STREAM.MSG.GET.>", "$KV.>"} {
		t.Run(denied, func(t *testing.T) {
			url := testkit.SharedPostgres(t).Database(t)
			nats := testkit.NATS(t, testkit.NATSConf(`authorization: {users: [{user: a, password: b, permissions: {publish: {deny: ["`+denied+`"]}}}]}`))
			testkit.Exec(t, url, outboxTable)
			b := start(t, load(t, eventConfig, map[string]string{"PG": url, "NATS": "nats://a:b@" + nats.Address()}))
			if err := b.wait(t, 20*time.Second); exit.Code(err) != exit.NATS || exit.Hint(err) == "" {
				t.Fatalf("ended with %v (code %d, hint %q)", err, exit.Code(err), exit.Hint(err))
			}
		})
	}
}
