package geometry

import "fmt"

// shape is a decoded geometry of positions in lines in parts: a point is a part of one line of one position, a
// polygon a part whose lines are its rings, the exterior first. Empty parts and lines are left out.
type shape struct {
	typ    uint32
	srid   uint32
	stride int       // ordinates a position: 2, or 3 with Z
	coords []float64 // stride ordinates a position
	lines  []int     // the end of each line, in coords
	parts  []int     // the end of each part, in lines
}

func (s *shape) endLine() { s.lines = append(s.lines, len(s.coords)) }

func (s *shape) endPart() {
	if n := len(s.lines); n > 0 && (len(s.parts) == 0 || s.parts[len(s.parts)-1] < n) {
		s.parts = append(s.parts, n)
	}
}

// trim lets go of excessive memory.
func (s *shape) trim() {
	if cap(s.coords)*8 > keepBytes {
		s.coords = nil
	}
	if cap(s.lines)*8 > keepBytes {
		s.lines, s.parts = nil, nil
	}
}

// decode reads EWKB into s. It reports StatusEmpty, StatusUnsupported or, when there is something to encode,
// StatusOK.
func (s *shape) decode(ewkb []byte) (Status, error) {
	c := cursor{data: ewkb}
	h := c.header()
	*s = shape{typ: h.typ, srid: h.srid, stride: 2, coords: s.coords[:0], lines: s.lines[:0], parts: s.parts[:0]}
	if h.hasZ {
		s.stride = 3
	}
	switch {
	case c.err != nil:
		return "", c.err
	case h.typ == 0 || h.typ > typeTriangle:
		return "", fmt.Errorf("%w: unknown type %d", ErrMalformed, h.typ)
	case h.typ > typeMultiPolygon:
		return elsewhere(&c)
	case h.typ < typeMultiPoint:
		c.part(s, h)
	default:
		c.parts(s, h)
	}
	if c.err == nil && len(c.data) > 0 {
		c.fail("bytes behind the geometry")
	}
	if c.err == nil && len(s.parts) == 0 {
		return StatusEmpty, nil
	}
	return StatusOK, c.err
}

// elsewhere handles the types that are not encoded: each begins with its number of members.
func elsewhere(c *cursor) (Status, error) {
	n := c.uint32()
	if c.err == nil && n == 0 {
		return StatusEmpty, nil
	}
	return StatusUnsupported, c.err
}

// base is the type of the parts.
func (s *shape) base() uint32 {
	if s.typ >= typeMultiPoint {
		return s.typ - multiOf
	}
	return s.typ
}

// wellFormed reports whether every line has the number of positions that RFC 7946 asks for, and every ring is closed.
func (s *shape) wellFormed() bool {
	least := [...]int{typePoint: 1, typeLineString: 2, typePolygon: 4}[s.base()]
	for i := range s.lines {
		line := s.line(i)
		if len(line) < least*s.stride {
			return false
		}
		last := line[len(line)-s.stride:]
		if s.base() == typePolygon && (line[0] != last[0] || line[1] != last[1]) {
			return false
		}
	}
	return true
}

// line gives the ordinates of line i.
func (s *shape) line(i int) []float64 {
	start := 0
	if i > 0 {
		start = s.lines[i-1]
	}
	return s.coords[start:s.lines[i]]
}

// part gives the first line of part i and the line behind its last.
func (s *shape) part(i int) (first, end int) {
	if i > 0 {
		first = s.parts[i-1]
	}
	return first, s.parts[i]
}
