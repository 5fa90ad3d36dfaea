package publish

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
)

// wantOnceInOrder reads the whole stream and wants rows 1 to n of each aggregate once and in order.
func wantOnceInOrder(t *testing.T, c *Conn, stream string, rows []*Row) {
	t.Helper()
	at := map[string]int{}
	ids := streamIDs(t, c, stream)
	for i, id := range ids {
		if _, twice := at[id]; twice {
			t.Fatalf("%s is stored twice", id)
		}
		at[id] = i
	}
	last := map[string]int{}
	for _, r := range rows {
		i, ok := at[r.Msg.ID]
		if !ok {
			t.Fatalf("%s is missing", r.Msg.ID)
		}
		if before, ok := last[string(r.Aggregate)]; ok && i < before {
			t.Fatalf("%s is out of order", r.Msg.ID)
		}
		last[string(r.Aggregate)] = i
	}
	if len(ids) != len(rows) {
		t.Fatalf("%d messages for %d rows", len(ids), len(rows))
	}
}

// addRows keeps what it made: Lanes forgets about rows that are done.
func (d *driver) addRows(first, n, aggregates int) (rows []*Row) {
	for i := first; i < first+n; i++ {
		r := rowFor(d.stream, fmt.Sprintf("a%d", i%aggregates), i)
		rows = append(rows, r)
		d.lanes.Add(r, time.Now())
	}
	return rows
}

func TestRowsAreStoredOnceInOrder(t *testing.T) {
	d := newDriver(t, startServer(t, nil), LaneOptions{}, StreamConfig{Name: "S"}, "x.*")
	rows := d.addRows(1, 5000, 100)
	d.run(func() bool { return len(d.done) == len(rows) })
	wantOnceInOrder(t, d.conn, "S", rows)
	if s := d.lanes.Stats(); s.Sent != 5000 || s.Stored != 5000 || s.Duplicates+s.Late+s.Timeouts != 0 {
		t.Fatalf("stats %+v", s)
	}
}

// The duplicate window is far too short to help: only the reading of the tail keeps rows from being stored twice.
func TestRestartedServerLosesAndRepeatsNothing(t *testing.T) {
	s := startServer(t, nil)
	d := newDriver(t, s, LaneOptions{}, StreamConfig{Name: "S", DuplicateWindow: 100 * time.Millisecond}, "x.*")
	var rows []*Row
	for round := range 3 {
		rows = append(rows, d.addRows(1+round*4000, 4000, 500)...)
		d.run(func() bool { return len(d.done) > round*4000+700 })
		s.stop()
		d.run(func() bool { _, yes := d.lanes.Uncertain(); return yes })
		s.start()
		d.run(func() bool { return len(d.done) == len(rows) })
	}
	wantOnceInOrder(t, d.conn, "S", rows)
}

func TestFullStreamIsWaitedFor(t *testing.T) {
	s := startServer(t, nil)
	d := newDriver(t, s, LaneOptions{}, StreamConfig{Name: "S"}, "x.*")
	ctx := testContext(t)
	limited := jetstream.StreamConfig{Name: "S", Subjects: []string{"x.*"}, MaxMsgs: 1000, Discard: jetstream.DiscardNew}
	if _, err := d.conn.JetStream().UpdateStream(ctx, limited); err != nil {
		t.Fatal(err)
	}
	rows := d.addRows(1, 3000, 300)
	d.run(func() bool {
		reason, _, yes := d.lanes.Probing()
		return yes && reason == ReasonStreamFull && len(d.done) == 1000
	})
	tries := d.lanes.Stats().Retries[ReasonStreamFull]
	until := time.Now().Add(300 * time.Millisecond)
	d.run(func() bool { return time.Now().After(until) })
	if more := d.lanes.Stats().Retries[ReasonStreamFull] - tries; more > 310 {
		t.Fatalf("%d refusals in 300 ms", more)
	}
	limited.MaxMsgs = -1
	if _, err := d.conn.JetStream().UpdateStream(ctx, limited); err != nil {
		t.Fatal(err)
	}
	d.run(func() bool { return len(d.done) == len(rows) })
	wantOnceInOrder(t, d.conn, "S", rows)
}

func TestMissingStreamIsWaitedFor(t *testing.T) {
	d := newDriver(t, startServer(t, nil), LaneOptions{}, StreamConfig{Name: "S"}, "x.*")
	if err := d.conn.JetStream().DeleteStream(testContext(t), "S"); err != nil {
		t.Fatal(err)
	}
	d.addRows(1, 10, 10)
	d.run(func() bool { reason, _, yes := d.lanes.Probing(); return yes && reason == ReasonNoResponders })
	if len(d.done) > 0 {
		t.Fatalf("%d rows done without a stream", len(d.done))
	}
}

func TestSecondRowWithTheSameIDIsFound(t *testing.T) {
	d := newDriver(t, startServer(t, nil), LaneOptions{}, StreamConfig{Name: "S"}, "x.*")
	d.addRows(1, 1, 1)
	d.run(func() bool { return len(d.done) == 1 })
	same, other := rowFor(d.stream, "a", 1), rowFor(d.stream, "a", 2)
	ctx := testContext(t)
	if ok, err := d.conn.VerifyDuplicate(ctx, d.stream, d.done[0].Seq, same); err != nil || !ok {
		t.Fatalf("the same row: %v, %v", ok, err)
	}
	fromTable := rowFor(d.stream, "a", 1)
	fromTable.Msg.Headers = slices.DeleteFunc(fromTable.Msg.Headers, func(h event.Header) bool { return h.Name == event.HeaderPosition })
	if ok, err := d.conn.VerifyDuplicate(ctx, d.stream, d.done[0].Seq, fromTable); err != nil || !ok {
		t.Fatalf("the same row, read from its table: %v, %v", ok, err)
	}
	other.Msg.ID, other.Msg.Headers[0].Value = same.Msg.ID, same.Msg.ID // an id that stands twice in the outbox
	if ok, err := d.conn.VerifyDuplicate(ctx, d.stream, d.done[0].Seq, other); err != nil || ok {
		t.Fatalf("another row with that id: %v, %v", ok, err)
	}
	d.lanes.Add(other, time.Now())
	r, err := d.lanes.Ack(<-d.acks.C, time.Now())
	var dup *DuplicateError
	if !errors.As(err, &dup) || r != other || dup.Seq != d.done[0].Seq {
		t.Fatalf("row %v, error %v", r, err)
	}
}
