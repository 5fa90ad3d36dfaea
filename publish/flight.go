package publish

import (
	"strconv"
	"strings"
	"time"
)

// flight is the table of messages that were sent and not yet answered. A row has a slot while it is there; the slot's
// generation goes up with every use, so that an answer to an earlier attempt finds nobody.
type flight struct {
	inbox string // with the dot
	slots []slot
	free  []int32

	first, last *Row // in the order of sending
	rows        int
	bytes       int64
	scratch     []byte
}

type slot struct {
	row        *Row
	generation uint64
}

func newFlight(inbox string, size int) flight {
	f := flight{inbox: inbox + ".", slots: make([]slot, size), free: make([]int32, size)}
	for i := range f.free {
		f.free[i] = int32(size - 1 - i)
	}
	return f
}

// add puts r into a free slot, of which there is one as long as the window is no larger than the table.
func (f *flight) add(r *Row, now time.Time) (reply string) {
	r.slot = f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	s := &f.slots[r.slot]
	s.row = r
	s.generation++
	r.inFlight, r.sentAt = true, now
	f.rows++
	f.bytes += r.Size
	f.link(r)

	b := append(f.scratch[:0], f.inbox...)
	b = strconv.AppendInt(b, int64(r.slot), 10)
	b = append(b, '.')
	b = strconv.AppendUint(b, s.generation, 10)
	f.scratch = b
	return string(b)
}

func (f *flight) remove(r *Row) {
	f.slots[r.slot].row = nil
	f.free = append(f.free, r.slot)
	r.inFlight = false
	f.rows--
	f.bytes -= r.Size
	f.unlink(r)
}

// find gives the row whose latest attempt asked for an answer at subject, nil if there is none any more.
func (f *flight) find(subject string) *Row {
	rest, ok := strings.CutPrefix(subject, f.inbox)
	if !ok {
		return nil
	}
	i, rest, ok := cutNumber(rest)
	if !ok || i >= uint64(len(f.slots)) || rest == "" || rest[0] != '.' {
		return nil
	}
	generation, rest, ok := cutNumber(rest[1:])
	if s := &f.slots[i]; ok && rest == "" && s.generation == generation {
		return s.row
	}
	return nil
}

// cutNumber reads the decimal number that s begins with.
func cutNumber(s string) (n uint64, rest string, ok bool) {
	i := 0
	for i < len(s) && i < 19 && s[i] >= '0' && s[i] <= '9' {
		n = n*10 + uint64(s[i]-'0')
		i++
	}
	return n, s[i:], i > 0
}

func (f *flight) link(r *Row) {
	r.prev, r.next = f.last, nil
	if f.last == nil {
		f.first = r
	} else {
		f.last.next = r
	}
	f.last = r
}

func (f *flight) unlink(r *Row) {
	if r.prev == nil {
		f.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		f.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}
