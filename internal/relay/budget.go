package relay

import (
	"context"
	"sync/atomic"
	"time"
)

// budget bounds the memory that rows hold between the socket and their PubAck. It is full at its limit, not at what
// the next row would need: so the oldest row is always admitted, however large, and the most that is ever held is
// the limit and one row.
type budget struct {
	limit int64
	freed func() // called when used falls below the limit again

	used atomic.Int64
	// ahead counts the rows that were handed to the loop and are not finished; behind holds a value after some were.
	ahead  atomic.Int64
	behind chan struct{}
}

func newBudget(limit int64) *budget {
	return &budget{limit: limit, freed: func() {}, behind: make(chan struct{}, 1)}
}

func (b *budget) take(n int64) { b.used.Add(n) }

func (b *budget) full() bool { return b.used.Load() >= b.limit }

// goAhead counts the rows among items as handed to the loop.
func (b *budget) goAhead(items []item) {
	var n int64
	for i := range items {
		if items[i].row != nil {
			n++
		}
	}
	b.ahead.Add(n)
}

// waitAside counts a row that was handed to the loop as one that nothing ahead of it will finish: it waits for others that
// are behind. goOn counts it in again.
func (b *budget) waitAside() {
	b.ahead.Add(-1)
	b.signal()
}

func (b *budget) goOn() { b.ahead.Add(1) }

func (b *budget) signal() {
	select {
	case b.behind <- struct{}{}:
	default:
	}
}

// finish gives back what one row held.
func (b *budget) finish(size int64) {
	after := b.used.Add(-size)
	b.ahead.Add(-1)
	if after < b.limit && after+size >= b.limit {
		b.freed()
	}
	b.signal()
}

// wait blocks while the budget is full.
func (b *budget) wait(ctx context.Context) error {
	if !b.full() {
		return ctx.Err()
	}
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for b.full() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
	return nil
}
