package publish

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
)

// Each step that sends may fail in two forms: it failed, or it failed but was applied. Here are publish and checkpoint
// on a real server; confirm is in slot/steps_test.go. What refuses for a while (a full stream, one that is gone) is in
// lanes_server_test.go, an entry of somebody else in checkpoint_test.go, and every mixture of them, late arrivals and
// kills included, in lanes_property_test.go.

// publishForm is how a publish goes wrong.
type publishForm struct {
	name string
	// applied: the message is stored all the same.
	applied bool
	send    func(s *faultySender, m *nats.Msg) error
}

var publishForms = []publishForm{
	{"refused by the client", false, func(*faultySender, *nats.Msg) error { return nats.ErrReconnectBufExceeded }},
	{"lost on the way", false, func(*faultySender, *nats.Msg) error { return nil }},
	{"connection lost before it was stored", false, func(s *faultySender, _ *nats.Msg) error { return s.disconnect() }},
	{"stored, and said to be refused by the client", true, func(s *faultySender, m *nats.Msg) error {
		s.store(m)
		return nats.ErrReconnectBufExceeded
	}},
	{"stored, PubAck lost", true, func(s *faultySender, m *nats.Msg) error { return s.store(m) }},
	{"stored, PubAck late", true, func(s *faultySender, m *nats.Msg) error {
		reply := m.Reply
		return s.storeAnd(m, func(ack *nats.Msg) {
			time.AfterFunc(2*stepAckTimeout, func() { _ = s.driver.conn.nc.Publish(reply, ack.Data) })
		})
	}},
	{"connection lost after it was stored", true, func(s *faultySender, m *nats.Msg) error {
		if err := s.store(m); err != nil {
			return err
		}
		return s.disconnect()
	}},
}

const stepAckTimeout = 150 * time.Millisecond

// faultySender sends by its driver's connection; every seventh row goes wrong the first time.
type faultySender struct {
	driver *driver
	form   publishForm
	seen   map[string]bool
	failed int
}

func (s *faultySender) PublishMsg(m *nats.Msg) error {
	id := m.Header.Get(event.HeaderMsgID)
	if s.seen[id] {
		return s.driver.conn.PublishMsg(m)
	}
	s.seen[id] = true
	if len(s.seen)%7 != 0 {
		return s.driver.conn.PublishMsg(m)
	}
	s.failed++
	return s.form.send(s, m)
}

// store has the message stored, and its PubAck dropped.
func (s *faultySender) store(m *nats.Msg) error { return s.storeAnd(m, func(*nats.Msg) {}) }

// storeAnd has the message stored and gives its PubAck to another than the lanes.
func (s *faultySender) storeAnd(m *nats.Msg, then func(ack *nats.Msg)) error {
	nc := s.driver.conn.nc
	ack, err := nc.RequestMsg(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}, 20*time.Second)
	if err != nil {
		return err
	}
	then(ack)
	return nil
}

// disconnect is told to the driver as a lost connection is.
func (s *faultySender) disconnect() error {
	s.driver.lost <- nats.ErrDisconnected
	return nil
}

// The duplicate window is too short to help.
func TestPublishThatFailsOrFailsButIsAppliedStoresEachRowOnceInOrder(t *testing.T) {
	s := startServer(t, nil)
	for _, form := range publishForms {
		t.Run(form.name, func(t *testing.T) {
			d := newDriver(t, s, LaneOptions{}, StreamConfig{Name: "S", DuplicateWindow: 100 * time.Millisecond}, "x.*")
			t.Cleanup(func() { _ = d.conn.JetStream().DeleteStream(context.Background(), "S") })
			sender := &faultySender{driver: d, form: form, seen: map[string]bool{}}
			d.lanes = NewLanes(sender, d.acks.Inbox, LaneOptions{AckTimeout: stepAckTimeout})
			d.lanes.Open(nil, newTail(d.stream, "src", 0))
			rows := d.addRows(1, 70, 5)
			d.run(func() bool { return len(d.done) == len(rows) && d.lanes.Idle() })
			if sender.failed != 10 {
				t.Fatalf("%d publishes went wrong: the test has shown something else", sender.failed)
			}
			wantOnceInOrder(t, d.conn, "S", rows)
			p := d.lanes.Progress()
			if last := rows[len(rows)-1].Position; p.W != last || p.Marks["S"].Seq != 70 {
				t.Errorf("the checkpoint would say %v and %+v, not %v and 70", p.W, p.Marks["S"], last)
			}
		})
	}
}

// checkpointForm is how the write of a checkpoint goes wrong.
type checkpointForm struct {
	name    string
	applied bool
	update  func(f *faultyUpdate, ctx context.Context, value []byte, revision uint64) (uint64, error)
	// told: Save finds out by itself that it was applied.
	told bool
}

var checkpointForms = []checkpointForm{
	{
		name: "not written", update: func(*faultyUpdate, context.Context, []byte, uint64) (uint64, error) { return 0, nats.ErrTimeout },
	},
	{
		name: "written, the answer lost", applied: true, told: true,
		update: func(f *faultyUpdate, ctx context.Context, value []byte, revision uint64) (uint64, error) {
			if _, err := f.KeyValue.Update(ctx, "app.prod", value, revision); err != nil {
				return 0, err
			}
			return 0, nats.ErrTimeout
		},
	},
	{
		name: "written, and the caller's time is up", applied: true,
		update: func(f *faultyUpdate, ctx context.Context, value []byte, revision uint64) (uint64, error) {
			if _, err := f.KeyValue.Update(ctx, "app.prod", value, revision); err != nil {
				return 0, err
			}
			f.giveUp()
			return 0, ctx.Err()
		},
	},
}

// faultyUpdate goes wrong once.
type faultyUpdate struct {
	jetstream.KeyValue
	form   checkpointForm
	giveUp context.CancelFunc
	done   bool
}

func (f *faultyUpdate) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if f.done {
		return f.KeyValue.Update(ctx, key, value, revision)
	}
	f.done = true
	return f.form.update(f, ctx, value, revision)
}

// A write of our own that nobody answered must not be taken for another's, and what Save says to be written is there.
func TestCheckpointThatFailsOrFailsButIsAppliedIsNeverTakenForAnothers(t *testing.T) {
	s := startServer(t, nil)
	for _, form := range checkpointForms {
		t.Run(form.name, func(t *testing.T) {
			c := connect(t, s)
			k, _ := openCheckpoints(t, c)
			old, failed, next := testCheckpoint(), testCheckpoint(), testCheckpoint()
			old.W.Index, failed.W.Index, next.W.Index = 1, 2, 3
			if err := k.Save(testContext(t), old); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(testContext(t))
			defer cancel()
			k.kv = &faultyUpdate{KeyValue: k.kv, form: form, giveUp: cancel}
			err := k.Save(ctx, failed)
			if class, _ := Classify(err); (err == nil) != form.told || !form.applied && class != Transient {
				t.Fatalf("Save: %v", err)
			}
			want := old.W
			if form.applied {
				want = failed.W
			}
			if _, got := openCheckpoints(t, c); got.W != want {
				t.Fatalf("the entry is at %v, want %v", got.W, want)
			}
			if err := k.Save(testContext(t), next); err != nil {
				t.Fatalf("the next write: %v", err)
			}
			if _, got := openCheckpoints(t, c); got.W != next.W {
				t.Fatalf("the entry is at %v, want %v", got.W, next.W)
			}
		})
	}
}
