package relay

import (
	"sync"
	"unsafe"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/geometry"
	"github.com/tidegate-cdc/tidegate/internal/lookup"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/router"
)

// row is one outbox row on its way, with all the memory it needs; it is used again when its PubAck is behind it.
type row struct {
	pub    publish.Row
	event  event.Event
	geo    *geo // nil until a row that refers to a feature is carried
	outbox *outbox
	// poison says why the row cannot be published.
	poison error
	whole  *whole // of a row that could not be read as configured
	ord    int64  // its place before all rows of the stream, when it was read from its table
	parked int64  // its number in the store that it comes from; 0: it comes from elsewhere
}

// fill reads the row's values. One that is poison keeps all of them: what makes it readable may be another mapping.
func (r *row) fill(b *event.Binding, values decoder.Tuple) {
	if r.poison = b.Fill(&r.event, values); r.poison != nil {
		r.whole = wholeOf(b.Columns(), values)
	}
}

// geo is what a row needs beside when its geometry is looked up.
type geo struct {
	feature geometry.Feature
	lookup  lookup.Row
}

// item is what the stages hand on: a row, or a mark that says "up to here everything was handed over".
type item struct {
	row  *row
	mark decoder.LSN
	end  decoder.LSN // the last transaction's end among the marks that this one stands for; 0: they were ends of an idle server's WAL
}

// appendMark appends a mark. Marks with no row between them are one, so that transactions which are nobody's take no
// memory, however many they are.
func appendMark(items []item, mark, end decoder.LSN) []item {
	if n := len(items); n > 0 && items[n-1].row == nil {
		last := &items[n-1]
		last.mark, last.end = max(last.mark, mark), max(last.end, end)
		return items
	}
	return append(items, item{mark: mark, end: end})
}

// outbox is one configured table and the way of its rows.
type outbox struct {
	table      *event.Table
	route      *router.Route
	streamName string
	stream     *publish.Stream
	features   *lookup.Table // nil when no geometry is looked up
	orderBy    string        // for reading the table
}

// maxKeptBody is the largest body whose memory a row keeps for the next one.
const maxKeptBody = 64 << 10

// maxFree is how many rows are kept for use again: somewhat more than are on their way in a busy stream.
const maxFree = 16384

// maxFreeBytes bounds what these hold: the budget does not count them.
const maxFreeBytes = 32 << 20

// rowPool gives rows whose buffers have grown to what the traffic needs. It is no sync.Pool: that one drops what is
// free with every garbage collection, and a busy bridge would make its rows anew each time.
type rowPool struct {
	mu   sync.Mutex
	free []*row
	held int64 // by free
}

func (p *rowPool) get() *row {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free) - 1; n >= 0 {
		r := p.free[n]
		p.free[n] = nil
		p.free = p.free[:n]
		p.held -= r.memory()
		return r
	}
	r := &row{}
	r.pub.Owner = r
	return r
}

func (p *rowPool) put(r *row) {
	if r.pub.Size > maxKeptBody {
		return
	}
	r.pub.Reset()
	r.outbox, r.poison, r.whole, r.ord, r.parked = nil, nil, nil, 0, 0
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := p.held + r.memory(); len(p.free) < maxFree && held <= maxFreeBytes {
		p.free, p.held = append(p.free, r), held
	}
}

// rowOverhead is what a row costs beside the bytes that it holds: its own structure, and its places in tracker, ledger
// and lane.
const rowOverhead = int64(unsafe.Sizeof(row{})) + 256

// memory is what the row holds now, by the buffers it has and not by what they contain: a pooled row keeps them.
func (r *row) memory() int64 {
	m := &r.pub.Msg
	held := r.event.Size() + cap(m.Body) + cap(m.Headers)*int(unsafe.Sizeof(event.Header{})) + cap(r.pub.Aggregate)
	if r.geo != nil {
		held += cap(r.geo.feature.JSON) + int(unsafe.Sizeof(geo{}))
	}
	if r.whole != nil {
		held += r.whole.size()
	}
	for i := range m.Headers { // the values and the subject are one string
		held += len(m.Headers[i].Value)
	}
	return rowOverhead + int64(held) + int64(len(m.Subject))
}

// rowOf gives the row that a message belongs to.
func rowOf(p *publish.Row) *row {
	r, ok := p.Owner.(*row)
	if !ok {
		panic("relay: a row of somebody else's came back") // rows come from rowPool alone
	}
	return r
}
