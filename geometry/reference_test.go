package geometry

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The reference rows: geometries as PostGIS 3.3 stores them, with what must be published for them.
type referenceRow struct {
	ID     string `json:"id"`
	EWKB   string `json:"ewkb_4326"`
	Expect struct {
		Geometry     json.RawMessage `json:"geometry"`
		BBox         []float64       `json:"bbox"`
		Surface      []float64       `json:"point_on_surface"`
		SurfaceCell  string          `json:"cell_point_on_surface"`
		Centroid     []float64       `json:"centroid"`
		CentroidCell string          `json:"cell_centroid"`
		Tokens       string          `json:"subject_tokens_r8"`
		AnyRingOrder bool            `json:"accept_any_ring_order"`
	} `json:"expect"`
}

// notPlain are the reference rows that this version names instead of encoding them.
var notPlain = map[string]Status{
	"g12_circularstring":     StatusUnsupported,
	"g13_curvepolygon":       StatusUnsupported,
	"g15_polyhedral":         StatusUnsupported,
	"g17_gc_mixed":           StatusUnsupported,
	"g19_point_empty":        StatusEmpty,
	"g20_gc_empty":           StatusEmpty,
	"g27_antimeridian_wrap":  StatusUnsupported,
	"g29_antimeridian_split": StatusUnsupported,
	"g33_nan":                StatusInvalidCoordinates,
	"g34_lat_out_of_range":   StatusInvalidCoordinates,
	"g41_south_pole_cap":     StatusUnsupported,
}

func readLines[T any](t testing.TB, path string) []T {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	for line := range bytes.Lines(raw) {
		var row T
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		rows = append(rows, row)
	}
	return rows
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func compact(t testing.TB, raw []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReferenceGeometriesArePublishedAsAgreed(t *testing.T) {
	encoded := 0
	for _, row := range readLines[referenceRow](t, "testdata/geometries.jsonl") {
		if row.EWKB == "" { // NULL: nothing to encode
			continue
		}
		t.Run(row.ID, func(t *testing.T) {
			var f Feature
			if err := Encode(&f, unhex(t, row.EWKB), Options{}); err != nil {
				t.Fatal(err)
			}
			if want, named := notPlain[row.ID]; named {
				checkNamedOnly(t, &f, want)
				return
			}
			encoded++
			checkReference(t, &f, row)
			checkPoint(t, &f, row.Expect.Surface, row.Expect.SurfaceCell)
			if got := tokens(t, &f); got != row.Expect.Tokens {
				t.Errorf("tokens %s, want %s", got, row.Expect.Tokens)
			}
			if err := Encode(&f, unhex(t, row.EWKB), Options{Point: Centroid}); err != nil {
				t.Fatal(err)
			}
			checkPoint(t, &f, row.Expect.Centroid, row.Expect.CentroidCell)
		})
	}
	if encoded < 15 {
		t.Errorf("only %d reference rows were encoded", encoded)
	}
}

func checkNamedOnly(t *testing.T, f *Feature, want Status) {
	t.Helper()
	if f.Status != want || f.JSON != nil || f.HasBBox || f.HasPoint {
		t.Errorf("status %q, JSON %s, box %v, point %v; want status %q and nothing else",
			f.Status, f.JSON, f.HasBBox, f.HasPoint, want)
	}
	if got := tokens(t, f); got != "x.x.x.x.x.x.x.x.x" {
		t.Errorf("tokens %s without a point", got)
	}
}

func checkReference(t *testing.T, f *Feature, row referenceRow) {
	t.Helper()
	if f.Status != StatusOK {
		t.Fatalf("status %q", f.Status)
	}
	if got, want := string(f.JSON), compact(t, row.Expect.Geometry); got != want && !row.Expect.AnyRingOrder {
		t.Errorf("geometry\n got %s\nwant %s", got, want)
	}
	if !json.Valid(f.JSON) {
		t.Errorf("not JSON: %s", f.JSON)
	}
	var box []byte
	for i, v := range f.BBox {
		box = append(AppendNumber(box, v), ",\n"[i/3])
	}
	var want []byte
	for i, v := range row.Expect.BBox {
		want = append(strconv.AppendFloat(want, v, 'f', -1, 64), ",\n"[i/3])
	}
	if !f.HasBBox || !bytes.Equal(box, want) {
		t.Errorf("box %s, want %s", box, want)
	}
}

func checkPoint(t *testing.T, f *Feature, want []float64, cell string) {
	t.Helper()
	if !f.HasPoint || math.Abs(f.Lon-want[0]) > 1e-9 || math.Abs(f.Lat-want[1]) > 1e-9 {
		t.Errorf("point %v %v, want %v", f.Lon, f.Lat, want)
	}
	c, ok := Cell(f.Lon, f.Lat, 8)
	if got := string(AppendCell(nil, uint64(c))); !ok || got != cell {
		t.Errorf("cell %s, want %s", got, cell)
	}
}

func tokens(t *testing.T, f *Feature) string {
	t.Helper()
	if !f.HasPoint {
		return string(AppendCellTokens(nil, 0, 8))
	}
	c, ok := Cell(f.Lon, f.Lat, 8)
	if !ok {
		t.Fatalf("no cell at %v %v", f.Lon, f.Lat)
	}
	return string(AppendCellTokens(nil, uint64(c), 8))
}

// The file holds what PostGIS 3.3.2 (GEOS 3.11.1) answered: EWKB, then the bits of ST_PointOnSurface and ST_Centroid.
func TestRoutingPointsHaveTheBitsOfPostGIS(t *testing.T) {
	file, err := os.Open("testdata/postgis_points.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	rows := 0
	for ; lines.Scan(); rows++ {
		field := strings.Split(lines.Text(), ",")
		wkb := unhex(t, field[0])
		var surface, centroid Feature
		if err := Encode(&surface, wkb, Options{}); err != nil {
			t.Fatal(err)
		}
		if err := Encode(&centroid, wkb, Options{Point: Centroid}); err != nil {
			t.Fatal(err)
		}
		if got := bits(surface.Lon) + bits(surface.Lat); got != field[1]+field[2] {
			t.Errorf("row %d: point on surface %v %v has other bits than PostGIS'", rows, surface.Lon, surface.Lat)
		}
		if got := bits(centroid.Lon) + bits(centroid.Lat); got != field[3]+field[4] {
			t.Errorf("row %d: centroid %v %v has other bits than PostGIS'", rows, centroid.Lon, centroid.Lat)
		}
	}
	if lines.Err() != nil || rows < 100 {
		t.Errorf("read %d rows: %v", rows, lines.Err())
	}
}

func bits(v float64) string {
	s := strconv.FormatUint(math.Float64bits(v), 16)
	return strings.Repeat("0", 16-len(s)) + s
}
