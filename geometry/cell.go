package geometry

import (
	"math"
	"strconv"

	"github.com/uber/h3-go/v4"
)

// MaxResolution is the finest resolution of H3.
const MaxResolution = 15

// Cell gives the H3 cell of a place in degrees. It reports false for a place that is not on Earth (the library would
// answer with some cell all the same) and for a resolution outside of 0 to MaxResolution. A longitude up to one turn
// beyond 180 is taken for what it means.
func Cell(lon, lat float64, res int) (h3.Cell, bool) {
	if !(math.Abs(lon) <= maxLon && math.Abs(lat) <= 90) || res < 0 || res > MaxResolution {
		return 0, false
	}
	c := h3.LatLngToCell(h3.LatLng{Lat: lat, Lng: lon}, res)
	return c, c.IsValid()
}

// ParseCell reads an H3 cell of any resolution from its usual form, 15 or 16 hexadecimal digits. It reports false for
// anything else, an index of another mode than cell among it.
func ParseCell(s []byte) (uint64, bool) {
	if len(s) != 15 && len(s) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s), 16, 64)
	if err != nil || !h3.Cell(n).IsValid() {
		return 0, false
	}
	return n, true
}

// AppendCell appends the usual form of a cell, which ParseCell reads.
func AppendCell(dst []byte, cell uint64) []byte { return strconv.AppendUint(dst, cell, 16) }

// AppendCellTokens appends a cell as subject tokens: its base cell and one digit a resolution, always res+1 tokens,
// so that a prefix of them names an area. A finer cell is cut to its parent, a coarser one padded with x; cell 0, no
// cell, is x everywhere. Layout: H3 documentation, "H3Index Bit Layout".
func AppendCellTokens(dst []byte, cell uint64, res int) []byte {
	own := int(cell >> 52 & 15)
	if cell == 0 {
		own = -1
		dst = append(dst, 'x')
	} else {
		dst = strconv.AppendUint(dst, cell>>45&127, 10)
	}
	for r := 1; r <= res; r++ {
		digit := byte('x')
		if r <= own {
			digit = '0' + byte(cell>>(3*(MaxResolution-r))&7)
		}
		dst = append(dst, '.', digit)
	}
	return dst
}
