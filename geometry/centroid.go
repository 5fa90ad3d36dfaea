package geometry

import "math"

// centroid is the planar centroid of the parts of highest dimension that are not degenerate: by area, else by length,
// else by count. It follows GEOS operation by operation, so that it gives the bits that ST_Centroid gives; products
// are rounded explicitly because a fused multiply-add would give other bits on other machines.
type centroid struct {
	areaSum        float64 // twice the area
	areaX, areaY   float64 // six times area by place
	length         float64
	lineX, lineY   float64
	count          float64
	pointX, pointY float64
}

func (s *shape) centroid() (x, y float64) {
	var c centroid
	for i := range s.parts {
		first, end := s.part(i)
		for l := first; l < end; l++ {
			switch line := s.line(l); s.base() {
			case typePoint:
				c.addPoint(line)
			case typeLineString:
				c.addLine(line, s.stride)
			default:
				c.addRing(line, s.stride, l == first, s.line(first))
			}
		}
	}
	switch {
	case math.Abs(c.areaSum) > 0:
		return c.areaX / 3 / c.areaSum, c.areaY / 3 / c.areaSum
	case c.length > 0:
		return c.lineX / c.length, c.lineY / c.length
	default:
		return c.pointX / c.count, c.pointY / c.count
	}
}

func (c *centroid) addPoint(p []float64) {
	c.count++
	c.pointX += p[0]
	c.pointY += p[1]
}

func (c *centroid) addLine(line []float64, stride int) {
	var sum float64
	for i := stride; i < len(line); i += stride {
		ax, ay, bx, by := line[i-stride], line[i-stride+1], line[i], line[i+1]
		length := distance(ax, ay, bx, by)
		if length == 0 {
			continue
		}
		sum += length
		c.lineX += float64(length * ((ax + bx) / 2))
		c.lineY += float64(length * ((ay + by) / 2))
	}
	c.length += sum
	if sum == 0 {
		c.addPoint(line)
	}
}

// addRing adds the triangles between the exterior's first position and each edge; a hole counts negative.
func (c *centroid) addRing(ring []float64, stride int, exterior bool, shell []float64) {
	x0, y0 := shell[0], shell[1]
	sign := -1.0
	if turnsLeftAtTop(ring, stride) != exterior {
		sign = 1
	}
	for i := stride; i < len(ring); i += stride {
		ax, ay, bx, by := ring[i-stride], ring[i-stride+1], ring[i], ring[i+1]
		area := float64((ax-x0)*(by-y0)) - float64((bx-x0)*(ay-y0))
		c.areaX += float64(float64(sign*area) * (x0 + ax + bx))
		c.areaY += float64(float64(sign*area) * (y0 + ay + by))
		c.areaSum += float64(sign * area)
	}
	c.addLine(ring, stride)
}

func distance(ax, ay, bx, by float64) float64 {
	dx, dy := ax-bx, ay-by
	return math.Sqrt(float64(dx*dx) + float64(dy*dy))
}
