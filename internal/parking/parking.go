// Package parking keeps, in the source database, the rows that cannot be published and those of their aggregates that
// wait behind them. The bridge puts rows in and takes them out with a Store; an operator looks at them and says what is
// to become of them with a Desk. A row is forgotten only once it is in its stream; one that is given up stays as a record.
package parking

import (
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
)

// State is what a row waits for.
type State string

// The states. All but StateDiscarded are unresolved: the row is owed to its stream, or to the operator's decision.
const (
	StateParked    State = "parked"    // it cannot be published, and waits for an operator
	StateHeld      State = "held"      // it waits behind a parked row of its aggregate
	StateRetry     State = "retry"     // the operator wants it tried again
	StateReleasing State = "releasing" // it is about to be published: Row.Stream after Row.From shows whether it was
	StateDiscard   State = "discard"   // the operator gives it up
	StateDiscarded State = "discarded" // it was given up: the record of that
)

// States lists all states, in the order in which a row may go through them.
func States() []State {
	return []State{StateParked, StateHeld, StateRetry, StateReleasing, StateDiscard, StateDiscarded}
}

// Row is a row of an outbox that is put aside.
type Row struct {
	ID int64 // the parked row's own number; 0 before Park
	// Position is the row's event.Position as text, without the source. A row that was read from its table has none:
	// TablePosition stands for it.
	Position string
	// Ord is 0 for rows with a position. Rows read from their table come before those: they have negative numbers that
	// ascend in the order of the table.
	Ord       int64
	Table     string // schema.table
	RowID     []byte // the outbox id; nil when it is null
	Aggregate []byte // event.AggregateKey; empty when it is unknown: such a row holds nothing up and waits for nothing

	AggregateType, AggregateID, EventType []byte // nil when null or unknown

	Columns     []event.Column // nil: parked by reference, the row was larger than publish.max_row
	Values      decoder.Tuple  // text or NULL, one a column
	CommittedAt time.Time      // zero for rows read from their table
	XID         uint32
	State       State
	Attempts    int    // how often it was tried in vain
	Reason      string // the last error; for a held row what it waits for
	Stream      string // where it was about to be published last
	From        uint64 // the stream's last sequence before that; the lowest when there were several attempts

	ParkedAt, ChangedAt time.Time
}

// ByReference reports whether only the row's name was kept, not what is in it.
func (r *Row) ByReference() bool { return r.Columns == nil }

// Aggregate says how many rows of an aggregate are unresolved.
type Aggregate struct {
	Key  []byte // event.AggregateKey
	Rows int
}

// Stats counts the unresolved rows.
type Stats struct {
	Rows   int // all of them
	Parked int
	Held   int
	Oldest time.Time // when the oldest was put in; zero when there is none
}
