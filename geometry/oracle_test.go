package geometry

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/twpayne/go-geom"
	"github.com/twpayne/go-geom/encoding/ewkb"
	"github.com/twpayne/go-geom/encoding/geojson"
)

func TestReadsTheSamePositionsAsAnotherImplementation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		g := randomGeometry(random)
		var order binary.ByteOrder = binary.LittleEndian
		if random.IntN(2) == 0 {
			order = binary.BigEndian
		}
		var f Feature
		if err := Encode(&f, marshal(t, g, order), Options{}); err != nil || f.Status != StatusOK {
			t.Fatalf("%T: status %q, error %v", g, f.Status, err)
		}
		var back geom.T
		if err := geojson.Unmarshal(f.JSON, &back); err != nil {
			t.Fatalf("%s: %v", f.JSON, err)
		}
		got, want := back.FlatCoords(), withoutM(g)
		if len(got) != len(want) {
			t.Fatalf("%d ordinates, want %d", len(got), len(want))
		}
		for i := range got {
			if math.Abs(got[i]-want[i]) > 0.5000001e-7 {
				t.Fatalf("%T %v: ordinate %d is %v, want %v", g, g.Layout(), i, got[i], want[i])
			}
		}
	}
}

// withoutM gives the ordinates of g without M.
func withoutM(g geom.T) []float64 {
	keep := 2
	if g.Layout().ZIndex() >= 0 {
		keep = 3
	}
	var out []float64
	for i := 0; i < len(g.FlatCoords()); i += g.Stride() {
		out = append(out, g.FlatCoords()[i:i+keep]...)
	}
	return out
}

// randomGeometry gives points, lines and counter-clockwise triangles and their multi forms in every layout.
func randomGeometry(random *rand.Rand) geom.T {
	layout := []geom.Layout{geom.XY, geom.XYZ, geom.XYM, geom.XYZM}[random.IntN(4)]
	x, y := random.Float64()*300-150, random.Float64()*160-80
	at := func(dx, dy float64) []float64 {
		p := []float64{x + dx, y + dy, random.Float64() * 1e4, random.Float64() * 1e4}
		return p[:layout.Stride()]
	}
	line := func() []float64 { return append(at(random.Float64(), 0), at(0, random.Float64())...) }
	triangle := func() []float64 {
		first := at(0, 0)
		return append(append(append(append([]float64{}, first...), at(1+random.Float64(), 0)...), at(0, 1)...), first...)
	}
	n := layout.Stride()
	switch random.IntN(6) {
	case 0:
		return geom.NewPointFlat(layout, at(0, 0))
	case 1:
		return geom.NewLineStringFlat(layout, line())
	case 2:
		return geom.NewPolygonFlat(layout, triangle(), []int{4 * n})
	case 3:
		return geom.NewMultiPointFlat(layout, line())
	case 4:
		return geom.NewMultiLineStringFlat(layout, append(line(), line()...), []int{2 * n, 4 * n})
	default:
		return geom.NewMultiPolygonFlat(layout, append(triangle(), triangle()...), [][]int{{4 * n}, {8 * n}})
	}
}

func FuzzEncode(f *testing.F) {
	for _, row := range readLines[referenceRow](f, "testdata/geometries.jsonl") {
		f.Add(unhex(f, row.EWKB), uint16(0), false)
		f.Add(unhex(f, row.EWKB), uint16(50), true)
	}
	f.Fuzz(func(t *testing.T, wkb []byte, limit uint16, centroid bool) {
		o := Options{MaxBytes: int(limit)}
		if centroid {
			o.Point = Centroid
		}
		var g Feature
		if err := Encode(&g, wkb, o); err != nil {
			return
		}
		if g.HasBBox != g.HasPoint || g.HasBBox != (g.Status == StatusOK || g.Status == StatusOmittedTooLarge) {
			t.Fatalf("status %q, box %v, point %v", g.Status, g.HasBBox, g.HasPoint)
		}
		if (g.JSON != nil) != (g.Status == StatusOK) {
			t.Fatalf("status %q with %d bytes of JSON", g.Status, len(g.JSON))
		}
		if g.Status != StatusOK {
			return
		}
		checkFuzzed(t, &g, wkb, o)
	})
}

func checkFuzzed(t *testing.T, g *Feature, wkb []byte, o Options) {
	t.Helper()
	if !json.Valid(g.JSON) {
		t.Fatalf("not JSON: %s", g.JSON)
	}
	if o.MaxBytes > 0 && len(g.JSON) > o.MaxBytes {
		t.Fatalf("%d bytes, allowed are %d", len(g.JSON), o.MaxBytes)
	}
	var back geom.T
	if err := geojson.Unmarshal(g.JSON, &back); err != nil {
		t.Fatalf("not GeoJSON: %v: %s", err, g.JSON)
	}
	if _, err := ewkb.Unmarshal(wkb); err != nil {
		t.Fatalf("another implementation refuses it: %v", err)
	}
	b := g.BBox
	if b[0] < -180 || b[1] < -90 || b[2] > 180 || b[3] > 90 || b[0] > b[2] || b[1] > b[3] {
		t.Fatalf("box %v", b)
	}
	const rounding = 1e-9
	if o.Point == Surface && (g.Lon < b[0]-rounding || g.Lat < b[1]-rounding || g.Lon > b[2]+rounding || g.Lat > b[3]+rounding) {
		t.Fatalf("point %v %v outside of %v", g.Lon, g.Lat, b)
	}
}
