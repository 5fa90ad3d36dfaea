package demo

import (
	"math"
	"slices"
	"sync"
	"time"
)

// ledger remembers when each outbox row was committed and when its message arrived. Rows go by "<table>/<outbox id>".
type ledger struct {
	mu         sync.Mutex
	committed  map[string]time.Time
	arrived    map[string]time.Time
	rolledBack int
}

func newLedger() *ledger {
	return &ledger{committed: make(map[string]time.Time), arrived: make(map[string]time.Time)}
}

// commit notes that the COMMIT of the rows' transaction returned at that time.
func (l *ledger) commit(rows []string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range rows {
		l.committed[row] = at
	}
}

// rollBack notes rows that were inserted and must never arrive.
func (l *ledger) rollBack(rows []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rolledBack += len(rows)
}

// arrive notes the first arrival of a row's message.
func (l *ledger) arrive(row string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.arrived[row]; !again {
		l.arrived[row] = at
	}
}

// counts gives how many rows were committed, have arrived and were rolled back.
func (l *ledger) counts() (committed, arrived, rolledBack int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.committed), len(l.arrived), l.rolledBack
}

// latency gives the time from commit to arrival below which the given shares of all rows were. A message may arrive
// before its COMMIT returns to the writer: that counts as no time.
func (l *ledger) latency(shares ...float64) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []time.Duration
	for row, at := range l.committed {
		if arrived, ok := l.arrived[row]; ok {
			all = append(all, max(0, arrived.Sub(at)))
		}
	}
	slices.Sort(all)
	values := make([]time.Duration, len(shares))
	for i, share := range shares {
		if len(all) > 0 {
			values[i] = all[max(0, int(math.Ceil(share*float64(len(all))))-1)]
		}
	}
	return values
}
