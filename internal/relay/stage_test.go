package relay

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/router"
)

// line is a source and a stage one behind the other, for a stream that takes "outbox.>" of at most 4 KiB.
type line struct {
	*feed
	stage *stage
	out   *queue
}

func newLine(t *testing.T) *line {
	t.Helper()
	f := newFeed(t)
	o := f.outboxes["public.outbox"]
	var err error
	if o.route, err = router.New(router.Config{Source: "app", Table: o.table, Subject: "outbox.{aggregate_type}.{aggregate_id}"}); err != nil {
		t.Fatal(err)
	}
	o.stream = &publish.Stream{Name: "OUTBOX", Subjects: []string{"outbox.>"}, MaxMsgSize: 4096}
	out := newQueue()
	return &line{f, &stage{
		in: f.source.out, out: out, budget: f.budget, tails: map[*publish.Stream]*publish.Tail{},
		maxPayload: 1 << 20, source: "app", metrics: f.metrics,
	}, out}
}

// pass sends what the source has through the stage.
func (l *line) pass() ([]item, error) {
	l.t.Helper()
	items := l.items()
	if err := l.stage.prepare(l.t.Context(), items); err != nil {
		return nil, err
	}
	l.budget.goAhead(items)
	return items, nil
}

func (l *line) row(id, aggregate, payload string) {
	l.handle(&decoder.Message{Kind: decoder.KindInsert, Relation: outboxRelation(1, "outbox"), New: tuple(id, "order", aggregate, "placed", payload, someTime)})
}

func TestWhatIsTakenFromTheBudgetIsGivenBack(t *testing.T) {
	l := newLine(t)
	var tr tracker
	for round := range 50 {
		l.begin()
		for i := range 20 {
			l.row("r", "o", strings.Repeat("x", (i*round*7)%3000))
		}
		l.commit()
		items, err := l.pass()
		if err != nil {
			t.Fatal(err)
		}
		held := int64(0)
		for _, it := range items {
			if it.row == nil {
				tr.addMark(it.mark, it.end)
				continue
			}
			held += it.row.memory()
			it.row.pub.Done = true
			tr.addRow(&it.row.pub, it.row.event.CommittedAt)
		}
		if used := l.budget.used.Load(); used < held {
			t.Fatalf("%d bytes are counted, %d are held", used, held)
		}
		tr.advance(func(r *publish.Row) {
			l.budget.finish(r.Size)
			l.pool.put(rowOf(r))
		})
		if used, ahead := l.budget.used.Load(), l.budget.ahead.Load(); used != 0 || ahead != 0 {
			t.Fatalf("round %d: %d bytes and %d rows are left", round, used, ahead)
		}
	}
}

func TestRowAboveTheStreamsLimitIsPoisonAndKeepsItsPlace(t *testing.T) {
	l := newLine(t)
	l.begin()
	l.row("a", "o", "1")
	l.row("b", "o", `"`+strings.Repeat("x", 5000)+`"`)
	l.row("c", "o", "3")
	l.commit()
	items, err := l.pass()
	var limit *publish.LimitError
	if err != nil || len(items) != 4 || items[0].row.poison != nil || !errors.As(items[1].row.poison, &limit) || items[2].row.poison != nil {
		t.Fatalf("got %+v, %v", items, err)
	}
	end := &poisonError{items[1].row, items[1].row.poison}
	for _, part := range []string{`"b"`, "public.outbox", "row 2 of the transaction committed at 0/1100", "max_msg_size of stream OUTBOX"} {
		if !strings.Contains(end.Error(), part) {
			t.Errorf("%q does not name %s", end, part)
		}
	}
}

func TestSubjectThatTheStreamDoesNotTakeIsDriftAndNotTheRowsFault(t *testing.T) {
	l := newLine(t)
	l.outboxes["public.outbox"].stream.Subjects = []string{"elsewhere.>"}
	l.begin()
	l.row("a", "o", "1")
	var narrowed *publish.NotCoveredError
	if _, err := l.pass(); !errors.As(err, &narrowed) {
		t.Fatalf("got %v", err)
	}
}

func TestMessageDoesNotShareTheMemoryOfARowThatIsUsedAgain(t *testing.T) {
	l := newLine(t)
	l.begin()
	l.row("a", "o", `"first"`)
	items, err := l.pass()
	if err != nil {
		t.Fatal(err)
	}
	first := items[0].row
	body, id := string(first.pub.Msg.Body), first.pub.Msg.ID
	aggregate := string(first.pub.Aggregate)
	l.row("b", "other", `"second"`) // while the first is on its way
	if _, err := l.pass(); err != nil {
		t.Fatal(err)
	}
	if string(first.pub.Msg.Body) != body || first.pub.Msg.ID != id || string(first.pub.Aggregate) != aggregate {
		t.Fatalf("the first row has become %q, %q", first.pub.Msg.ID, first.pub.Msg.Body)
	}
	l.pool.put(first)
	l.row("c", "third", `"third"`)
	if _, err := l.pass(); err != nil {
		t.Fatal(err)
	}
	if id != "app/public.outbox/a" {
		t.Fatalf("the id of a finished row has become %q", id)
	}
}

func TestStageHandsOnEverythingInOrder(t *testing.T) {
	l := newLine(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.stage.run(ctx) }()
	const n = 5000
	go func() {
		for i := range n {
			l.begin()
			l.row("r", "o", "1")
			l.commit()
			if i%7 == 0 {
				l.Flush()
			}
		}
		l.Flush()
	}()
	var spare []item
	next := decoder.LSN(0x1100)
	for rows := 0; rows < n; {
		<-l.out.ready
		spare = l.out.take(spare)
		for _, it := range spare {
			if it.row == nil {
				continue
			}
			if it.row.pub.Position.Commit != next {
				t.Fatalf("row %d is of %s, want %s", rows, it.row.pub.Position.Commit, next)
			}
			next += 0x100
			rows++
		}
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestRowsThatAreKeptForUseAgainHoldLittle(t *testing.T) {
	var p rowPool
	for range maxFree {
		r := &row{}
		r.pub.Owner = r
		r.pub.Msg.Body = make([]byte, 0, 60<<10)
		r.pub.Size = r.memory()
		p.put(r)
	}
	held := int64(0)
	for _, r := range p.free {
		held += r.memory()
	}
	if held > 32<<20 {
		t.Fatalf("%d MiB are kept by %d rows that nobody counts", held>>20, len(p.free))
	}
}
