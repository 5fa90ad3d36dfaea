package publish

// lane is the queue of one aggregate. Its head is in flight, or ready, or to be tried again, or held after an error.
type lane struct {
	key        uint64
	head, tail *Row
	rows       int

	ready bool // it is in the heap, at index
	index int

	in         *laneList
	prev, next *lane
}

func (la *lane) push(r *Row) {
	la.rows++
	if la.head == nil {
		la.head, la.tail = r, r
		return
	}
	la.tail.behind, la.tail = r, r
}

func (la *lane) pop() *Row {
	r := la.head
	la.head, r.behind = r.behind, nil
	la.rows--
	if la.head == nil {
		la.tail = nil
	}
	return r
}

// laneList is a queue from which any lane can be taken.
type laneList struct{ first, last *lane }

func (q *laneList) pushBack(la *lane) {
	la.in, la.prev, la.next = q, q.last, nil
	if q.last == nil {
		q.first = la
	} else {
		q.last.next = la
	}
	q.last = la
}

func (q *laneList) remove(la *lane) {
	if la.prev == nil {
		q.first = la.next
	} else {
		la.prev.next = la.next
	}
	if la.next == nil {
		q.last = la.prev
	} else {
		la.next.prev = la.prev
	}
	la.in, la.prev, la.next = nil, nil, nil
}
