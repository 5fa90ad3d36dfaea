package publish

import (
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/event"
)

// Tail is what a stream holds of one source beyond a mark.
type Tail struct {
	Stream *Stream
	// Last is the stream's last sequence when the reading began.
	Last uint64
	// Count is how many messages of the source were read.
	Count int
	// Highest is the highest position that was read: of rows beyond it, and with a position, the tail knows nothing.
	Highest event.Position
	// Newest is the same without what may be of a history that the database has left: see Stream.KnowExactly.
	Newest event.Position

	source  string
	seqs    map[string]uint64         // by message id
	highest map[string]event.Position // by aggregate key
	exact   map[string]event.Position // by message id, of those that only show themselves: see Stream.KnowExactly
	lastID  string                    // of the message at Last, if it is the source's
	scratch []byte
}

func newTail(s *Stream, source string, last uint64) *Tail {
	return &Tail{
		Stream: s, Last: last, source: source,
		seqs: make(map[string]uint64), highest: make(map[string]event.Position), exact: make(map[string]event.Position),
	}
}

// Mark is the end of the stream when it was read.
func (t *Tail) Mark() Mark { return Mark{Seq: t.Last, MsgID: t.lastID} }

// Stored reports whether the tail shows that r is stored: see Has. A Late row is known by its id alone.
func (t *Tail) Stored(r *Row) (seq uint64, ok bool) {
	if seq, ok = t.seqs[r.Msg.ID]; ok && t.isSame(t.exact[r.Msg.ID], r.Position) {
		return seq, true
	}
	return 0, !r.Late && t.passed(r.Aggregate, r.Position)
}

// Has reports whether the tail shows that a row is stored: its id was read, at seq; or a position of its aggregate was
// read that is not before the row's, and seq is 0, for the message itself may have given way to a newer one.
func (t *Tail) Has(msgID, aggregate []byte, p event.Position) (seq uint64, ok bool) {
	if seq, ok = t.seqs[string(msgID)]; ok && t.isSame(t.exact[string(msgID)], p) {
		return seq, true
	}
	return 0, t.passed(aggregate, p)
}

// isSame reports whether a row at p is the message whose id it has: one that must be known exactly stands at its position.
func (t *Tail) isSame(exact, p event.Position) bool { return exact.IsZero() || exact == p }

func (t *Tail) passed(aggregate []byte, p event.Position) bool {
	if p.IsZero() {
		return false
	}
	highest, ok := t.highest[string(aggregate)]
	return ok && p.Compare(highest) <= 0
}

// take notes a message if it is the source's.
func (t *Tail) take(h nats.Header, seq uint64) {
	id := h.Get(event.HeaderMsgID)
	source, table, _, ok := event.SplitMsgID(id)
	if !ok || source != t.source {
		return
	}
	t.Count++
	t.seqs[id] = seq
	if seq == t.Last {
		t.lastID = id
	}
	p, ok := positionOf(h)
	if !ok {
		return
	}
	if p.Compare(t.Highest) > 0 {
		t.Highest = p
	}
	if seq <= t.Stream.exact {
		t.exact[id] = p
		return
	}
	delete(t.exact, id)
	if p.Compare(t.Newest) > 0 {
		t.Newest = p
	}
	aggType, ok1 := event.DecodeHeaderValue(h.Get(event.HeaderAggregateType))
	aggID, ok2 := event.DecodeHeaderValue(h.Get(event.HeaderAggregateID))
	if !ok1 || !ok2 {
		return
	}
	t.scratch = event.AggregateKey(t.scratch[:0], table, []byte(aggType), []byte(aggID))
	if p.Compare(t.highest[string(t.scratch)]) > 0 {
		t.highest[string(t.scratch)] = p
	}
}

// positionOf reads "<source>/<position>"; the message id has told the source.
func positionOf(h nats.Header) (event.Position, bool) {
	v := h.Get(event.HeaderPosition)
	p, err := event.ParsePosition(v[strings.LastIndexByte(v, '/')+1:])
	return p, err == nil
}
