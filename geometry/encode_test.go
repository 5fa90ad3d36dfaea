package geometry

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/twpayne/go-geom"
	"github.com/twpayne/go-geom/encoding/ewkb"
	"github.com/twpayne/go-geom/encoding/wkt"
)

// fromWKT gives the EWKB of a geometry in EPSG:4326, through another implementation.
func fromWKT(t testing.TB, s string) []byte {
	t.Helper()
	g, err := wkt.Unmarshal(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return marshal(t, g, binary.LittleEndian)
}

func marshal(t testing.TB, g geom.T, order binary.ByteOrder) []byte {
	t.Helper()
	b, err := ewkb.Marshal(g, order)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func encodeWKT(t testing.TB, s string, o Options) *Feature {
	t.Helper()
	var f Feature
	if err := Encode(&f, fromWKT(t, s), o); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return &f
}

func TestEncodeGivesStrictGeoJSON(t *testing.T) {
	for _, c := range []struct{ name, wkt, want string }{
		{
			"hole is turned clockwise", "POLYGON((0 0,9 0,9 9,0 9,0 0),(1 1,2 1,2 2,1 2,1 1))",
			`{"type":"Polygon","coordinates":[[[0,0],[9,0],[9,9],[0,9],[0,0]],[[1,1],[1,2],[2,2],[2,1],[1,1]]]}`,
		},
		{
			"Z travels with its position", "POLYGON Z((0 0 1,0 9 2,9 9 3,0 0 1))",
			`{"type":"Polygon","coordinates":[[[0,0,1],[9,9,3],[0,9,2],[0,0,1]]]}`,
		},
		{"M is dropped beside Z", "POINT ZM(1 2 3 4)", `{"type":"Point","coordinates":[1,2,3]}`},
		{
			"empty members leave no gap", "MULTIPOINT(EMPTY,1 2,EMPTY,3 4)",
			`{"type":"MultiPoint","coordinates":[[1,2],[3,4]]}`,
		},
		{
			"empty polygons leave no gap", "MULTIPOLYGON(EMPTY,((0 0,1 0,1 1,0 0)))",
			`{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,0]]]]}`,
		},
		{
			"rounds to zero without a sign", "LINESTRING(-0.00000001 1.5,-0.0000001 -1.50)",
			`{"type":"LineString","coordinates":[[0,1.5],[-0.0000001,-1.5]]}`,
		},
		{
			"tiny ring keeps its shape", "POLYGON((1 1,1.00000001 1,1.00000001 1.00000001,1 1))",
			`{"type":"Polygon","coordinates":[[[1,1],[1.00000001,1],[1.00000001,1.00000001],[1,1]]]}`,
		},
		{
			"tiny ring with Z keeps its shape", "POLYGON Z((0 0 5,0 0.00000001 5,0.00000001 0.00000001 5,0 0 5))",
			`{"type":"Polygon","coordinates":[[[0,0,5],[0.00000001,0.00000001,5],[0,0.00000001,5],[0,0,5]]]}`,
		},
		{
			"flat ring is left alone", "POLYGON((1 1,2 1,3 1,1 1))",
			`{"type":"Polygon","coordinates":[[[1,1],[2,1],[3,1],[1,1]]]}`,
		},
		{"high altitude", "POINT Z(1 2 123456789.5)", `{"type":"Point","coordinates":[1,2,123456789.5]}`},
		{"absurd altitude", "POINT Z(1 2 -1e300)", `{"type":"Point","coordinates":[1,2,-1e+300]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := encodeWKT(t, c.wkt, Options{})
			if f.Status != StatusOK || string(f.JSON) != c.want {
				t.Errorf("status %q\n got %s\nwant %s", f.Status, f.JSON, c.want)
			}
		})
	}
}

func TestEncodeNamesWhatItDoesNotPublish(t *testing.T) {
	for _, c := range []struct {
		name, wkt string
		want      Status
	}{
		{"multi of nothing", "MULTIPOLYGON EMPTY", StatusEmpty},
		{"multi of empties", "MULTIPOINT(EMPTY,EMPTY)", StatusEmpty},
		{"empty line", "LINESTRING EMPTY", StatusEmpty},
		{"empty polygon", "POLYGON EMPTY", StatusEmpty},
		{"empty point with Z", "POINT Z EMPTY", StatusEmpty},
		{"collection", "GEOMETRYCOLLECTION(POINT(1 2))", StatusUnsupported},
		{"metres", "POINT(1492237 6895699)", StatusInvalidCoordinates},
		{"metres near the equator", "POINT(1492237 80)", StatusInvalidCoordinates},
		{"latitude too low", "LINESTRING(0 0,0 -90.1)", StatusInvalidCoordinates},
		{"line over the antimeridian", "LINESTRING(179 0,-179 0)", StatusUnsupported},
		{"line over the antimeridian, unwrapped", "LINESTRING(179 0,181 0)", StatusUnsupported},
		{"hole over the antimeridian", "POLYGON((-170 0,170 0,170 9,-170 9,-170 0),(179 1,-179 1,0 2,179 1))", StatusUnsupported},
		{"parts on both sides", "MULTILINESTRING((180 0,170 0),(-180 0,-170 0))", StatusUnsupported},
		{"whole turn from zero", "POLYGON((0 -90,120 -90,240 -90,360 -90,360 90,0 90,0 -90))", StatusUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := encodeWKT(t, c.wkt, Options{})
			checkNamedOnly(t, f, c.want)
		})
	}
}

func TestLongitudesComeBackIntoOneTurn(t *testing.T) {
	for _, c := range []struct{ wkt, want string }{
		{"POINT(373.405 52.5)", `[13.405,52.5]`},
		{"POINT(-181 0)", `[179,0]`},
		{"MULTIPOINT(190 0,10 0)", `[[-170,0],[10,0]]`},
		{"LINESTRING(180 0,190 0)", `[[-180,0],[-170,0]]`},
		{"LINESTRING(-200 0,-181 0)", `[[160,0],[179,0]]`},
		{"POINT(180.0000000001 90.0000000001)", `[180,90]`},
		{"POINT(-180 -90)", `[-180,-90]`},
	} {
		f := encodeWKT(t, c.wkt, Options{})
		if got := string(f.JSON); f.Status != StatusOK || !strings.HasSuffix(got, `"coordinates":`+c.want+"}") {
			t.Errorf("%s: status %q, %s; want %s", c.wkt, f.Status, got, c.want)
		}
		if f.BBox[0] < -180 || f.BBox[2] > 180 || math.Abs(f.Lon) > 180 || math.Abs(f.Lat) > 90 {
			t.Errorf("%s: box %v, point %v %v", c.wkt, f.BBox, f.Lon, f.Lat)
		}
	}
}

func TestRingsMadeWithTheAntimeridianInMindAreLeftAlone(t *testing.T) {
	for _, s := range []string{
		"POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))",
		"POLYGON((170 0,180 0,180 9,170 9,170 0))",
		"LINESTRING(-180 3,0 3,180 3)",
	} {
		if f := encodeWKT(t, s, Options{}); f.Status != StatusOK {
			t.Errorf("%s: status %q", s, f.Status)
		}
	}
}

func TestNonFiniteOrdinatesAreInvalidAndMIsNotLookedAt(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		g    geom.T
		want Status
	}{
		{geom.NewPointFlat(geom.XY, []float64{inf, 0}), StatusInvalidCoordinates},
		{geom.NewPointFlat(geom.XY, []float64{0, nan}), StatusInvalidCoordinates},
		{geom.NewPointFlat(geom.XYZ, []float64{0, 0, nan}), StatusInvalidCoordinates},
		{geom.NewPointFlat(geom.XYZ, []float64{0, 0, -inf}), StatusInvalidCoordinates},
		{geom.NewPointFlat(geom.XYM, []float64{0, 0, nan}), StatusOK},
		{geom.NewLineStringFlat(geom.XYZM, []float64{0, 0, 1, inf, 1, 1, 2, nan}), StatusOK},
		{geom.NewLineStringFlat(geom.XY, []float64{0, 0, 1, nan}), StatusInvalidCoordinates},
		{geom.NewLineStringFlat(geom.XY, []float64{0, 0}), StatusUnsupported},
		{geom.NewPolygonFlat(geom.XY, []float64{0, 0, 1, 0, 0, 0}, []int{6}), StatusUnsupported},
		{geom.NewPolygonFlat(geom.XY, []float64{0, 0, 1, 0, 1, 1, 0, 1}, []int{8}), StatusUnsupported}, // not closed
	} {
		var f Feature
		if err := Encode(&f, marshal(t, c.g, binary.BigEndian), Options{}); err != nil || f.Status != c.want {
			t.Errorf("%v %v: status %q, error %v; want %q", c.g.Layout(), c.g.FlatCoords(), f.Status, err, c.want)
		}
	}
}

func TestTooLargeGeometryKeepsBoxAndPoint(t *testing.T) {
	const square = "MULTIPOLYGON(((13 52,14 52,14 53,13 53,13 52),(13.2 52.2,13.2 52.4,13.4 52.4,13.2 52.2)))"
	whole := encodeWKT(t, square, Options{})
	if f := encodeWKT(t, square, Options{MaxBytes: len(whole.JSON)}); f.Status != StatusOK {
		t.Errorf("a geometry of exactly MaxBytes has status %q", f.Status)
	}
	for limit := 1; limit < len(whole.JSON); limit++ {
		f := encodeWKT(t, square, Options{MaxBytes: limit})
		if f.Status != StatusOmittedTooLarge || f.JSON != nil {
			t.Fatalf("limit %d: status %q, JSON %s", limit, f.Status, f.JSON)
		}
		if f.BBox != whole.BBox || !f.HasBBox || !f.HasPoint || f.Lon != whole.Lon || f.Lat != whole.Lat {
			t.Fatalf("limit %d: box %v, point %v %v", limit, f.BBox, f.Lon, f.Lat)
		}
		if len(f.json) > limit+100 {
			t.Fatalf("limit %d: wrote %d bytes", limit, len(f.json))
		}
	}
}

func TestMalformedBytesAreErrors(t *testing.T) {
	for _, row := range readLines[referenceRow](t, "testdata/geometries.jsonl") {
		if _, named := notPlain[row.ID]; named || row.EWKB == "" {
			continue
		}
		whole := unhex(t, row.EWKB)
		for n := range whole {
			expectMalformed(t, row.ID+" cut short", whole[:n])
		}
		expectMalformed(t, row.ID+" too long", append(whole, 0))
	}
	for name, s := range map[string]string{
		"unknown byte order":            "02010000000000000000000000000000000000000000",
		"type 0":                        "0100000000",
		"ISO type of Z":                 "01e9030000000000000000000000000000000000000000000000000000",
		"four billion positions":        "0102000000ffffffff",
		"four billion rings":            "0103000000ffffffff00000000",
		"four billion members":          "0106000000ffffffff010300000000000000",
		"ring of four billion":          "010300000001000000ffffffff",
		"line in a multi point":         "010400000001000000010200000000000000",
		"flat member of a Z multi":      "010200008000000000" + "00",
		"M member of a Z multi":         "01040000800100000001010000400000000000000000000000000000000000000000000000",
		"unknown order within a multi":  "0104000000010000000501000000",
		"unsupported, without a number": "0107000000",
	} {
		expectMalformed(t, name, unhex(t, s))
	}
}

func expectMalformed(t *testing.T, name string, b []byte) {
	t.Helper()
	f := Feature{JSON: []byte("old"), HasBBox: true, HasPoint: true}
	if err := Encode(&f, b, Options{}); !errors.Is(err, ErrMalformed) {
		t.Errorf("%s (%d bytes): error %v", name, len(b), err)
	}
	if f.Status != StatusUnsupported || f.JSON != nil || f.HasBBox || f.HasPoint {
		t.Errorf("%s: an earlier geometry shows through: %+v", name, f.Status)
	}
}

func TestOtherReferenceSystemsAreRefused(t *testing.T) {
	var f Feature
	p := geom.NewPointFlat(geom.XY, []float64{1, 2}).SetSRID(3857)
	err := Encode(&f, marshal(t, p, binary.LittleEndian), Options{})
	if err == nil || err.Error() != "encode geometry: SRID 3857: want 4326" {
		t.Errorf("error %v", err)
	}
}

func TestEncodeLeavesTheRowsOwnFactsAlone(t *testing.T) {
	f := Feature{Version: []byte("7"), Valid: true, HasValid: true, SourceSRID: 25833}
	if err := Encode(&f, fromWKT(t, "POINT(1 2)"), Options{}); err != nil {
		t.Fatal(err)
	}
	if string(f.Version) != "7" || !f.Valid || !f.HasValid || f.SourceSRID != 25833 {
		t.Errorf("%+v", f)
	}
	f.Reset()
	if f.Version != nil || f.HasValid || f.SourceSRID != 0 || f.JSON != nil || f.Status != "" || f.HasBBox || f.HasPoint {
		t.Errorf("after Reset: %+v", f)
	}
}

func TestOneHugeGeometryDoesNotStayInMemory(t *testing.T) {
	var f Feature
	if err := Encode(&f, marshal(t, circle(20_000), binary.LittleEndian), Options{}); err != nil {
		t.Fatal(err)
	}
	f.cross = make([]float64, 0, keepBytes)
	f.shape.lines = make([]int, 0, keepBytes)
	f.Reset()
	kept := cap(f.json) + 8*(cap(f.shape.coords)+cap(f.shape.lines)+cap(f.shape.parts)+cap(f.cross))
	if kept > 4*keepBytes {
		t.Errorf("Reset keeps %d bytes", kept)
	}
}

func TestEncodeAllocatesNothingOnceWarm(t *testing.T) {
	for _, o := range []Options{{}, {Point: Centroid}, {MaxBytes: 500}} {
		wkb := marshal(t, circle(65), binary.LittleEndian)
		var f Feature
		allocs := testing.AllocsPerRun(100, func() {
			f.Reset()
			if err := Encode(&f, wkb, o); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%+v: %v allocations", o, allocs)
		}
	}
}

// circle is a closed ring of n positions around Berlin.
func circle(n int) *geom.Polygon {
	flat := make([]float64, 0, 2*n)
	for i := range n - 1 {
		a := 2 * math.Pi * float64(i) / float64(n-1)
		flat = append(flat, 13.405+0.2*math.Cos(a), 52.525+0.2*math.Sin(a))
	}
	flat = append(flat, flat[0], flat[1])
	return geom.NewPolygonFlat(geom.XY, flat, []int{len(flat)}).SetSRID(4326)
}
