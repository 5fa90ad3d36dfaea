package faults_test

import (
	"context"
	"regexp"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/scene"
)

// lossFaults are those in which JetStream loses what it acknowledged. Nothing but a person can mend that: the bridge has
// to say so, and what was lost, and to go on from there once it is told.
func lossFaults() []fault {
	loss := func(name, does string, lose func(*trial, jetstream.Stream)) fault {
		l := &loss{lose: lose}
		return fault{
			name: name + ": exit 6", does: does + "; the bridge ends with exit 6 and names the range within 5 s, and goes on after `tidegate accept`. What was lost counts as stored",
			inflict: l.inflict, compare: l.compare,
		}
	}
	return []fault{
		loss("stream deleted", "the stream is deleted", (*trial).deleteStream),
		loss("stream recreated empty", "the stream is deleted and made again", func(tr *trial, s jetstream.Stream) {
			tr.deleteStream(s)
			if _, err := tr.JS.CreateStream(tr.Context(), s.CachedInfo().Config); err != nil {
				tr.Fatal(err)
			}
		}),
		loss("stream purged", "all messages of the stream are purged", func(tr *trial, s jetstream.Stream) {
			if err := s.Purge(tr.Context()); err != nil {
				tr.Fatal(err)
			}
		}),
	}
}

func (tr *trial) deleteStream(s jetstream.Stream) {
	tr.Helper()
	tr.Gone(s.CachedInfo().State.LastSeq)
	if err := tr.JS.DeleteStream(tr.Context(), scene.Stream); err != nil {
		tr.Fatal(err)
	}
}

// loss is a way to lose messages, and those that were lost.
type loss struct {
	lose func(*trial, jetstream.Stream)
	lost []oracle.Message
}

// lossNotice is how soon the bridge has to have ended.
const lossNotice = 5 * time.Second

var lostRange = regexp.MustCompile(`at risk are the messages at sequences [1-9]\d* to [1-9]\d*`)

func (l *loss) inflict(tr *trial) {
	now := testkit.Value[string](tr, tr.URL, "SELECT pg_current_wal_insert_lsn()::text")
	testkit.Eventually(tr, 20*time.Second, func() bool {
		return testkit.Value[bool](tr, tr.URL, "SELECT confirmed_flush_lsn >= $1::pg_lsn FROM pg_replication_slots WHERE slot_name = 'tidegate'", now)
	}, "what is stored is in the checkpoint")
	tr.bridge.Signal(tr, syscall.SIGSTOP) // what is lost is then known exactly
	l.lost = append(l.lost, tr.stream()...)
	stream, err := tr.JS.Stream(tr.Context(), scene.Stream)
	if err != nil {
		tr.Fatal(err)
	}
	l.lose(tr, stream)
	began := time.Now()
	tr.bridge.Signal(tr, syscall.SIGCONT)
	code := tr.bridge.Wait(tr, 30*time.Second)
	took := time.Since(began)
	if code != exitNATS || took > lossNotice || !lostRange.MatchString(tr.bridge.Log()) {
		tr.Errorf("round %d: the bridge ended with %d after %s", tr.round, code, took)
	}
	tr.Logf("round %d: exit %d after %s: %s", tr.round, code, took.Round(time.Millisecond), lostRange.FindString(tr.bridge.Log()))
	tr.away()
	accepted := tr.Program.Start(tr, testkit.Call{Args: []string{"accept", "--yes"}, Config: tr.Config})
	if code := accepted.Wait(tr, 30*time.Second); code != 0 {
		tr.Fatalf("accept ended with %d: %s", code, accepted.Log())
	}
	tr.bridge = tr.Launch(tr)
}

const exitNATS = 6

// compare takes the lost messages for stored, but for those that were stored again.
func (l *loss) compare(tr *trial) *oracle.Report {
	ledger := tr.Ledger(tr)
	present := map[string]bool{}
	now := tr.stream()
	for _, m := range now {
		present[m.ID] = true
	}
	for i, m := range l.lost {
		if !present[m.ID] {
			present[m.ID] = true // a later loss may have taken it once more
			m.Sequence = uint64(i + 1)
			ledger.Store(m)
		}
	}
	for _, m := range now {
		ledger.Store(m)
	}
	report := ledger.Report()
	return &report
}

// stream reads the whole stream.
func (tr *trial) stream() []oracle.Message {
	tr.Helper()
	ctx, cancel := context.WithTimeout(tr.Context(), time.Minute)
	defer cancel()
	messages, err := oracle.Messages(ctx, tr.JS, scene.Stream)
	if err != nil {
		tr.Fatal(err)
	}
	return messages
}
