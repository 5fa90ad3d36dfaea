package lookup_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"testing"

	"github.com/tidegate-cdc/tidegate/geometry"
	"github.com/tidegate-cdc/tidegate/internal/lookup"
)

// reference is a case of the shared geometry values.
type reference struct {
	ID         string
	EWKT       *string
	SQL        *string `json:"sql_expr"`
	ColumnType string  `json:"column_type"`
	Expect     struct {
		Geometry any
		BBox     []float64
		Valid    *bool
		Cell     *string `json:"cell_point_on_surface"`
		AnyRing  bool    `json:"accept_any_ring_order"`
	}
}

// TestReferenceGeometriesComeOutOfPostGISAsTheyShould stores each value, reads it back and accepts only the expected
// answer or an honest "unsupported".
func TestReferenceGeometriesComeOutOfPostGISAsTheyShould(t *testing.T) {
	f := newFixture(t, "id text PRIMARY KEY, version int, geom geometry, geog geography")
	geography := f.table
	geography.Geom = "geog"
	cases := readReference(t)
	var rows []*lookup.Row
	for _, c := range cases {
		column, value := "geom", "NULL"
		if c.ColumnType == "geography" {
			column = "geog"
		}
		if c.SQL != nil {
			value = *c.SQL
		} else if c.EWKT != nil {
			value = "'" + *c.EWKT + "'"
		}
		f.exec("INSERT INTO features (id, version, "+column+") VALUES ($1, 1, "+value+")", c.ID)
		row := f.row(c.ID, "1")
		if column == "geog" {
			row.Table = &geography
		}
		rows = append(rows, row)
	}
	f.batch(rows...)
	unsupported := 0
	for i, c := range cases {
		if rows[i].Feature.Status == geometry.StatusUnsupported {
			unsupported++
			continue
		}
		t.Run(c.ID, func(t *testing.T) { wantReference(t, c, rows[i].Feature) })
	}
	t.Logf("%d of %d unsupported", unsupported, len(cases))
	if unsupported > len(cases)/3 {
		t.Errorf("%d of %d unsupported", unsupported, len(cases))
	}
}

func wantReference(t *testing.T, c reference, g *geometry.Feature) {
	want := c.Expect
	var got any
	if g.JSON != nil {
		if err := json.Unmarshal(g.JSON, &got); err != nil {
			t.Fatalf("%v in %s", err, g.JSON)
		}
	}
	if g.Status == geometry.StatusEmpty {
		want.Geometry = nil
	}
	if !want.AnyRing && !reflect.DeepEqual(got, want.Geometry) {
		t.Errorf("geometry %s, want %v", g.JSON, want.Geometry)
	}
	if g.HasBBox != (want.BBox != nil) {
		t.Errorf("bbox known: %v, want %v", g.HasBBox, want.BBox)
	}
	for i := range want.BBox {
		if math.Abs(g.BBox[i]-want.BBox[i]) > 1e-7 {
			t.Errorf("bbox %v, want %v", g.BBox, want.BBox)
		}
	}
	cell, ok := geometry.Cell(g.Lon, g.Lat, 8)
	if ok = ok && g.HasPoint; ok != (want.Cell != nil) || (ok && cell.String() != *want.Cell) {
		t.Errorf("cell %v (%v), want %v", cell, ok, want.Cell)
	}
	if g.HasValid && want.Valid != nil && g.Valid != *want.Valid {
		t.Errorf("valid %v, want %v", g.Valid, *want.Valid)
	}
}

func readReference(t *testing.T) (cases []reference) {
	t.Helper()
	file, err := os.Open("../../geometry/testdata/geometries.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c reference
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	return cases
}
