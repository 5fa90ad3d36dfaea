package demo

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/exit"
)

func TestEveryFaultFailsTheDemo(t *testing.T) {
	good := Summary{Committed: 10, Published: 10, RolledBack: 3}
	if err := good.verdict(); err != nil {
		t.Errorf("no fault: %v", err)
	}
	tests := map[string]func(*Summary){
		"missing 1":             func(s *Summary) { s.Missing = 1 },
		"unexpected 2":          func(s *Summary) { s.Unexpected = 2 },
		"duplicates 3":          func(s *Summary) { s.Duplicates = 3 },
		"out of order 4":        func(s *Summary) { s.OutOfOrder = 4 },
		"misplaced 5":           func(s *Summary) { s.Misplaced = 5 },
		"nothing was committed": func(s *Summary) { s.Committed = 0 },
	}
	for text, spoil := range tests {
		s := good
		spoil(&s)
		err := s.verdict()
		if exit.Code(err) != exit.Found || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v with code %d", text, err, exit.Code(err))
		}
	}
}

func TestSummaryReadsAsTextAndAsJSON(t *testing.T) {
	s := Summary{Committed: 12, Published: 12, RolledBack: 3, P50: Milliseconds(312 * time.Microsecond), P99: Milliseconds(2 * time.Millisecond)}
	var text, object bytes.Buffer
	if err := s.print(&text); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"committed         12 outbox rows", "rolled back       3 rows", "missing           0\n", "p50 0.3 ms, p99 2.0 ms"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no %q in %s", line, &text)
		}
	}
	if err := s.printJSON(&object); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(object.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]float64{"committed": 12, "missing": 0, "out_of_order": 0, "commit_to_stream_p50_ms": 0.312} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}

func TestLatencyIsFromCommitToFirstArrival(t *testing.T) {
	l := newLedger()
	start := time.Now()
	for i, row := range strings.Split("abcdefghij", "") {
		l.commit([]string{row}, start)
		l.arrive(row, start.Add(time.Duration(i+1)*time.Millisecond))
		l.arrive(row, start.Add(time.Hour))
	}
	l.commit([]string{"lost"}, start)
	l.arrive("unknown", start)
	l.rollBack([]string{"x", "y"})
	got := l.latency(0.5, 0.99, 0)
	if got[0] != 5*time.Millisecond || got[1] != 10*time.Millisecond || got[2] != time.Millisecond {
		t.Errorf("latencies %v", got)
	}
	if committed, arrived, rolledBack := l.counts(); committed != 11 || arrived != 11 || rolledBack != 2 {
		t.Errorf("counts %d %d %d", committed, arrived, rolledBack)
	}
	if early := newLedger(); early.latency(0.5)[0] != 0 {
		t.Error("latency of nothing")
	}
}

func TestEventIsOneShortLine(t *testing.T) {
	at := time.Date(2026, 11, 30, 22, 53, 39, 123e6, time.UTC)
	header := nats.Header{event.HeaderEventType: {"OrderPlaced"}}
	tests := []struct{ name, subject, body, want string }{
		{"event", "outbox.order.7", `{"a": 1}`, "22:53:39.123  outbox.order.7                                OrderPlaced {\"a\": 1}\n"},
		{
			"feature", "geo.features.moved.x", `{"action":"moved","feature_id":"3","event_version":2,"geometry":{"type":"Point","coordinates":[13.4,52.5]},"geometry_status":"ok"}`,
			"22:53:39.123  geo.features.moved.x                          moved feature 3 v2 Point [13.4,52.5]\n",
		},
		{
			"retired", "geo", `{"action":"retired","feature_id":"3","event_version":3,"geometry":null,"geometry_status":"missing"}`,
			"22:53:39.123  geo                                           retired feature 3 v3 (geometry missing)\n",
		},
		{"control characters", "s", "a\nb\x1b[2J", "22:53:39.123  s                                             OrderPlaced a b [2J\n"},
	}
	for _, tt := range tests {
		if got := line(at, tt.subject, header, []byte(tt.body)); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
	long := line(at, "s", header, []byte(strings.Repeat("ü", 500)))
	if n := len([]rune(long)); n != len("15:04:05.000")+2+subjectWidth+2+bodyWidth+1 || !strings.HasSuffix(long, "ü…\n") {
		t.Errorf("%d characters: %s", n, long)
	}
}

func TestPlacesLieOnEarthNearTheirCity(t *testing.T) {
	w := writer{rand: testRand()}
	for range 1000 {
		p := somewhere(w.rand)
		if p.lat < -60 || p.lat > 70 || p.lon < -180 || p.lon > 180 {
			t.Fatalf("%+v", p)
		}
		if q := p.near(w.rand, 800); q == p || q.city != p.city {
			t.Fatalf("%+v moved to %+v", p, q)
		}
	}
}

func testRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
