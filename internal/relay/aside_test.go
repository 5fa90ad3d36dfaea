package relay

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/admin"
	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/parking"
	"github.com/tidegate-cdc/tidegate/publish"
)

// asideSession is a session that sets aside and is connected to nothing.
func asideSession(order string) *session {
	b := &Bridge{cfg: &config.Config{}, metrics: NewMetrics("s"), health: admin.NewHealth(0), log: discard}
	s := &session{bridge: b, log: discard, budget: newBudget(1 << 20)}
	s.lanes = publish.NewLanes(nil, "inbox", publish.LaneOptions{})
	s.keeper, s.skip, s.held, s.back, s.most = &keeper{}, order == "skip", map[string]*heldAggregate{}, map[int64]string{}, keepBatch
	return s
}

func poisonRow(n int) *row {
	r := newRow()
	r.outbox = &outbox{table: &event.Table{Name: "public.outbox"}}
	r.poison = fmt.Errorf("poison %d", n)
	r.event.AggregateType, r.event.AggregateID = []byte("order"), []byte("o")
	r.pub.Position = event.Position{Timeline: 1, Commit: 7, Index: uint32(n)}
	r.pub.Aggregate = event.AggregateKey(nil, "public.outbox", r.event.AggregateType, r.event.AggregateID)
	r.pub.Stream = &publish.Stream{Name: "OUTBOX"}
	return r
}

// Rows that come while a batch is being written stand behind it in the same queue: they must not be taken for it.
func TestOnlyWhatWasKeptIsFinished(t *testing.T) {
	s := asideSession("hold")
	now := time.Now()
	var rows []*row
	for n := range 6 {
		rows = append(rows, poisonRow(n))
	}
	for _, r := range rows[:3] {
		s.setAside(r, now)
	}
	batch := s.queue[:s.batchSize()]
	for _, r := range rows[3:] {
		s.setAside(r, now)
	}
	if err := s.haveKept(batch, []bool{true, true, true}, nil, 100, now); err != nil {
		t.Fatal(err)
	}
	for n, r := range rows {
		if r.pub.Done != (n < 3) {
			t.Errorf("row %d: done %v", n, r.pub.Done)
		}
	}
	if len(s.queue) != 3 || s.queue[0] != rows[3] {
		t.Fatalf("%d rows are still to be kept", len(s.queue))
	}
}

// The answer of a commit can be lost, and the rows be there: the same rows are then not counted twice, and what waits
// behind them does not go on.
func TestAggregateStaysHeldWhenRowsWereKeptWithoutAnAnswer(t *testing.T) {
	s := asideSession("hold")
	now := time.Now()
	r := poisonRow(1)
	s.setAside(r, now)
	key := string(r.pub.Aggregate)
	if err := s.notKept(net.ErrClosed, now); err != nil || !s.recount {
		t.Fatalf("recount %v, %v", s.recount, err)
	}
	s.count(nil, now) // the commit is not visible yet
	there := []parking.Aggregate{{Key: []byte(key), Rows: 1}}
	if err := s.haveKept(s.queue[:1], []bool{false}, there, 100, now); err != nil {
		t.Fatal(err)
	}
	if h := s.held[key]; h == nil || h.rows != 1 {
		t.Fatalf("held %+v", h)
	}
}
