package router

import (
	"testing"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/geometry"
)

func rows(t testing.TB) map[string]func(*event.Message) error {
	t.Helper()
	headers := order()
	headers.Headers = []byte(`{"tenant": "blue", "origin": "shop"}`)
	keyed := move()
	keyed.RoutingKey = []byte("881f1d4891fffff")
	routeTo := func(table *event.Table, subject string, ev *event.Event, g *geometry.Feature) func(*event.Message) error {
		r := newRoute(t, table, subject)
		return func(m *event.Message) error { return r.Fill(m, ev, g) }
	}
	const events, features = "outbox.{aggregate_type}.{aggregate_id}", "geo.{collection}.{event_type}.{h3}"
	return map[string]func(*event.Message) error{
		"event":         routeTo(outbox, events, order(), nil),
		"event-headers": routeTo(outbox, events, headers, nil),
		"feature-keyed": routeTo(featureOutbox, features, keyed, berlin(t)),
		"feature":       routeTo(featureOutbox, features, move(), berlin(t)),
	}
}

func TestFillAllocatesOneStringAMessage(t *testing.T) {
	for name, fill := range rows(t) {
		want := 1.0
		if name == "feature" {
			want = 3 // the place and the cell pass through C
		}
		var m event.Message
		allocs := testing.AllocsPerRun(200, func() {
			if err := fill(&m); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > want {
			t.Errorf("%s: %v allocations a message, want at most %v", name, allocs, want)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for name, fill := range rows(b) {
		b.Run(name, func(b *testing.B) {
			var m event.Message
			b.ReportAllocs()
			for b.Loop() {
				if err := fill(&m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
