package slot

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/tidegate-cdc/tidegate/decoder"
)

const (
	baseBuffer = 256 << 10 // what a session reads into
	minRead    = 64 << 10  // a smaller read than this would stall TCP on fast links
	prefixLen  = 64 << 10  // what is kept of a message that is framed past
	maxControl = 1 << 20   // of a message that is not CopyData
	headerLen  = 5         // type, length
	walHeader  = 1 + 3*8   // XLogData before its payload
	keepalive  = 1 + 2*8 + 1
)

// frame is one protocol message. Its body aliases the buffer until the next fill.
type frame struct {
	kind byte
	body []byte
	size int  // of the whole body: more than len(body) when the rest is framed past
	cut  bool // body is a prefix
}

// frames cuts a byte stream into protocol messages, in place. It holds one message of at most limit bytes, or
// baseBuffer, whichever is more; a longer CopyData yields its prefix and is dropped as it arrives.
type frames struct {
	buf, base []byte
	r, w      int // unread bytes are buf[r:w]
	skip      int // bytes still to be dropped
	limit     int // of a CopyData body
	large     bool
}

func newFrames(limit int) *frames {
	base := make([]byte, baseBuffer)
	return &frames{buf: base, base: base, limit: limit}
}

// next gives the next complete message, ok false when more bytes are needed for one.
func (f *frames) next() (m frame, ok bool, err error) {
	f.drop()
	have := f.w - f.r
	if f.skip > 0 || have < headerLen {
		return frame{}, false, nil
	}
	kind, size, err := f.header()
	if err != nil {
		return frame{}, false, err
	}
	if !f.holds(kind, size) {
		return f.prefix(kind, size)
	}
	if have < headerLen+size {
		return frame{}, false, nil
	}
	from := f.r + headerLen
	f.r = from + size
	return frame{kind: kind, body: f.buf[from:f.r:f.r], size: size}, true, nil
}

// header reads type and body length of the message at r.
func (f *frames) header() (kind byte, size int, err error) {
	kind = f.buf[f.r]
	n := binary.BigEndian.Uint32(f.buf[f.r+1:])
	if n < 4 || n > 1<<31-1 || (kind != 'd' && n > maxControl) {
		return 0, 0, fmt.Errorf("%w: type %q of %d bytes", ErrMalformed, kind, n)
	}
	return kind, int(n) - 4, nil
}

// holds reports whether a message is buffered whole.
func (f *frames) holds(kind byte, size int) bool { return kind != 'd' || size <= f.limit }

// prefix gives the beginning of a message that is too long to be held, and arranges for the rest to be dropped.
func (f *frames) prefix(kind byte, size int) (frame, bool, error) {
	keep := min(size, prefixLen)
	if f.w-f.r < headerLen+keep {
		return frame{}, false, nil
	}
	from := f.r + headerLen
	f.r, f.skip = from+keep, size-keep
	return frame{kind: kind, body: f.buf[from:f.r:f.r], size: size, cut: true}, true, nil
}

// drop discards what is to be skipped of the buffered bytes.
func (f *frames) drop() {
	n := min(f.skip, f.w-f.r)
	f.skip -= n
	f.r += n
	if f.r == f.w {
		f.r, f.w = 0, 0
	}
}

// fill reads once. It invalidates every frame given out.
func (f *frames) fill(src io.Reader) (int, error) {
	f.drop()
	f.room()
	n, err := src.Read(f.buf[f.w:])
	f.w += n
	return n, err
}

// room makes place behind the unread bytes: for the rest of the message that begins there, and for a read worth its
// while.
func (f *frames) room() {
	have := f.w - f.r
	want := have + minRead
	if f.skip == 0 && have >= headerLen {
		if kind, size, err := f.header(); err == nil && f.holds(kind, size) {
			want = max(want, headerLen+size)
		}
	}
	f.large = f.large || want > len(f.base)
	switch {
	case f.r+want <= len(f.buf):
		return
	case want <= len(f.buf):
		copy(f.buf, f.buf[f.r:f.w])
	default:
		f.grow(want)
	}
	f.r, f.w = 0, have
}

// grow moves the unread bytes into a buffer of a power of two, but of no more than one message can need.
func (f *frames) grow(want int) {
	size := len(f.buf)
	for size < want {
		size *= 2
	}
	size = max(want, min(size, headerLen+f.limit+minRead))
	buf := make([]byte, size)
	copy(buf, f.buf[f.r:f.w])
	f.buf = buf
}

// shrink returns to the first buffer if nothing longer came since the last call. It invalidates every frame.
func (f *frames) shrink() {
	idle := !f.large
	f.large = false
	if have := f.w - f.r; idle && len(f.buf) > len(f.base) && have+minRead <= len(f.base) {
		copy(f.base, f.buf[f.r:f.w])
		f.buf, f.r, f.w = f.base, 0, have
	}
}

// walData is the content of an XLogData message.
func walData(body []byte) (walStart decoder.LSN, data []byte, err error) {
	if len(body) < walHeader {
		return 0, nil, fmt.Errorf("%w: XLogData of %d bytes", ErrMalformed, len(body))
	}
	return decoder.LSN(binary.BigEndian.Uint64(body[1:])), body[walHeader:], nil
}

// keepaliveData is the content of a primary keepalive message.
func keepaliveData(body []byte) (walEnd decoder.LSN, reply bool, err error) {
	if len(body) != keepalive {
		return 0, false, fmt.Errorf("%w: keepalive of %d bytes", ErrMalformed, len(body))
	}
	return decoder.LSN(binary.BigEndian.Uint64(body[1:])), body[keepalive-1] != 0, nil
}
