package relay

import (
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
)

func TestQueueKeepsOrderAndNeverForgetsToWake(t *testing.T) {
	q := newQueue()
	const n = 100_000
	go func() {
		for i := range n {
			r := &row{}
			r.pub.Position.Commit = decoder.LSN(i)
			q.put(item{row: r})
		}
	}()
	var items []item
	for want := 0; want < n; {
		<-q.ready
		items = q.take(items)
		for _, it := range items {
			if got := it.row.pub.Position.Commit; got != decoder.LSN(want) {
				t.Fatalf("got item %d, want %d", got, want)
			}
			want++
		}
	}
}

func TestBudgetIsFullAtItsLimitAndTellsWhenItIsNot(t *testing.T) {
	woken := 0
	b := newBudget(100)
	b.freed = func() { woken++ }
	b.goAhead([]item{{row: &row{}}, {mark: 1}, {row: &row{}}})
	b.take(90)
	if b.full() {
		t.Fatal("full below the limit")
	}
	b.take(500) // the row that crosses the limit is admitted, whatever its size
	if !b.full() {
		t.Fatal("not full above the limit")
	}
	b.finish(90)
	if woken != 0 || !b.full() {
		t.Fatalf("woken %d times while full", woken)
	}
	b.finish(500)
	if woken != 1 || b.full() || b.ahead.Load() != 0 {
		t.Fatalf("woken %d times, full %v, %d ahead", woken, b.full(), b.ahead.Load())
	}
}
