package event

import "math/bits"

const (
	leastMemory = 512
	idleMemory  = 64 << 10 // what an Event may keep of a large row when the next one is small
)

// Size is the memory, in bytes, that ev holds for its row.
func (ev *Event) Size() int { return cap(ev.buf) }

// clear makes ev an event of b's table without values, except for what Fill leaves to its caller.
func (ev *Event) clear(b *Binding) {
	*ev = Event{
		Table:       b.table,
		Position:    ev.Position,
		CommittedAt: ev.CommittedAt,
		XID:         ev.XID,
		Late:        ev.Late,
		ContentType: b.ContentType(),
		from:        b,
		buf:         ev.buf[:0],
	}
	if b.table.Kind == KindFeature {
		ev.AggregateType = b.collection
	}
}

// reserve makes room for n bytes, and gives back the room of a much larger row before.
func (ev *Event) reserve(n int) {
	if c := cap(ev.buf); c >= max(n, leastMemory) && (c <= idleMemory || c/4 <= n) {
		return
	}
	room := max(n, leastMemory)
	if room <= idleMemory {
		room = 1 << bits.Len(uint(room-1)) // a few steps, then rows of every usual size fit
	}
	ev.buf = make([]byte, 0, room)
}

// keep copies v behind what was kept before; there is room. nil stays nil.
func (ev *Event) keep(v []byte) []byte {
	if v == nil {
		return nil
	}
	start := len(ev.buf)
	ev.buf = append(ev.buf, v...)
	return ev.buf[start:len(ev.buf):len(ev.buf)]
}
