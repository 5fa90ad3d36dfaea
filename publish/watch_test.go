package publish

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// watched is a stream with ten rows of ours, five aggregates of two, and a watch that has seen them.
func watched(t *testing.T, cfg jetstream.StreamConfig) (*Conn, *Watch, Mark) {
	t.Helper()
	c := connect(t, startServer(t, nil))
	cfg.Name, cfg.Subjects = "S", []string{"x.>"}
	if _, err := c.JetStream().CreateStream(testContext(t), cfg); err != nil {
		t.Fatal(err)
	}
	s, err := c.OpenStream(testContext(t), "S", []string{"x.*"})
	if err != nil {
		t.Fatal(err)
	}
	var m Mark
	for n := 1; n <= 10; n++ {
		r := rowFor(s, fmt.Sprint("a", n%5), n)
		r.Msg.Subject = fmt.Sprint("x.a", n%5)
		m = Mark{Seq: put(t, c, r), MsgID: r.Msg.ID}
	}
	w := s.Watch(Witness{})
	if err := w.Look(testContext(t), m); err != nil {
		t.Fatal(err)
	}
	return c, w, m
}

func TestLossIsNoticedWithItsRange(t *testing.T) {
	refill := func(ctx context.Context, c *Conn, n int) {
		for i := range n {
			_, _ = c.JetStream().Publish(ctx, fmt.Sprint("x.a", i), []byte("theirs"))
		}
	}
	again := func(ctx context.Context, c *Conn) {
		_ = c.JetStream().DeleteStream(ctx, "S")
		_, _ = c.JetStream().CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"x.>"}, MaxMsgsPerSubject: 1})
	}
	for _, tc := range []struct {
		name     string
		cfg      jetstream.StreamConfig
		do       func(ctx context.Context, c *Conn, s jetstream.Stream) error
		from, to uint64
	}{
		{"deleted", jetstream.StreamConfig{}, func(ctx context.Context, c *Conn, _ jetstream.Stream) error {
			return c.JetStream().DeleteStream(ctx, "S")
		}, 1, 10},
		{"made again", jetstream.StreamConfig{}, func(ctx context.Context, c *Conn, _ jetstream.Stream) error { again(ctx, c); return nil }, 1, 10},
		{"made again and refilled to the mark", jetstream.StreamConfig{}, func(ctx context.Context, c *Conn, _ jetstream.Stream) error {
			again(ctx, c)
			refill(ctx, c, 10)
			return nil
		}, 1, 10},
		{"made again, refilled past the mark, the mark itself replaced", jetstream.StreamConfig{}, func(ctx context.Context, c *Conn, _ jetstream.Stream) error {
			again(ctx, c)
			refill(ctx, c, 10)
			refill(ctx, c, 10)
			return nil
		}, 1, 10},
		// A server before 2.10 does not tell its time: an age below clockSlack would be believed to have taken them.
		{"purged", jetstream.StreamConfig{MaxAge: 24 * time.Hour}, func(ctx context.Context, _ *Conn, s jetstream.Stream) error { return s.Purge(ctx) }, 1, 10},
		{"purged, and others go on", jetstream.StreamConfig{}, func(ctx context.Context, c *Conn, s jetstream.Stream) error {
			err := s.Purge(ctx)
			refill(ctx, c, 3)
			return err
		}, 1, 10},
		{"purged with limits that leave one", jetstream.StreamConfig{MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld, MaxMsgs: 100}, func(ctx context.Context, _ *Conn, s jetstream.Stream) error { return s.Purge(ctx) }, 6, 10},
	} {
		for _, look := range []string{"look", "glance", "look of the next process"} {
			t.Run(tc.name+"/"+look, func(t *testing.T) {
				c, w, m := watched(t, tc.cfg)
				ctx := testContext(t)
				s, err := c.JetStream().Stream(ctx, "S")
				if err != nil {
					t.Fatal(err)
				}
				if err := tc.do(ctx, c, s); err != nil {
					t.Fatal(err)
				}
				switch look {
				case "look":
					err = w.Look(ctx, m)
				case "glance":
					err = w.Glance(ctx, m)
				default:
					err = w.stream.Watch(w.Witness()).Look(ctx, m)
				}
				var lost *LostError
				if !errors.As(err, &lost) || lost.From != tc.from || lost.To != tc.to || lost.Hint() == "" || lost.After.IsZero() {
					t.Fatalf("got %v, want %d to %d", err, tc.from, tc.to)
				}
				t.Log(err)
			})
		}
	}
}

// What a stream removes by its own configuration, or lets its consumers remove, is no loss; nor is a single message that
// somebody deletes.
func TestWhatAStreamRemovesByItselfIsNoLoss(t *testing.T) {
	edit := func(change func(*jetstream.StreamConfig)) func(*testing.T, *Conn, jetstream.Stream) {
		return func(t *testing.T, c *Conn, s jetstream.Stream) {
			cfg := s.CachedInfo().Config
			change(&cfg)
			if _, err := c.JetStream().UpdateStream(testContext(t), cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
	empty := func(t *testing.T, s jetstream.Stream) {
		for deadline := time.Now().Add(10 * time.Second); ; {
			info, err := s.Info(testContext(t))
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("the stream does not get empty: %v", err)
			}
			if info.State.Msgs == 0 {
				return
			}
		}
	}
	for _, tc := range []struct {
		name string
		cfg  jetstream.StreamConfig
		do   func(*testing.T, *Conn, jetstream.Stream)
	}{
		{"nothing", jetstream.StreamConfig{}, func(*testing.T, *Conn, jetstream.Stream) {}},
		{"age", jetstream.StreamConfig{MaxAge: 300 * time.Millisecond, Duplicates: 100 * time.Millisecond}, func(t *testing.T, _ *Conn, s jetstream.Stream) { empty(t, s) }},
		{"an age that was set", jetstream.StreamConfig{}, func(t *testing.T, c *Conn, s jetstream.Stream) {
			edit(func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = 300*time.Millisecond, 100*time.Millisecond })(t, c, s)
			empty(t, s)
		}},
		{"number", jetstream.StreamConfig{MaxMsgs: 10}, func(t *testing.T, c *Conn, _ jetstream.Stream) {
			for i := range 30 {
				putForeign(t, c, fmt.Sprint("x.f", i))
			}
		}},
		{"a number that was lowered", jetstream.StreamConfig{MaxMsgs: 10}, edit(func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 })},
		{"a number that was lifted afterwards", jetstream.StreamConfig{MaxMsgs: 10}, func(t *testing.T, c *Conn, s jetstream.Stream) {
			for i := range 30 {
				putForeign(t, c, fmt.Sprint("x.f", i))
			}
			edit(func(c *jetstream.StreamConfig) { c.MaxMsgs = -1 })(t, c, s)
		}},
		{"bytes", jetstream.StreamConfig{MaxBytes: 4096}, func(t *testing.T, c *Conn, _ jetstream.Stream) {
			for i := range 100 {
				putForeign(t, c, fmt.Sprint("x.f", i))
			}
		}},
		{"newer ones of the same subject", jetstream.StreamConfig{MaxMsgsPerSubject: 1}, func(t *testing.T, c *Conn, _ jetstream.Stream) {
			for i := range 5 {
				putForeign(t, c, fmt.Sprint("x.a", i))
			}
		}},
		{"consumed", jetstream.StreamConfig{Retention: jetstream.WorkQueuePolicy}, func(t *testing.T, c *Conn, s jetstream.Stream) {
			cons, err := s.CreateConsumer(testContext(t), jetstream.ConsumerConfig{Durable: "d", AckPolicy: jetstream.AckExplicitPolicy})
			if err != nil {
				t.Fatal(err)
			}
			batch, err := cons.Fetch(10)
			if err != nil {
				t.Fatal(err)
			}
			for m := range batch.Messages() {
				if err := m.DoubleAck(testContext(t)); err != nil {
					t.Fatal(err)
				}
			}
			empty(t, s)
		}},
		{"no interest", jetstream.StreamConfig{Retention: jetstream.InterestPolicy}, func(*testing.T, *Conn, jetstream.Stream) {}},
		{"one deleted", jetstream.StreamConfig{}, func(t *testing.T, _ *Conn, s jetstream.Stream) {
			if err := s.DeleteMsg(testContext(t), 10); err != nil {
				t.Fatal(err)
			}
		}},
		{"the first deleted", jetstream.StreamConfig{}, func(t *testing.T, _ *Conn, s jetstream.Stream) {
			if err := s.DeleteMsg(testContext(t), 1); err != nil {
				t.Fatal(err)
			}
		}},
		{"wider", jetstream.StreamConfig{}, edit(func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "y.>") })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, w, m := watched(t, tc.cfg)
			ctx := testContext(t)
			s, err := c.JetStream().Stream(ctx, "S")
			if err != nil {
				t.Fatal(err)
			}
			witness := w.Witness()
			tc.do(t, c, s)
			if err := w.Glance(ctx, m); err != nil {
				t.Errorf("glance: %v", err)
			}
			for range 2 {
				if err := w.Look(ctx, m); err != nil {
					t.Errorf("look: %v", err)
				}
			}
			if err := w.stream.Watch(witness).Look(ctx, m); err != nil {
				t.Errorf("look of the next process: %v", err)
			}
			if err := w.stream.Watch(Witness{}).Look(ctx, m); err != nil {
				t.Errorf("look of a process that knows no witness: %v", err)
			}
		})
	}
}

func TestStreamThatWasRestoredWithEverythingIsTheSame(t *testing.T) {
	_, w, m := watched(t, jetstream.StreamConfig{})
	w.witness.Created = w.witness.Created.Add(-time.Hour)
	for range 2 {
		if err := w.Look(testContext(t), m); err != nil {
			t.Fatal(err)
		}
	}
}
