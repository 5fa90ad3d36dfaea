package relay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/migrations"
)

// lot is a source whose poison rows are parked, with a stream that takes no message above 1000 bytes.
type lot struct {
	url  string
	js   jetstream.JetStream
	cfg  *config.Config
	nats *testkit.NATSServer
}

func newLot(t *testing.T, park string) *lot {
	t.Helper()
	l := &lot{url: testkit.SharedPostgres(t).Database(t), nats: testkit.NATS(t)}
	if _, err := migrations.Up(t.Context(), l.url, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	l.js = l.nats.JetStream(t)
	l.limit(t, 1000)
	l.cfg = load(t, baseConfig+"park: "+park+"\n", map[string]string{"PG": l.url, "NATS": l.nats.URL()})
	return l
}

func (l *lot) limit(t *testing.T, size int32) {
	t.Helper()
	_, err := l.js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "OUTBOX", Subjects: []string{"outbox.>"}, MaxMsgSize: size, Duplicates: 2 * time.Second, Discard: jetstream.DiscardNew,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// insert commits one row; its number is in the payload.
func (l *lot) insert(t *testing.T, aggregate string, n, size int) {
	t.Helper()
	testkit.Exec(t, l.url, fmt.Sprintf("INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', '%s', '%d', jsonb_build_object('pad', repeat('x', %d)))", aggregate, n, size))
}

// stored gives the event types, which are the numbers, of an aggregate's messages in the stream's order, with a '*' where
// they are marked parked.
func (l *lot) stored(t *testing.T, aggregate string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	st, err := l.js.Stream(ctx, "OUTBOX")
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for seq := uint64(1); seq <= st.CachedInfo().State.LastSeq; seq++ {
		m, err := st.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get(event.HeaderAggregateID) != aggregate {
			continue
		}
		text += " " + m.Header.Get(event.HeaderEventType)
		if m.Header.Get(event.HeaderLate) == "parked" {
			text += "*"
		}
	}
	return text
}

func (l *lot) want(t *testing.T, aggregate, want string) {
	t.Helper()
	testkit.Eventually(t, 20*time.Second, func() bool { return l.stored(t, aggregate) == want }, "aggregate %s: have%s, want%s", aggregate, l.stored(t, aggregate), want)
}

func (l *lot) states(t *testing.T) string {
	t.Helper()
	return testkit.Value[string](t, l.url, "SELECT coalesce(string_agg(state || ' ' || convert_from(event_type, 'UTF8'), ', ' ORDER BY ord, position), '') FROM tidegate.parked")
}

func (l *lot) wantStates(t *testing.T, want string) {
	t.Helper()
	testkit.Eventually(t, 20*time.Second, func() bool { return l.states(t) == want }, "have %q, want %q", l.states(t), want)
}

func (l *lot) streaming(t *testing.T) *bridge {
	t.Helper()
	b := start(t, l.cfg)
	testkit.Eventually(t, 20*time.Second, func() bool {
		return testkit.Value[int](t, l.url, "SELECT count(*)::int FROM pg_replication_slots WHERE active AND slot_name='tidegate'") == 1
	}, "the slot is not taken")
	return b
}

func TestNothingOfAHeldAggregateOvertakesAParkedRow(t *testing.T) {
	l := newLot(t, "{order: hold}")
	b := l.streaming(t)
	l.insert(t, "a", 1, 10)
	l.insert(t, "a", 2, 2000) // poison
	l.insert(t, "a", 3, 10)
	l.insert(t, "b", 1, 10)
	l.insert(t, "a", 4, 2000) // poison behind poison
	l.insert(t, "a", 5, 10)
	l.insert(t, "b", 2, 10)
	l.want(t, "b", " 1 2")
	l.want(t, "a", " 1")
	l.wantStates(t, "parked 2, held 3, parked 4, held 5")
	if err := b.end(t); err != nil {
		t.Fatal(err)
	}

	l.limit(t, 10_000)
	b = l.streaming(t)
	l.insert(t, "a", 6, 10)
	l.wantStates(t, "parked 2, held 3, parked 4, held 5, held 6")
	testkit.Exec(t, l.url, "UPDATE tidegate.parked SET state = 'retry' WHERE event_type = '2'")
	l.want(t, "a", " 1 2* 3*")
	l.wantStates(t, "parked 4, held 5, held 6")
	testkit.Exec(t, l.url, "UPDATE tidegate.parked SET state = 'discard' WHERE event_type = '4'")
	l.want(t, "a", " 1 2* 3* 5* 6*")
	l.wantStates(t, "discarded 4")
	l.insert(t, "a", 7, 10)
	l.want(t, "a", " 1 2* 3* 5* 6* 7")
	if err := b.end(t); err != nil {
		t.Fatal(err)
	}
}

func TestSkippedRowIsParkedBeforeALaterOneOfItsAggregateIsSent(t *testing.T) {
	l := newLot(t, "{order: skip}")
	b := l.streaming(t)
	l.insert(t, "a", 1, 10)
	l.insert(t, "a", 2, 2000)
	l.insert(t, "a", 3, 10)
	l.want(t, "a", " 1 3")
	l.wantStates(t, "parked 2")
	if err := b.end(t); err != nil {
		t.Fatal(err)
	}
	l.limit(t, 10_000)
	b = l.streaming(t)
	testkit.Exec(t, l.url, "UPDATE tidegate.parked SET state = 'retry'")
	l.want(t, "a", " 1 3 2*")
	l.wantStates(t, "")
	if err := b.end(t); err != nil {
		t.Fatal(err)
	}
}

func TestRowThatStillCannotBePublishedIsParkedAgain(t *testing.T) {
	l := newLot(t, "{order: hold}")
	b := l.streaming(t)
	l.insert(t, "a", 1, 2000)
	l.insert(t, "a", 2, 10)
	l.wantStates(t, "parked 1, held 2")
	testkit.Exec(t, l.url, "UPDATE tidegate.parked SET state = 'retry' WHERE event_type = '1'")
	testkit.Eventually(t, 20*time.Second, func() bool {
		return testkit.Value[int](t, l.url, "SELECT coalesce(max(attempts), 0)::int FROM tidegate.parked WHERE state = 'parked'") > 0
	}, "it was not tried")
	l.wantStates(t, "parked 1, held 2")
	l.want(t, "a", "")
	testkit.Exec(t, l.url, "UPDATE tidegate.parked SET state = 'discard' WHERE event_type = '1'")
	l.want(t, "a", " 2*")
	if err := b.end(t); err != nil {
		t.Fatal(err)
	}
}
