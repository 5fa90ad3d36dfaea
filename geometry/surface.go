package geometry

import (
	"math"
	"slices"
)

// surface gives a point on the geometry. It follows GEOS operation by operation, so that it gives the bits that
// ST_PointOnSurface gives: for points the one nearest to the centroid, for lines the inner vertex (else the end)
// nearest to the centroid, for polygons the middle of the widest stretch of a horizontal scan line. cross is scratch
// memory, handed back for the next call.
func (s *shape) surface(cross []float64) (x, y float64, scratch []float64) {
	switch s.base() {
	case typePoint:
		x, y = s.nearest(func(line []float64) []float64 { return line })
	case typeLineString:
		inner := false
		for i := range s.lines {
			inner = inner || len(s.line(i)) > 2*s.stride
		}
		if inner {
			x, y = s.nearest(s.inner)
		} else {
			x, y = s.nearest(func(line []float64) []float64 { return line }) // two positions each: the ends
		}
	default:
		return s.widest(cross)
	}
	return x, y, cross
}

// inner gives a line without its ends.
func (s *shape) inner(line []float64) []float64 {
	if len(line) <= 2*s.stride {
		return nil
	}
	return line[s.stride : len(line)-s.stride]
}

// nearest gives the position nearest to the centroid, the first of equals, among those that among leaves of each line.
func (s *shape) nearest(among func(line []float64) []float64) (x, y float64) {
	cx, cy := s.centroid()
	least := math.Inf(1)
	for i := range s.lines {
		line := among(s.line(i))
		for j := 0; j < len(line); j += s.stride {
			if d := distance(line[j], line[j+1], cx, cy); d < least {
				least, x, y = d, line[j], line[j+1]
			}
		}
	}
	return x, y
}

// widest gives the middle of the widest interior stretch among the scan lines of all polygons, the first of equals.
func (s *shape) widest(cross []float64) (x, y float64, scratch []float64) {
	widest := -1.0
	for i := range s.parts {
		first, end := s.part(i)
		scanY := s.scanLine(first, end)
		cross = cross[:0]
		for l := first; l < end; l++ {
			cross = appendCrossings(cross, s.line(l), s.stride, scanY)
		}
		slices.Sort(cross)
		shell := s.line(first)
		px, py, width := shell[0], shell[1], 0.0 // a polygon without area has no stretch
		for c := 0; c+1 < len(cross); c += 2 {
			if w := cross[c+1] - cross[c]; w > width {
				px, py, width = (cross[c]+cross[c+1])/2, scanY, w
			}
		}
		if width > widest {
			x, y, widest = px, py, width
		}
	}
	return x, y, cross
}

// scanLine gives the height halfway between the nearest vertices at or below and above the polygon's middle: no
// vertex lies on it unless the polygon is flat.
func (s *shape) scanLine(first, end int) float64 {
	shell := s.line(first)
	low, high := shell[1], shell[1]
	for i := 1; i < len(shell); i += s.stride {
		low, high = min(low, shell[i]), max(high, shell[i])
	}
	middle := (low + high) / 2
	for l := first; l < end; l++ {
		ring := s.line(l)
		for i := 1; i < len(ring); i += s.stride {
			if y := ring[i]; y <= middle {
				low = max(low, y)
			} else {
				high = min(high, y)
			}
		}
	}
	return (high + low) / 2
}

// appendCrossings appends where the edges of a ring cross the height y.
func appendCrossings(cross, ring []float64, stride int, y float64) []float64 {
	for i := stride; i < len(ring); i += stride {
		ax, ay, bx, by := ring[i-stride], ring[i-stride+1], ring[i], ring[i+1]
		switch {
		case ay > y && by > y, ay < y && by < y, ay == by:
		case ay == y && by < y, by == y && ay < y: // a vertex on the line belongs to the edge above it
		case ax == bx:
			cross = append(cross, ax)
		default:
			cross = append(cross, ax+(y-ay)/((by-ay)/(bx-ax)))
		}
	}
	return cross
}
