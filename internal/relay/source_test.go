package relay

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/slot"
)

const (
	oidText        = 25
	oidTimestamptz = 1184
	oidJSONB       = 3802

	someTime = "2026-11-30 22:53:39+00"
)

var discard = slog.New(slog.DiscardHandler)

// outboxRelation is an outbox as the walsender describes it.
func outboxRelation(oid uint32, name string) *decoder.Relation {
	rel := &decoder.Relation{OID: oid, Namespace: "public", Name: name}
	for _, column := range []string{"id", "aggregate_type", "aggregate_id", "event_type"} {
		rel.Columns = append(rel.Columns, decoder.Column{Name: column, TypeOID: oidText})
	}
	rel.Columns = append(rel.Columns, decoder.Column{Name: "payload", TypeOID: oidJSONB}, decoder.Column{Name: "created_at", TypeOID: oidTimestamptz})
	return rel
}

func tuple(values ...string) decoder.Tuple {
	var t decoder.Tuple
	for _, v := range values {
		t = append(t, decoder.Value{Kind: decoder.ValueText, Data: []byte(v)})
	}
	return t
}

// feed is a source with one outbox, public.outbox.
type feed struct {
	*source
	t   *testing.T
	lsn decoder.LSN
}

func newFeed(t *testing.T) *feed {
	t.Helper()
	table := &event.Table{Name: "public.outbox", Kind: event.KindEvent}
	s := &source{
		outboxes: map[string]*outbox{table.Name: {table: table}}, timeline: func(decoder.LSN) uint32 { return 1 },
		out: newQueue(), budget: newBudget(1 << 20), pool: new(rowPool), metrics: NewMetrics("s"),
		log: discard, bound: map[uint32]*bound{}, foreign: map[string]bool{},
	}
	return &feed{source: s, t: t, lsn: 0x1000}
}

func (f *feed) handle(m *decoder.Message) {
	f.t.Helper()
	if err := f.Handle(m, f.lsn); err != nil {
		f.t.Fatal(err)
	}
}

func (f *feed) begin() {
	f.lsn += 0x100
	f.handle(&decoder.Message{Kind: decoder.KindBegin, Begin: decoder.Begin{FinalLSN: f.lsn, CommitTime: time.Unix(1, 0), XID: 7}})
}

func (f *feed) insert(rel *decoder.Relation, id string) {
	f.handle(&decoder.Message{Kind: decoder.KindInsert, Relation: rel, New: tuple(id, "order", "o", "placed", "{}", someTime)})
}

func (f *feed) commit() {
	f.handle(&decoder.Message{Kind: decoder.KindCommit, Commit: decoder.Commit{EndLSN: f.lsn + 0x30}})
}

// items gives what was handed on, as "id@index", "poison@index" or "mark".
func (f *feed) items() []item {
	f.Flush()
	return f.out.take(nil)
}

func (f *feed) want(want ...string) {
	f.t.Helper()
	var got []string
	for _, it := range f.items() {
		switch {
		case it.row == nil:
			got = append(got, "mark")
		case it.row.poison != nil:
			got = append(got, "poison "+string(rune('0'+it.row.pub.Position.Index)))
		default:
			got = append(got, string(it.row.event.ID)+" "+string(rune('0'+it.row.pub.Position.Index)))
		}
	}
	if len(got) != len(want) {
		f.t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			f.t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func TestIndexCountsEveryInsertOfTheTransaction(t *testing.T) {
	f, outbox, other := newFeed(t), outboxRelation(1, "outbox"), outboxRelation(2, "other")
	f.begin()
	f.insert(outbox, "a")
	f.insert(other, "x")
	f.insert(outbox, "b")
	f.commit()
	f.want("a 0", "b 2", "mark")
	f.begin()
	f.insert(outbox, "c")
	f.commit()
	f.want("c 0", "mark")
}

func TestRowsUpToTheCheckpointAreLeftOutAndTheRestOfTheirTransactionIsNot(t *testing.T) {
	f, outbox := newFeed(t), outboxRelation(1, "outbox")
	f.done = event.Position{Timeline: 1, Commit: 0x1200, Index: 1}
	for range 2 {
		f.begin()
		f.insert(outbox, "a")
		f.insert(outbox, "b")
		f.insert(outbox, "c")
		f.commit()
	}
	f.want("mark", "c 2", "mark")
}

func TestRowLargerThanMaxRowIsPoisonOnlyWhereItWouldBePublished(t *testing.T) {
	f, outbox, other := newFeed(t), outboxRelation(1, "outbox"), outboxRelation(2, "other")
	large := func(rel *decoder.Relation) {
		if err := f.Oversize(&slot.TooLargeError{Relation: rel}); err != nil {
			t.Fatal(err)
		}
	}
	f.begin()
	large(other)
	f.insert(outbox, "a")
	large(outbox)
	large(nil) // of a table that was never described: it may be anybody's
	f.commit()
	f.want("a 1", "poison 2", "poison 3", "mark")
}

func TestTableThatLostAColumnIsDriftAtItsFirstRow(t *testing.T) {
	f, outbox := newFeed(t), outboxRelation(1, "outbox")
	f.begin()
	f.insert(outbox, "a")
	f.commit()
	f.want("a 0", "mark")
	changed := outboxRelation(1, "outbox")
	changed.Columns = changed.Columns[:3]
	f.begin()
	f.handle(&decoder.Message{Kind: decoder.KindRelation, Relation: changed})
	f.want()
	f.handle(&decoder.Message{Kind: decoder.KindInsert, Relation: changed, New: tuple("b", "order", "o")})
	items := f.items()
	var drift *event.SchemaError
	if len(items) != 1 || !errors.As(items[0].row.poison, &drift) {
		t.Fatalf("got %+v, want one row that is drift", items)
	}
}

// A table keeps its OID and its place in the publication when it is renamed: its rows go on to come, under a name that
// no outbox has.
func TestRenamedOutboxIsDriftAndNotSomebodyElsesTable(t *testing.T) {
	f, renamed := newFeed(t), outboxRelation(1, "outbox_old")
	f.oids = map[uint32]*outbox{1: f.outboxes["public.outbox"]}
	f.begin()
	f.insert(renamed, "a")
	f.commit()
	items := f.items()
	var drift *event.SchemaError
	if len(items) != 2 || items[0].row == nil || !errors.As(items[0].row.poison, &drift) || drift.Table != "public.outbox" {
		t.Fatalf("got %+v, want one row that is drift", items)
	}
}

func TestMarksWithoutRowsTakeNoMemory(t *testing.T) {
	f := newFeed(t)
	for range 10_000 {
		f.begin()
		f.commit()
		f.Idle(f.lsn + 0x40)
		f.Flush()
	}
	items := f.out.take(nil)
	if len(items) > 2 {
		t.Fatalf("%d marks wait for a stage that is busy", len(items))
	}
	var tr tracker
	for _, it := range items {
		tr.addMark(it.mark, it.end)
	}
	tr.advance(nil)
	if tr.confirmable != f.lsn+0x40 || tr.ended != f.lsn+0x30 {
		t.Fatalf("confirmable %s, ended %s", tr.confirmable, tr.ended)
	}
}

func TestSourceIsFullWhileItsGateIsShutOrItsBudgetIsSpent(t *testing.T) {
	f := newFeed(t)
	if !f.Full() {
		t.Fatal("takes rows before the session has opened the gate")
	}
	f.gate.Store(true)
	if f.Full() {
		t.Fatal("full with an open gate and an unused budget")
	}
	f.begin()
	f.handle(&decoder.Message{Kind: decoder.KindInsert, Relation: outboxRelation(1, "outbox"), New: tuple("a", "order", "o", "placed", string(make([]byte, 2<<20)), someTime)})
	if !f.Full() {
		t.Fatal("takes more rows beyond the budget")
	}
	f.items()
}
