package publish

import (
	"time"

	"github.com/tidegate-cdc/tidegate/event"
)

// Row is one message on its way into a stream. Whoever fills it hands it over with Lanes.Add and has it back, Done,
// from the call that completes it; between the two it must not be touched. Reset makes it ready for the next message.
type Row struct {
	Msg    event.Message
	Stream *Stream
	// Aggregate is the exact key (event.AggregateKey): rows of one key are stored in the order in which they were added.
	Aggregate []byte
	// Position is zero for a row that was read from its table.
	Position event.Position
	// Late says that later rows of its aggregate may be stored already: it has its position from another time.
	Late bool
	// Size is what the row counts against MaxInFlightBytes.
	Size int64

	Done bool
	// Owner is the caller's own: Lanes does not look at it.
	Owner any

	// Seq is where the stream stored the row.
	Seq uint64
	// Duplicate says that the stream had the row already and named the sequence.
	Duplicate bool
	// Sent is when the row was first sent; zero when it was not.
	Sent time.Time

	ord        uint64 // its number in the ledger
	book       *book
	lane       *lane
	behind     *Row // the next row of the lane
	prev, next *Row // among those in flight, in the order of sending
	slot       int32
	inFlight   bool
	unsure     bool // an attempt may have been stored although nobody said so
	epoch      uint32
	sentAt     time.Time
}

// Reset empties r and keeps its memory.
func (r *Row) Reset() {
	msg, aggregate := r.Msg, r.Aggregate[:0]
	msg.Reset()
	*r = Row{Msg: msg, Aggregate: aggregate, Owner: r.Owner}
}
