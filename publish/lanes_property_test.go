package publish

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever fails, and wherever the bridge is killed: every row is stored once, every aggregate in its order, and no
// checkpoint says more than is true.
func TestEveryRowIsStoredOnceInOrderWhateverFails(t *testing.T) {
	for range 10 { // of a hundred histories each, unless -rapid.checks says otherwise
		rapid.Check(t, anyHistory)
	}
}

func anyHistory(t *rapid.T) {
	m := newModel(t)
	t.Repeat(map[string]func(*rapid.T){
		"": func(t *rapid.T) { m.check() },
		"commit": func(t *rapid.T) {
			for range rapid.IntRange(1, 12).Draw(t, "rows") {
				m.commit()
			}
		},
		"hand over": func(t *rapid.T) {
			for range rapid.IntRange(1, 12).Draw(t, "rows") {
				m.handOver()
			}
		},
		"arrive": func(t *rapid.T) {
			for range rapid.IntRange(1, 8).Draw(t, "messages") {
				m.arrive()
			}
		},
		"acknowledge": func(t *rapid.T) {
			for range rapid.IntRange(1, 8).Draw(t, "answers") {
				m.acknowledge()
			}
		},
		"keep":                func(t *rapid.T) { m.keep() },
		"stream full or free": func(t *rapid.T) { m.full = !m.full },
		"a moment":            func(t *rapid.T) { m.elapse(200 * time.Millisecond) },
		"a while":             func(t *rapid.T) { m.elapse(8 * time.Second) },
		"a long while":        func(t *rapid.T) { m.elapse(2 * modelWindow) },
		"disconnect":          func(t *rapid.T) { m.disconnect() },
		"arrive late":         func(t *rapid.T) { m.arriveLate() },
		"outage":              func(t *rapid.T) { m.outage() },
		"reconcile":           func(t *rapid.T) { m.reconcile() },
		"checkpoint":          func(t *rapid.T) { m.checkpoint() },
		"checkpoint lost":     func(t *rapid.T) { m.lanes.Progress() },
		"killed":              func(t *rapid.T) { m.kill() },
	})
	m.finish()
}
