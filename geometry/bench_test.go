package geometry

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/twpayne/go-geom"
	"github.com/twpayne/go-geom/encoding/ewkb"
	"github.com/twpayne/go-geom/encoding/geojson"
)

// sized gives a geometry of n positions as EWKB.
func sized(b *testing.B, n int) []byte {
	b.Helper()
	if n == 1 {
		return marshal(b, geom.NewPointFlat(geom.XY, []float64{13.4051234, 52.5254321}).SetSRID(4326), binary.LittleEndian)
	}
	return marshal(b, circle(n), binary.LittleEndian)
}

var sizes = []int{1, 65, 1025, 40001}

// BenchmarkEncode is EWKB to GeoJSON with bounding box and routing point.
func BenchmarkEncode(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			wkb := sized(b, n)
			var f Feature
			b.ReportAllocs()
			b.SetBytes(int64(len(wkb)))
			for b.Loop() {
				if err := Encode(&f, wkb, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWriteGeoJSON is the GeoJSON alone, from what is already decoded.
func BenchmarkWriteGeoJSON(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var f Feature
			if err := Encode(&f, sized(b, n), Options{}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				w := writer{buf: f.json[:0]}
				w.geometry(&f.shape)
				f.json = w.buf
			}
		})
	}
}

// BenchmarkGoGeom is the same through go-geom: decoded and encoded (without box and point), and encoded alone.
func BenchmarkGoGeom(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("both/%d", n), func(b *testing.B) {
			wkb := sized(b, n)
			b.ReportAllocs()
			b.SetBytes(int64(len(wkb)))
			for b.Loop() {
				g, err := ewkb.Unmarshal(wkb)
				if err != nil {
					b.Fatal(err)
				}
				encodeGoGeom(b, g)
			}
		})
		b.Run(fmt.Sprintf("write/%d", n), func(b *testing.B) {
			g, err := ewkb.Unmarshal(sized(b, n))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				encodeGoGeom(b, g)
			}
		})
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			wkb := sized(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ewkb.Unmarshal(wkb); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func encodeGoGeom(b *testing.B, g geom.T) {
	b.Helper()
	if _, err := geojson.Marshal(g, geojson.EncodeGeometryWithMaxDecimalDigits(Decimals)); err != nil {
		b.Fatal(err)
	}
}
