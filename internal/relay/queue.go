package relay

import "sync"

// queue hands items from one goroutine to another in order. It has no bound of its own: the budget is the bound.
// The reader takes all there is at once, so the busier it is, the larger its batches and the fewer the wake-ups.
type queue struct {
	mu    sync.Mutex
	items []item
	ready chan struct{} // holds one value while items may wait
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// put appends items. They are copied; the slice may be used again.
func (q *queue) put(items ...item) {
	if len(items) == 0 {
		return
	}
	q.mu.Lock()
	first := len(q.items) == 0
	if items[0].row == nil {
		q.items = appendMark(q.items, items[0].mark, items[0].end)
		items = items[1:]
	}
	q.items = append(q.items, items...)
	q.mu.Unlock()
	if first {
		select {
		case q.ready <- struct{}{}:
		default:
		}
	}
}

// take gives all waiting items and leaves spare, emptied, in their place.
func (q *queue) take(spare []item) []item {
	clear(spare)
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.items
	q.items = spare[:0]
	return out
}
