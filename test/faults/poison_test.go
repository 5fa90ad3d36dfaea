package faults_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/scene"
)

// poisonFaults are rows that cannot be published.
func poisonFaults() []fault {
	return []fault{
		{
			name: "poison rows of every kind", does: "rows that are too large for the stream or for max_row, have a header that is not allowed or is no text, or too long a subject: alone, at the head, in the middle and at the end of transactions, while the bridge is killed; mended, retried, and killed while they are released",
			short: 1, parks: true, scene: strict, inflict: poisonOfEveryKind,
		},
		{
			name: "storm of poison rows", does: "20,000 rows of 500 aggregates that cannot be published (1,000 in the short form) in transactions of 100, with rows behind them that could be; all others flow on, and all are published once they are mended and retried, in their order",
			short: 1, parks: true, scene: strict, inflict: poisonStorm,
		},
	}
}

// poisonConfig makes rows poison that its mended form can publish.
const poisonConfig = `
source: {name: app}
postgres: {url: "{{.PG}}"}
streams: [{name: OUTBOX, duplicate_window: 2s}]
outboxes: [{table: public.outbox, kind: event, stream: OUTBOX, subject: "outbox.{aggregate_type}.{aggregate_id}", columns: {headers: headers}}]
publish: {max_row: 64KiB}
park: {max_rows: 100000}
nats: {url: "{{.NATS}}"}
`

var mend = strings.NewReplacer(
	"outbox.{aggregate_type}.{aggregate_id}", "outbox.{aggregate_type}.{partition:64}",
	", columns: {headers: headers}", "",
	"max_row: 64KiB", "max_row: 16MiB",
)

const (
	strictSize = 4000 // the largest message of the stream, in bytes
	mendedSize = 1 << 20
)

func strict(_ *testing.T, o *scene.Options) func(*trial) {
	o.Config = poisonConfig
	return func(tr *trial) { tr.limit(strictSize) }
}

// limit makes the stream, or changes the size of its largest message.
func (tr *trial) limit(size int32) {
	tr.Helper()
	_, err := tr.JS.CreateOrUpdateStream(tr.Context(), jetstream.StreamConfig{
		Name: scene.Stream, Subjects: []string{"outbox.>"}, MaxMsgSize: size, Duplicates: 2 * time.Second, Discard: jetstream.DiscardNew,
	})
	if err != nil {
		tr.Fatal(err)
	}
}

// poisons are the rows, one of each kind: its headers, its payload, and what its aggregate's id has besides.
var poisons = []struct{ headers, payload, id string }{
	{`NULL`, `to_jsonb(repeat('x', 5000))`, `''`},   // above max_msg_size
	{`NULL`, `to_jsonb(repeat('x', 100000))`, `''`}, // above max_row: parked by reference
	{`'{"Nats-Rollup": "all"}'`, `'{}'`, `''`},      // would purge the stream
	{`'{"Tidegate-Late": "x"}'`, `'{}'`, `''`},      // would lie
	{`'{"a": {"b": 1}}'`, `'{}'`, `''`},             // no text
	{`'["a"]'`, `'{}'`, `''`},                       // no object
	{`NULL`, `'{}'`, `repeat('a', 3500)`},           // too long a subject
}

// poison is a statement that inserts a poison row of aggregate a; good is one that could be published.
func poison(kind int, a string) string {
	p := poisons[kind%len(poisons)]
	return fmt.Sprintf("INSERT INTO outbox (aggregate_type, aggregate_id, event_type, headers, payload) VALUES ('sick', '%s' || %s, 'poison', %s, %s);",
		a, p.id, p.headers, p.payload)
}

func good(kind int, a string) string {
	p := poisons[kind%len(poisons)]
	return fmt.Sprintf("INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ('sick', '%s' || %s, 'good');", a, p.id)
}

// commit runs statements as one transaction.
func (tr *trial) commit(statements ...string) {
	tr.Helper()
	testkit.Exec(tr, tr.URL, strings.Join(statements, "\n"))
}

func poisonOfEveryKind(tr *trial) {
	for kind := range poisons {
		a := fmt.Sprintf("a%d-%d", tr.round, kind)
		other := fmt.Sprintf("b%d-%d", tr.round, kind)
		tr.commit(good(0, other), good(kind, a))                                                      // published
		tr.commit(poison(kind, a), good(0, other))                                                    // at the head
		tr.commit(good(0, other), poison(kind+1, other), good(0, other))                              // in the middle
		tr.commit(good(kind, a), good(0, other), poison(kind, a))                                     // at the end, behind poison
		tr.commit("BEGIN; SAVEPOINT s;", poison(kind, a), "ROLLBACK TO s;", good(kind, a), "COMMIT;") // never there
	}
	tr.setAside(1)
	tr.AwaitStored(tr, 50)
	killBridge(tr)
	tr.AwaitStored(tr, 50)
	for kind := range poisons { // more, behind what was set aside before the kill
		a := fmt.Sprintf("a%d-%d", tr.round, kind)
		tr.commit(good(kind, a), poison(kind, a), good(kind, a))
	}
	tr.AwaitStored(tr, 50)
	tr.mended(50)
}

func poisonStorm(tr *trial) {
	rows := 1000
	if tr.long {
		rows = 20_000
	}
	conn := testkit.Connect(tr, tr.URL)
	stored, _ := tr.Stored()
	for n := 0; n < rows; n += 100 {
		var batch pgx.Batch
		for i := range 100 {
			a := fmt.Sprintf("storm%d", (n+i)%500)
			batch.Queue(poison(i%2*2, a)) // too large, or a header
			if i%10 == 0 {
				batch.Queue(good(0, a))
			}
		}
		if err := conn.SendBatch(tr.Context(), &batch).Close(); err != nil {
			tr.Fatal(err)
		}
	}
	tr.setAside(rows)
	if now, _ := tr.Stored(); now < stored+50 {
		tr.Errorf("round %d: only %d other messages were stored during the storm", tr.round, now-stored)
	}
	tr.mended(rows / 3)
}

// setAside waits until at least n rows more than those of earlier rounds are in the store.
func (tr *trial) setAside(n int) {
	tr.Helper()
	testkit.Eventually(tr, 2*time.Minute, func() bool { return tr.parked() >= n }, "%d rows are parked or held", n)
}

func (tr *trial) parked() int {
	tr.Helper()
	return testkit.Value[int](tr, tr.URL, "SELECT count(*)::int FROM tidegate.parked")
}

// mended kills the bridge, mends what made rows poison, asks for all of them, and kills it again when all but left are
// published. Then everything is as strict as before.
func (tr *trial) mended(left int) {
	tr.Helper()
	tr.bridge.Kill(tr)
	tr.limit(mendedSize)
	tr.away()
	strictly := tr.Config
	tr.Config = mend.Replace(strictly)
	tr.bridge = tr.Launch(tr)
	tr.retry()
	tr.released(left)
	killBridge(tr)
	tr.retry()
	tr.released(0)
	scene.Stop(tr, tr.bridge)
	tr.Config = strictly
	tr.limit(strictSize)
	tr.bridge = tr.Launch(tr)
}

// released waits until no more than some rows are left in the store.
func (tr *trial) released(left int) {
	tr.Helper()
	over := time.Now().Add(2 * time.Minute)
	testkit.Eventually(tr, 3*time.Minute, func() bool { return tr.parked() <= left || time.Now().After(over) }, "rows are released")
	if n := tr.parked(); n > left {
		what := testkit.Column[string](tr, tr.URL, "SELECT state || ': ' || count(*) || ', ' || COALESCE(max(left(last_error, 100)), '') FROM tidegate.parked GROUP BY state")
		tr.Fatalf("%d rows are left in the store:\n%s", n, strings.Join(what, "\n"))
	}
}

func (tr *trial) retry() {
	tr.Helper()
	testkit.Exec(tr, tr.URL, "UPDATE tidegate.parked SET state = 'retry', changed_at = now() WHERE state = 'parked'")
}
