// Package oracle compares what was committed with what was stored: every row of an outbox with every message of its
// stream, nothing deduplicated. It shares no code path with the bridge beyond how an id and an aggregate are written.
package oracle

import (
	"fmt"

	"github.com/tidegate-cdc/tidegate/event"
)

// Message is what the comparison needs of a stored message.
type Message struct {
	Sequence uint64 // in its stream, from 1
	Subject  string
	ID       string // Nats-Msg-Id; empty: it has none

	// The aggregate as the headers name it, decoded.
	AggregateType, AggregateID string
	// Late is Tidegate-Late: why the message is out of its place, empty when it claims to be in it.
	Late string
	// Marked says that the message has a header that only the bridge writes: Tidegate-….
	Marked bool
}

// of reports whether a message is, or pretends to be, of a source: what says nothing else and has the bridge's marks is.
func (m *Message) of(source string) bool {
	named, _, _, ok := event.SplitMsgID(m.ID)
	if ok {
		return named == source
	}
	return m.Marked
}

// Ledger holds the committed rows and what has been seen of them. First every row is written into it, then every
// message in the stream's order. A million rows of 100,000 aggregates need about 150 MB. The zero value is empty.
type Ledger struct {
	// Source, when not empty, says that others publish to the stream too: a message that is not of this source is
	// counted as Foreign and not compared. Empty: nothing else may be in the stream.
	Source string
	// Hold says that park.order is hold: a row that was parked, and what waits behind it, are late but in their order.
	Hold bool

	entries    []entry
	byID       map[string]uint32 // index of entries
	aggregates map[string]uint32 // index of newest
	newest     []uint32          // per aggregate: one more than the highest entry that is stored
	report     Report
}

// entry is one committed row. Entries of one aggregate stand in its commit order.
type entry struct {
	id        string
	sequence  uint64 // of the first message that has it, 0 while there is none
	aggregate uint32
}

// Commit writes down a committed row: its message id, and the key of its aggregate that event.AggregateKey makes. Rows
// of one aggregate are given in the order in which they were committed. Two rows of one id are an error: consumers
// could not tell them apart.
func (l *Ledger) Commit(id, aggregate string) error {
	if l.byID == nil {
		l.byID, l.aggregates = map[string]uint32{}, map[string]uint32{}
	}
	if _, twice := l.byID[id]; twice {
		return fmt.Errorf("commit %s: two rows have this id", id)
	}
	number, known := l.aggregates[aggregate]
	if !known {
		number = uint32(len(l.newest))
		l.aggregates[aggregate] = number
		l.newest = append(l.newest, 0)
	}
	l.byID[id] = uint32(len(l.entries))
	l.entries = append(l.entries, entry{id: id, aggregate: number})
	l.report.Committed++
	return nil
}

// Store compares the stream's next message.
func (l *Ledger) Store(m Message) {
	l.report.Stored++
	if l.Source != "" && !m.of(l.Source) {
		l.report.Foreign++
		return
	}
	if m.Late != "" {
		l.report.Late++
	}
	index, committed := l.byID[m.ID]
	if !committed {
		l.report.Extra++
		l.report.example("extra", "%q at %d on %q is of no committed row", m.ID, m.Sequence, m.Subject)
		return
	}
	row := &l.entries[index]
	if row.sequence != 0 {
		l.report.Duplicate++
		l.report.example("duplicate", "%s at %d, first at %d", m.ID, m.Sequence, row.sequence)
		return
	}
	row.sequence = m.Sequence
	l.checkAggregate(row, m)
	if m.Late == "" || m.Late == lateInitial || m.Late == lateParked && l.Hold {
		l.checkOrder(index, m)
	}
}

const (
	// lateInitial marks rows that are older than the slot: they are late, but in their order and before all others.
	lateInitial = "initial"
	// lateParked marks rows that were set aside.
	lateParked = "parked"
)

// checkOrder compares a row's first message with the newest one of its aggregate: in place, it is newer.
func (l *Ledger) checkOrder(index uint32, m Message) {
	newest := &l.newest[l.entries[index].aggregate]
	if index+1 > *newest {
		*newest = index + 1
		return
	}
	after := l.entries[*newest-1]
	l.report.OutOfOrder++
	l.report.example("out of order", "%s at %d, after the later %s at %d", m.ID, m.Sequence, after.id, after.sequence)
}

func (l *Ledger) checkAggregate(row *entry, m Message) {
	_, table, _, _ := event.SplitMsgID(m.ID)
	key := event.AggregateKey(nil, table, []byte(m.AggregateType), []byte(m.AggregateID))
	if number, known := l.aggregates[string(key)]; !known || number != row.aggregate {
		l.report.Misplaced++
		l.report.example("misplaced", "%s at %d names the aggregate %q %q", m.ID, m.Sequence, m.AggregateType, m.AggregateID)
	}
}

// Report gives the comparison of all that was written down and stored so far.
func (l *Ledger) Report() Report {
	report := l.report
	report.Examples = append([]string(nil), report.Examples...)
	for _, row := range l.entries {
		if row.sequence == 0 {
			report.Missing++
			report.example("missing", "%s", row.id)
		}
	}
	return report
}
