package geometry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrMalformed is wrapped by every error that says the bytes are no EWKB of PostGIS.
var ErrMalformed = errors.New("malformed EWKB")

// The flags of PostGIS above a geometry's type.
const (
	flagZ    = 0x80000000
	flagM    = 0x40000000
	flagSRID = 0x20000000
)

// The types that PostGIS writes.
const (
	typePoint           = 1
	typeLineString      = 2
	typePolygon         = 3
	typeMultiPoint      = 4
	typeMultiLineString = 5
	typeMultiPolygon    = 6
	typeTriangle        = 17
)

// multiOf is the distance from a type to its multi form.
const multiOf = typeMultiPoint - typePoint

// cursor reads EWKB. It is the only code that indexes the bytes of a geometry. The first error stays.
type cursor struct {
	data []byte
	big  bool // the byte order of what is being read
	err  error
}

// header is what a geometry begins with.
type header struct {
	typ  uint32
	srid uint32
	hasZ bool
	dims int // ordinates a position, M included
}

func (c *cursor) fail(reason string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrMalformed, reason)
	}
}

// take gives the next n bytes, or nil after an error.
func (c *cursor) take(n int) []byte {
	if c.err == nil && n > len(c.data) {
		c.fail("unexpected end")
	}
	if c.err != nil {
		return nil
	}
	head := c.data[:n]
	c.data = c.data[n:]
	return head
}

func (c *cursor) uint32() uint32 {
	b := c.take(4)
	switch {
	case b == nil:
		return 0
	case c.big:
		return binary.BigEndian.Uint32(b)
	default:
		return binary.LittleEndian.Uint32(b)
	}
}

// count reads a number of elements of which each takes at least size bytes, and refuses what cannot be left: nothing
// is ever allocated or looped over by a number that the bytes do not bear out.
func (c *cursor) count(size int) int {
	n := c.uint32()
	if uint64(n)*uint64(size) > uint64(len(c.data)) {
		c.fail("more elements announced than bytes are left")
		return 0
	}
	return int(n)
}

// header reads the byte order, type and reference system of a geometry.
func (c *cursor) header() header {
	b := c.take(1)
	if b == nil {
		return header{}
	}
	if b[0] > 1 {
		c.fail("unknown byte order")
	}
	c.big = b[0] == 0
	typ := c.uint32()
	h := header{typ: typ &^ (flagZ | flagM | flagSRID), hasZ: typ&flagZ != 0, dims: 2}
	if typ&flagZ != 0 {
		h.dims++
	}
	if typ&flagM != 0 {
		h.dims++
	}
	if typ&flagSRID != 0 {
		h.srid = c.uint32()
	}
	return h
}

// float reads the i-th ordinate of b.
func (c *cursor) float(b []byte, i int) float64 {
	if c.big {
		return math.Float64frombits(binary.BigEndian.Uint64(b[8*i:]))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
}

// positions reads n positions into s; M is dropped.
func (c *cursor) positions(s *shape, h header, n int) {
	b := c.take(8 * h.dims * n)
	if b == nil {
		return
	}
	s.coords = slices.Grow(s.coords, n*s.stride)
	for i := 0; i < n*h.dims; i += h.dims {
		for j := range s.stride {
			s.coords = append(s.coords, c.float(b, i+j))
		}
	}
}

// point reads a point as a line of one position. PostGIS writes an empty point as NaN in every ordinate.
func (c *cursor) point(s *shape, h header) {
	rest := c.data
	b := c.take(8 * h.dims)
	if b == nil {
		return
	}
	for i := range h.dims {
		if !math.IsNaN(c.float(b, i)) {
			c.data = rest
			c.positions(s, h, 1)
			s.endLine()
			return
		}
	}
}

// line reads the positions of a line string or ring.
func (c *cursor) line(s *shape, h header) {
	if n := c.count(8 * h.dims); n > 0 {
		c.positions(s, h, n)
		s.endLine()
	}
}

// part reads the body of one simple geometry.
func (c *cursor) part(s *shape, h header) {
	switch h.typ {
	case typePoint:
		c.point(s, h)
	case typeLineString:
		c.line(s, h)
	case typePolygon:
		for range c.count(4) {
			c.line(s, h)
		}
	}
	s.endPart()
}

// parts reads the members of a multi geometry.
func (c *cursor) parts(s *shape, h header) {
	for range c.count(9) {
		m := c.header()
		if c.err == nil && (m.typ != h.typ-multiOf || m.dims != h.dims || m.hasZ != h.hasZ) {
			c.fail("a member is of another type than its multi geometry")
		}
		if c.err != nil {
			return
		}
		c.part(s, m)
	}
}
