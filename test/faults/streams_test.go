package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/scene"
)

// streamFaults are streams that the bridge does not have for itself, or that do not keep what is published.
func streamFaults() []fault {
	newest, queue := &recorder{}, &recorder{}
	return []fault{
		{
			name: "foreign publishers in the stream", does: "others publish on the same subjects, with and without another source's headers, while the bridge is killed",
			short: 1, scene: withForeigners, inflict: killBridge, check: foreignersAreLeftAlone,
		},
		{
			name: "stream with one message a subject", does: "max_msgs_per_subject is 1 while the bridge is killed; what was stored is recorded as it comes",
			short: 1, scene: newest.record(jetstream.StreamConfig{MaxMsgsPerSubject: 1}), inflict: killBridge, compare: newest.compare,
		},
		{
			name: "stream with work-queue retention", does: "workers remove what they have acknowledged, which they do five outages after it came, while the bridge is killed; what was stored is recorded as it comes",
			short: 1, scene: queue.record(jetstream.StreamConfig{Retention: jetstream.WorkQueuePolicy}), inflict: killWhileTheyWork, compare: queue.compare,
		},
	}
}

// withForeigners publishes beside the bridge until the test ends.
func withForeigners(t *testing.T, _ *scene.Options) func(*trial) {
	t.Helper()
	return func(tr *trial) {
		tr.bridge = tr.Start(tr)
		ctx, cancel := context.WithCancel(context.Background())
		var done sync.WaitGroup
		random := rand.New(rand.NewPCG(tr.random.Uint64(), 0))
		done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := tr.PublishForeign(context.Background(), foreign(n, random)); err != nil {
					t.Errorf("publish beside the bridge: %v", err)
					return
				}
				pause(ctx, 5*time.Millisecond)
			}
		})
		t.Cleanup(func() { cancel(); done.Wait() })
	}
}

// foreign is a message on one of our subjects: bare, with an id, or of another source's bridge.
func foreign(n int, random *rand.Rand) *nats.Msg {
	aggregate := fmt.Sprintf("w%d-%d", random.IntN(3), random.IntN(40))
	m := nats.NewMsg("outbox.order." + aggregate)
	m.Data = []byte("theirs")
	switch n % 3 {
	case 1:
		m.Header.Set(event.HeaderMsgID, strconv.Itoa(n))
	case 2:
		m.Header.Set(event.HeaderMsgID, fmt.Sprintf("other/public.outbox/%d", n))
		m.Header.Set(event.HeaderPosition, fmt.Sprintf("other/00000001-%016X-00000000", uint64(1)<<60))
		m.Header.Set(event.HeaderAggregateType, "order")
		m.Header.Set(event.HeaderAggregateID, aggregate)
	}
	return m
}

// foreignersAreLeftAlone finds all of theirs where they were.
func foreignersAreLeftAlone(tr *trial) {
	low := tr.Foreign()
	report := tr.Compare(tr)
	if high := tr.Foreign(); low == 0 || report.Foreign < low || report.Foreign > high {
		tr.Errorf("%d to %d messages were published beside the bridge, the stream has %d", low, high, report.Foreign)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// recorder keeps what a stream stores, in its order, although the stream does not: the server publishes every message
// again once it is stored.
type recorder struct {
	mu       sync.Mutex
	messages []oracle.Message
}

const republished = "stored."

// record makes the stream of a fault, and a consumer where the stream keeps messages for one.
func (r *recorder) record(config jetstream.StreamConfig) func(*testing.T, *scene.Options) func(*trial) {
	config.Name, config.Subjects, config.Duplicates = scene.Stream, []string{"outbox.>"}, 2*time.Second
	config.RePublish = &jetstream.RePublish{Source: ">", Destination: republished + ">", HeadersOnly: true}
	return func(t *testing.T, _ *scene.Options) func(*trial) {
		t.Helper()
		return func(tr *trial) {
			sub, err := tr.NATS.Connect(tr).Subscribe(republished+">", r.take)
			if err != nil {
				tr.Fatal(err)
			}
			if err := sub.SetPendingLimits(-1, -1); err != nil {
				tr.Fatal(err)
			}
			stream := tr.NATS.Stream(tr, config)
			if config.Retention == jetstream.WorkQueuePolicy {
				work(tr, stream)
			}
		}
	}
}

func (r *recorder) take(m *nats.Msg) {
	sequence, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		sequence = 0 // compare finds the gap
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, oracle.Read(sequence, m.Header.Get("Nats-Subject"), m.Header))
}

// compare waits until everything stored is recorded, and finds that the record has no gap.
func (r *recorder) compare(tr *trial) *oracle.Report {
	stored, _ := tr.Stored()
	testkit.Eventually(tr, 30*time.Second, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return uint64(len(r.messages)) >= stored
	}, "all of %d messages are recorded", stored)
	ledger := tr.Ledger(tr)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, m := range r.messages {
		if m.Sequence != uint64(i+1) {
			tr.Fatalf("record number %d is of message %d", i+1, m.Sequence)
		}
		ledger.Store(m)
	}
	report := ledger.Report()
	return &report
}

// behind is how far the workers of a queue lag: what was stored since the last checkpoint must still be there when the
// bridge comes back, or nobody could know that it was stored.
func (f form) behind() time.Duration { return 5 * f.outage }

// work takes messages off the queue, each a while after it came.
func work(tr *trial, stream jetstream.Stream) {
	consumer, err := stream.CreateConsumer(tr.Context(), jetstream.ConsumerConfig{
		Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 10 * time.Minute, MaxAckPending: -1,
	})
	if err != nil {
		tr.Fatal(err)
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) { time.AfterFunc(tr.behind(), func() { _ = m.Ack() }) })
	if err != nil {
		tr.Fatal(err)
	}
	tr.Cleanup(consuming.Stop)
}

// killWhileTheyWork kills the bridge once the queue's workers remove messages.
func killWhileTheyWork(tr *trial) {
	testkit.Eventually(tr, 2*tr.behind()+20*time.Second, func() bool {
		stream, err := tr.JS.Stream(tr.Context(), scene.Stream)
		return err == nil && stream.CachedInfo().State.FirstSeq > 1
	}, "messages are removed")
	killBridge(tr)
}
