package publish

import "time"

// SetAside takes a row over, as Add does, that is not to be sent but kept elsewhere. No checkpoint covers it before Kept.
func (l *Lanes) SetAside(r *Row) {
	r.book = l.ledger.book(r.Stream)
	r.ord = l.ledger.add(r)
}

// Withdraw gives up sending the row that Ack or Tick gave an error about, and what waits behind it in its aggregate: all
// of them, in order, are set aside from here on.
func (l *Lanes) Withdraw(r *Row) []*Row {
	if l.broken != nil && l.broken.Row == r {
		l.broken = nil
	}
	la := r.lane
	rows := make([]*Row, 0, la.rows)
	for la.head != nil {
		first := la.pop()
		first.lane = nil
		rows = append(rows, first)
	}
	l.waiting -= len(rows)
	l.drop(la)
	return rows
}

// Kept ends the way of a row that was set aside: it is durable elsewhere.
func (l *Lanes) Kept(r *Row) {
	r.Done = true
	l.ledger.kept(r)
	r.book = nil
}

// Requeue sends a row after all that was set aside. Rows of one aggregate are requeued in their order, before any later
// one is added.
func (l *Lanes) Requeue(r *Row, now time.Time) { l.queue(r, now) }

// kept lets a row that no stream has be covered.
func (g *ledger) kept(r *Row) {
	g.at(r.ord).row = nil
	g.advance()
}
