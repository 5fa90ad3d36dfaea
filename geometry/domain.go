package geometry

import "math"

// maxLon is the farthest longitude that is brought back into -180 to 180: one turn beyond. What lies farther is no
// longitude but most likely metres.
const maxLon = 180 + 360

// slack is how far a transformation may overshoot a pole or the antimeridian by rounding, in degrees.
const slack = 1e-9

// settle brings every longitude into -180 to 180, part by part, and gives the bounding box. It reports
// StatusInvalidCoordinates for what is no place on Earth, StatusUnsupported for what crosses the antimeridian, else
// StatusOK.
func (s *shape) settle() (box [4]float64, status Status) {
	if !s.inRange() {
		return box, StatusInvalidCoordinates
	}
	box = [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	var touchesWest, touchesEast bool
	for i := range s.parts {
		part := s.partCoords(i)
		west, east := extent(part, s.stride)
		turn := turns(east)
		if west-turn < -180 {
			return box, StatusUnsupported
		}
		shift(part, s.stride, turn)
		west, east = west-turn, east-turn
		box[0], box[2] = min(box[0], west), max(box[2], east)
		touchesWest = touchesWest || west == -180 && east != 180
		touchesEast = touchesEast || east == 180 && west != -180
	}
	if touchesWest && touchesEast || s.crosses() {
		return box, StatusUnsupported
	}
	for i := 1; i < len(s.coords); i += s.stride {
		box[1], box[3] = min(box[1], s.coords[i]), max(box[3], s.coords[i])
	}
	return box, StatusOK
}

// inRange reports whether every ordinate is finite and every position on Earth, and removes a slight overshoot.
func (s *shape) inRange() bool {
	for i := 0; i < len(s.coords); i += s.stride {
		x, y := s.coords[i], s.coords[i+1]
		if !(math.Abs(x) <= maxLon) || !(math.Abs(y) <= 90+slack) {
			return false
		}
		if s.stride > 2 && (math.IsNaN(s.coords[i+2]) || math.IsInf(s.coords[i+2], 0)) {
			return false
		}
		if over := math.Abs(x) - 180; over > 0 && over <= slack {
			s.coords[i] = math.Copysign(180, x)
		}
		if math.Abs(y) > 90 {
			s.coords[i+1] = math.Copysign(90, y)
		}
	}
	return true
}

// partCoords gives the ordinates of part i.
func (s *shape) partCoords(i int) []float64 {
	first, end := s.part(i)
	start := 0
	if first > 0 {
		start = s.lines[first-1]
	}
	return s.coords[start:s.lines[end-1]]
}

// extent gives the least and greatest longitude.
func extent(coords []float64, stride int) (west, east float64) {
	west, east = coords[0], coords[0]
	for i := stride; i < len(coords); i += stride {
		west, east = min(west, coords[i]), max(east, coords[i])
	}
	return west, east
}

// turns is what must be taken from a part whose easternmost longitude is given to bring that into -180 to 180.
func turns(east float64) float64 {
	switch {
	case east > 180:
		return 360
	case east < -180:
		return -360
	default:
		return 0
	}
}

func shift(coords []float64, stride int, by float64) {
	for i := 0; by != 0 && i < len(coords); i += stride {
		coords[i] -= by
	}
}

// crosses reports whether a line steps over the antimeridian: more than half a turn between neighbours. A line that
// has a position on the antimeridian was made with it in mind, and is left alone.
func (s *shape) crosses() bool {
	for i := range s.lines {
		line := s.line(i)
		steps, touches := false, math.Abs(line[0]) == 180
		for j := s.stride; j < len(line); j += s.stride {
			steps = steps || math.Abs(line[j]-line[j-s.stride]) > 180
			touches = touches || math.Abs(line[j]) == 180
		}
		if steps && !touches {
			return true
		}
	}
	return false
}
