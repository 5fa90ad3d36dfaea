package publish

// laneHeap gives the lane whose head is the oldest row first. The order is what keeps the rows that were sent close
// together: lanes that took turns would send what is new in one while another is far behind, and the checkpoint, which
// covers no row before every older one is stored, would leave no room to send anything.
type laneHeap struct{ lanes []readyLane }

// readyLane has the number of the lane's head beside it: the comparisons touch no other memory.
type readyLane struct {
	ord uint64
	*lane
}

// first is the lane to send from, nil when none is there.
func (q *laneHeap) first() *lane {
	if len(q.lanes) == 0 {
		return nil
	}
	return q.lanes[0].lane
}

func (q *laneHeap) push(la *lane) {
	la.ready, la.index = true, len(q.lanes)
	q.lanes = append(q.lanes, readyLane{la.head.ord, la})
	q.up(la.index)
}

func (q *laneHeap) remove(la *lane) {
	i, last := la.index, len(q.lanes)-1
	if i != last {
		q.swap(i, last)
	}
	q.lanes[last] = readyLane{}
	q.lanes = q.lanes[:last]
	if i != last {
		q.down(i)
		q.up(i)
	}
	la.ready, la.index = false, 0
}

func (q *laneHeap) less(i, j int) bool { return q.lanes[i].ord < q.lanes[j].ord }

func (q *laneHeap) swap(i, j int) {
	q.lanes[i], q.lanes[j] = q.lanes[j], q.lanes[i]
	q.lanes[i].index, q.lanes[j].index = i, j
}

func (q *laneHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

func (q *laneHeap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.lanes); child++ {
			if q.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}
