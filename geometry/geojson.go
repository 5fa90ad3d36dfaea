package geometry

import "math"

// writer appends one geometry as GeoJSON and stops early once it is longer than limit.
type writer struct {
	buf   []byte
	limit int // 0: none
}

func (w *writer) full() bool { return w.limit > 0 && len(w.buf) > w.limit }

var typeNames = [...]string{
	typePoint:           "Point",
	typeLineString:      "LineString",
	typePolygon:         "Polygon",
	typeMultiPoint:      "MultiPoint",
	typeMultiLineString: "MultiLineString",
	typeMultiPolygon:    "MultiPolygon",
}

// geometry writes the whole of s and reports whether it kept within the limit.
func (w *writer) geometry(s *shape) bool {
	w.buf = append(w.buf, `{"type":"`...)
	w.buf = append(w.buf, typeNames[s.typ]...)
	w.buf = append(w.buf, `","coordinates":`...)
	if s.typ == s.base() {
		w.part(s, 0)
	} else {
		for i := 0; i < len(s.parts) && !w.full(); i++ {
			w.separate(i)
			w.part(s, i)
		}
		w.buf = append(w.buf, ']')
	}
	w.buf = append(w.buf, '}')
	return !w.full()
}

// separate writes what stands before element i of an array.
func (w *writer) separate(i int) {
	before := byte('[')
	if i > 0 {
		before = ','
	}
	w.buf = append(w.buf, before)
}

// part writes the coordinates of one point, line or polygon.
func (w *writer) part(s *shape, i int) {
	first, end := s.part(i)
	switch s.base() {
	case typePoint:
		w.position(s.line(first))
	case typeLineString:
		w.line(s.line(first), s.stride)
	default:
		for r := first; r < end && !w.full(); r++ {
			w.separate(r - first)
			w.ring(s.line(r), s.stride, r == first)
		}
		w.buf = append(w.buf, ']')
	}
}

func (w *writer) position(p []float64) {
	buf := append(w.buf, '[')
	buf = AppendNumber(buf, p[0])
	buf = append(buf, ',')
	buf = AppendNumber(buf, p[1])
	if len(p) > 2 {
		buf = append(buf, ',')
		buf = AppendNumber(buf, p[2])
	}
	w.buf = append(buf, ']')
}

func (w *writer) line(line []float64, stride int) {
	for i := 0; i < len(line) && !w.full(); i += stride {
		w.separate(i)
		w.position(line[i : i+stride])
	}
	w.buf = append(w.buf, ']')
}

// ring writes a closed line, the exterior counter-clockwise and a hole clockwise.
func (w *writer) ring(ring []float64, stride int, exterior bool) {
	write := w.position
	if collapses(ring, stride) {
		write = w.precisely
	}
	area := signedArea(ring, stride)
	if area == 0 || area > 0 == exterior {
		for i := 0; i < len(ring) && !w.full(); i += stride {
			w.separate(i)
			write(ring[i : i+stride])
		}
	} else {
		last := len(ring) - stride
		for i := last; i >= 0 && !w.full(); i -= stride {
			w.separate(last - i)
			write(ring[i : i+stride])
		}
	}
	w.buf = append(w.buf, ']')
}

// precisely writes a position without rounding its place.
func (w *writer) precisely(p []float64) {
	w.buf = appendFull(append(w.buf, '['), p[0])
	w.buf = appendFull(append(w.buf, ','), p[1])
	if len(p) > 2 {
		w.buf = AppendNumber(append(w.buf, ','), p[2])
	}
	w.buf = append(w.buf, ']')
}

// collapses reports whether rounding leaves fewer than three distinct positions of a ring that has three.
func collapses(ring []float64, stride int) bool {
	return !threeDistinct(ring, stride, func(v float64) float64 { return math.RoundToEven(v * scale) }) &&
		threeDistinct(ring, stride, func(v float64) float64 { return v })
}

// threeDistinct reports whether a ring has at least three distinct positions, each ordinate seen through round.
func threeDistinct(ring []float64, stride int, round func(float64) float64) bool {
	ax, ay := round(ring[0]), round(ring[1])
	var bx, by float64
	two := false
	for i := stride; i < len(ring); i += stride {
		x, y := round(ring[i]), round(ring[i+1])
		switch {
		case x == ax && y == ay, two && x == bx && y == by:
		case two:
			return true
		default:
			bx, by, two = x, y, true
		}
	}
	return false
}
