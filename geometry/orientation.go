package geometry

// signedArea is twice the planar area of a ring, positive when it runs counter-clockwise. It is taken relative to the
// first position, so that small rings far from the origin keep their sign.
func signedArea(ring []float64, stride int) float64 {
	x0, y0 := ring[0], ring[1]
	var sum float64
	for i := stride; i+stride < len(ring); i += stride {
		ax, ay := ring[i]-x0, ring[i+1]-y0
		bx, by := ring[i+stride]-x0, ring[i+stride+1]-y0
		sum += float64(ax*by) - float64(bx*ay)
	}
	return sum
}

// turnsLeftAtTop reports whether a ring runs counter-clockwise as GEOS judges it: by the turn that it takes at its
// highest point. For a ring that does not cross itself this is the sign of its area; for one that does, the two may
// disagree, and a centroid equals that of PostGIS only with this one.
func turnsLeftAtTop(ring []float64, stride int) bool {
	n := len(ring)/stride - 1 // without the closing position
	at := func(i int) (x, y float64) { return ring[i*stride], ring[i*stride+1] }

	top, topX, topY := 0, ring[0], ring[1] // the first highest position that a rising edge ends in
	lowX, lowY := topX, topY               // where that edge begins
	px, py := topX, topY
	for i := 1; i <= n; i++ {
		x, y := at(i)
		if y > py && y >= topY {
			top, topX, topY, lowX, lowY = i, x, y, px, py
		}
		px, py = x, y
	}
	if top == 0 {
		return false // flat
	}
	fall := (top + 1) % n // where the edge ends that falls from the top
	for fall != top && ring[fall*stride+1] == topY {
		fall = (fall + 1) % n
	}
	fallX, fallY := at(fall)
	if endX, endY := at((fall + n - 1) % n); endX != topX || endY != topY {
		return endX < topX // the top is an edge: its direction decides
	}
	return float64((topX-lowX)*(fallY-topY))-float64((topY-lowY)*(fallX-topX)) > 0
}
