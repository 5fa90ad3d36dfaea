package publish

import "github.com/tidegate-cdc/tidegate/event"

// Mark is a place in a stream: every row beyond the checkpoint that the stream holds lies after Seq. MsgID is the id
// of the message at Seq; where it is empty, only the sequence is known.
type Mark struct {
	Seq   uint64 `json:"seq"`
	MsgID string `json:"msg_id,omitempty"`
}

// Progress is what a checkpoint may say.
type Progress struct {
	// Upto is for Covered, once the checkpoint is written.
	Upto uint64
	// W is the position up to which every row that was added or skipped is stored; zero while there is none.
	W event.Position
	// Marks, by stream name, go with W.
	Marks map[string]Mark
}

// Progress gives the finished rows at the front and the marks after which everything beyond them lies.
func (l *Lanes) Progress() Progress {
	return Progress{Upto: l.ledger.finished, W: l.ledger.w, Marks: l.ledger.marks()}
}

// ledger numbers the rows in the order in which they are to be covered and keeps those that no written checkpoint
// covers: [base, finished) are done and can be covered, entry finished is the oldest row that is not done.
type ledger struct {
	ring                []entry // of a power of two
	base, finished, end uint64
	sentEnd             uint64 // no row from here on was sent
	uncovered           int    // rows sent, from base on
	soft, hard          int
	w                   event.Position // of the last finished row
	reached             event.Position // of the last row handed over
	books               []*book
}

type entry struct {
	row      *Row   // nil once it is done
	floor    *floor // nil until it is sent; a row that was set aside may never be
	position event.Position
}

// floor is a place that was acknowledged before some row was first sent, so that the row lies after it.
type floor struct {
	book *book
	Mark
}

// book is where one stream stands.
type book struct {
	stream *Stream
	from   *floor         // where the session began to read
	until  event.Position // up to which rows that lie after from may still come again
	latest *floor         // at most floorStep sequences behind
	high   uint64         // the newest acknowledged
	highID []byte
}

// floorStep bounds how much older than necessary a floor may be, for the price of a record every so many messages.
const floorStep = 64

func newLedger(maxUncovered int) ledger {
	return ledger{ring: make([]entry, 1024), hard: maxUncovered, soft: maxUncovered - maxUncovered/8}
}

func (g *ledger) open(t *Tail, from Mark, w event.Position) {
	b := g.book(t.Stream)
	last := t.Mark()
	b.from = &floor{b, from}
	b.latest = &floor{b, last}
	b.high, b.highID = last.Seq, append(b.highID[:0], last.MsgID...)
	if t.Highest.Compare(w) > 0 {
		b.until = t.Highest
	}
}

func (g *ledger) book(s *Stream) *book {
	for _, b := range g.books {
		if b.stream == s {
			return b
		}
	}
	b := &book{stream: s}
	b.from = &floor{book: b}
	b.latest = b.from
	g.books = append(g.books, b)
	return b
}

func (g *ledger) at(ord uint64) *entry { return &g.ring[ord&uint64(len(g.ring)-1)] }

func (g *ledger) add(r *Row) uint64 {
	e := entry{row: r, position: r.Position}
	if r.Late { // it was covered when it was set aside
		e.position = event.Position{}
	}
	g.push(e)
	return g.end - 1
}

func (g *ledger) skip(s *Stream, p event.Position) {
	g.push(entry{floor: g.book(s).from, position: p})
	g.sentEnd = g.end
	g.uncovered++
	g.advance()
}

func (g *ledger) push(e entry) {
	if g.end-g.base == uint64(len(g.ring)) {
		g.grow()
	}
	*g.at(g.end) = e
	g.end++
	if e.position.Compare(g.reached) > 0 {
		g.reached = e.position
	}
}

func (g *ledger) grow() {
	old := *g
	g.ring = make([]entry, 2*len(old.ring))
	for ord := g.base; ord < g.end; ord++ {
		*g.at(ord) = *old.at(ord)
	}
}

func (g *ledger) sent(r *Row) {
	b := r.book
	if b.high-b.latest.Seq >= floorStep {
		b.latest = &floor{b, b.mark()}
	}
	g.at(r.ord).floor = b.latest
	g.sentEnd = max(g.sentEnd, r.ord+1)
	g.uncovered++
}

func (g *ledger) done(r *Row, seq uint64) {
	if b := r.book; seq > b.high {
		b.high, b.highID = seq, append(b.highID[:0], r.Msg.ID...)
	}
	e := g.at(r.ord)
	if seq > 0 && seq <= e.floor.Seq { // an earlier session's message, stored after this one had read the tail
		e.floor = r.book.from
	}
	e.row = nil
	g.advance()
}

func (g *ledger) advance() {
	for g.finished < g.end && g.at(g.finished).row == nil {
		if p := g.at(g.finished).position; !p.IsZero() {
			g.w = p
		}
		g.finished++
	}
}

// oldest is the row that the checkpoint waits for.
func (g *ledger) oldest() *Row {
	if g.finished == g.end {
		return nil
	}
	return g.at(g.finished).row
}

// roomy reports whether any row may be sent. A part of the room is kept for the oldest row, so that a long run of one
// aggregate at the front does not need a checkpoint a row.
func (g *ledger) roomy() bool { return g.uncovered < g.soft }

// roomForOldest is false only while a checkpoint can be written that makes room.
func (g *ledger) roomForOldest() bool { return g.uncovered < g.hard || g.finished == g.base }

func (g *ledger) due() bool {
	coverable := int(g.finished - g.base)
	if coverable >= g.hard/8 { // early enough to be written before there is no room: sending goes on meanwhile
		return true
	}
	return !g.roomy() && coverable > 0 && (coverable >= g.hard/8 || g.uncovered >= g.hard)
}

func (g *ledger) cover(upto uint64) {
	for upto = min(upto, g.finished); g.base < upto; g.base++ {
		if e := g.at(g.base); e.floor != nil {
			g.uncovered--
		}
		*g.at(g.base) = entry{}
	}
}

func (g *ledger) floorOf(r *Row) Mark { return g.at(r.ord).floor.Mark }

// marks gives each stream the lowest floor of what was sent beyond the finished rows, and where there is nothing its
// newest acknowledged message; but the mark of the session's beginning as long as rows are to come again that lie after it.
func (g *ledger) marks() map[string]Mark {
	marks := make(map[string]Mark, len(g.books))
	for ord := g.finished; ord < g.sentEnd; ord++ {
		f := g.at(ord).floor
		if f == nil {
			continue
		}
		name := f.book.stream.Name
		if m, ok := marks[name]; !ok || f.Seq < m.Seq {
			marks[name] = f.Mark
		}
	}
	for _, b := range g.books {
		name := b.stream.Name
		if _, ok := marks[name]; !ok {
			marks[name] = b.mark()
		}
		if g.reached.Compare(b.until) < 0 {
			marks[name] = b.from.Mark
		}
	}
	return marks
}

func (b *book) mark() Mark { return Mark{Seq: b.high, MsgID: string(b.highID)} }
