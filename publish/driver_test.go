package publish

import (
	"errors"
	"testing"
	"time"
)

// driver owns lanes on a real connection as the relay's loop does.
type driver struct {
	t       testing.TB
	conn    *Conn
	acks    *Acks
	lanes   *Lanes
	stream  *Stream
	lost    chan error
	back    chan struct{}
	refused chan error
	done    []*Row
}

func newDriver(t testing.TB, s *testServer, o LaneOptions, cfg StreamConfig, subjects ...string) *driver {
	t.Helper()
	d := &driver{t: t, lost: make(chan error, 16), back: make(chan struct{}, 16), refused: make(chan error, 16)}
	d.conn = connectWith(t, Config{Name: "test", URL: s.url()}, Hooks{
		Disconnected: func(err error) { d.lost <- err },
		Reconnected:  func() { d.back <- struct{}{} },
		Refused:      func(err error) { d.refused <- err },
	})
	d.stream = ensure(t, d.conn, cfg, subjects...)
	var err error
	if d.acks, err = d.conn.Acks(2 * 4096); err != nil {
		t.Fatal(err)
	}
	d.lanes = NewLanes(d.conn, d.acks.Inbox, o)
	tail, err := d.conn.ReadTail(testContext(t), d.stream, 0, "src")
	if err != nil {
		t.Fatal(err)
	}
	d.lanes.Open(nil, tail)
	return d
}

// run works until stop says so; it gives up after a while in which that did not come about.
func (d *driver) run(stop func() bool) {
	d.t.Helper()
	limit := time.After(60 * time.Second)
	for !stop() {
		timer := time.NewTimer(d.wait())
		select {
		case m := <-d.acks.C:
			r, err := d.lanes.Ack(m, time.Now())
			if err != nil {
				d.t.Fatalf("ack: %v", err)
			}
			if r != nil {
				d.done = append(d.done, r)
			}
		case <-d.lost:
			d.lanes.Disconnected(time.Now())
		case <-d.back:
		case err := <-d.refused:
			d.t.Fatalf("refused: %v", err)
		case <-timer.C:
		case <-limit:
			reason, yes := d.lanes.Uncertain()
			d.t.Fatalf("no end: %d done, %d waiting, uncertain %v %q, stats %+v", len(d.done), d.lanes.Waiting(), yes, reason, d.lanes.Stats())
		}
		timer.Stop()
		d.turn()
	}
}

func (d *driver) wait() time.Duration {
	const most = 50 * time.Millisecond
	if next := d.lanes.Next(); !next.IsZero() {
		return min(max(time.Until(next), 0), most)
	}
	return most
}

func (d *driver) turn() {
	d.t.Helper()
	if _, yes := d.lanes.Uncertain(); yes && d.conn.Connected() {
		d.reconcile()
	}
	if err := d.lanes.Tick(time.Now()); err != nil {
		d.t.Fatal(err)
	}
	if d.lanes.CheckpointDue() {
		d.lanes.Covered(d.lanes.Progress().Upto, time.Now())
	}
}

func (d *driver) reconcile() {
	d.t.Helper()
	ctx := testContext(d.t)
	var lost *LostError
	if err := d.conn.VerifyMark(ctx, d.stream, d.lanes.Highest(d.stream)); errors.As(err, &lost) {
		d.t.Fatal(err)
	} else if err != nil {
		return
	}
	after, _ := d.lanes.Unresolved(d.stream)
	tail, err := d.conn.ReadTail(ctx, d.stream, after.Seq, "src")
	if err != nil {
		return
	}
	d.done = append(d.done, d.lanes.Resolve([]*Tail{tail}, time.Now())...)
}
