package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/geometry"
	"github.com/tidegate-cdc/tidegate/internal/lookup"
)

func TestOddRowsDoNotStopTheRowsAroundThem(t *testing.T) {
	f := newFixture(t, "id bigint PRIMARY KEY, version int, geom geometry")
	f.exec(`INSERT INTO features VALUES
		(1, 1, 'SRID=4326;POINT(13.405 52.525)'),
		(2, 1, NULL),
		(3, 1, 'SRID=4326;CIRCULARSTRING(13.40 52.52,13.405 52.525,13.41 52.52)'),
		(4, 1, 'SRID=4326;MULTIPOINT(EMPTY,(13.405 52.525))'),
		(5, 1, ST_SetSRID(ST_MakePoint('NaN', 1), 4326)),
		(6, 1, 'SRID=4326;POLYHEDRALSURFACE Z(((0 0 0,0 1 0,1 1 0,0 0 0)))'),
		(7, 1, 'SRID=4326;TIN(((0 0,0 1,1 1,0 0)))'),
		(8, 1, 'SRID=4326;GEOMETRYCOLLECTION(GEOMETRYCOLLECTION(POLYHEDRALSURFACE(((0 0,0 1,1 1,0 0)))))'),
		(9, 1, ST_SetSRID('POINT(1 1)'::geometry, 12345)),
		(10, 1, 'SRID=25833;POINT(1e9 1e9)'),
		(11, 1, 'SRID=4326;POINT EMPTY'),
		(12, 1, 'SRID=4326;POINT(13.405 52.525)')`)
	want := map[string]geometry.Status{
		"1": geometry.StatusOK, "2": geometry.StatusNull, "3": geometry.StatusOK, "4": geometry.StatusOK,
		"5": geometry.StatusInvalidCoordinates, "6": geometry.StatusUnsupported, "7": geometry.StatusUnsupported,
		"8": geometry.StatusUnsupported, "9": geometry.StatusUnsupported, "10": geometry.StatusInvalidCoordinates,
		"11": geometry.StatusEmpty, "12": geometry.StatusOK, "99": geometry.StatusMissing,
	}
	var rows []*lookup.Row
	for i := range 12 {
		rows = append(rows, f.row(fmt.Sprint(i+1), "1"))
	}
	rows = append(rows, f.row("99", "1"))
	f.batch(rows...)
	for _, r := range rows {
		if r.Feature.Status != want[string(r.ID)] {
			t.Errorf("feature %s: status %q, want %q", r.ID, r.Feature.Status, want[string(r.ID)])
		}
		if wantVersion := r.Feature.Status != geometry.StatusMissing; wantVersion != (string(r.Feature.Version) == "1") {
			t.Errorf("feature %s: version %q", r.ID, r.Feature.Version)
		}
	}
	for _, i := range []int{0, 11} {
		wantJSON(t, rows[i].Feature, `{"type":"Point","coordinates":[13.405,52.525]}`)
	}
	if got := string(rows[2].Feature.JSON); !strings.HasPrefix(got, `{"type":"LineString","coordinates":[[13.4,52.52],[13.400006,52.5202453],`) {
		t.Errorf("arc is not made of 32 segments a quadrant: %.90s", got)
	}
	if got := rows[8].Feature.SourceSRID; got != 12345 {
		t.Errorf("SRID %d of the geometry that cannot be transformed, want 12345", got)
	}
}

func TestGeometryIsTransformedFromItsOwnReferenceSystem(t *testing.T) {
	tests := []struct {
		name, value string
		assume      int
		status      geometry.Status
		lon, lat    float64
	}{
		{"web mercator", "SRID=3857;POINT(1492237.7744 6895699.7801)", 4326, geometry.StatusOK, 13.405, 52.5254657},
		{"UTM", "SRID=25833;POINT(391779.25 5820072.6)", 4326, geometry.StatusOK, 13.4050000, 52.5200},
		{"unknown, assumed degrees", "POINT(13.405 52.525)", 4326, geometry.StatusOK, 13.405, 52.525},
		{"unknown, assumed metres", "POINT(1492237.7744 6895699.7801)", 3857, geometry.StatusOK, 13.405, 52.5254657},
		{"unknown, nothing assumed", "POINT(13.405 52.525)", 0, geometry.StatusUnsupported, 0, 0},
		{"unknown, assumed wrongly", "POINT(1492237.7744 6895699.7801)", 4326, geometry.StatusInvalidCoordinates, 0, 0},
	}
	f := newFixture(t, "id int PRIMARY KEY, version int, geom geometry")
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f.exec("INSERT INTO features VALUES ($1, 1, $2)", i, tt.value)
			table := f.table
			table.AssumeSRID = tt.assume
			r := f.row(fmt.Sprint(i), "1")
			r.Table = &table
			f.batch(r)
			g := r.Feature
			if g.Status != tt.status || g.HasPoint != (tt.status == geometry.StatusOK) {
				t.Fatalf("status %q, point known: %v; want %q", g.Status, g.HasPoint, tt.status)
			}
			if math.Abs(g.Lon-tt.lon) > 1e-4 || math.Abs(g.Lat-tt.lat) > 1e-4 {
				t.Errorf("point %v %v, want %v %v", g.Lon, g.Lat, tt.lon, tt.lat)
			}
		})
	}
}

func TestHugeGeometryIsLeftOutWithBBoxAndCellKept(t *testing.T) {
	f := newFixture(t, "id int PRIMARY KEY, version int, geom geometry")
	const circle = `ST_Buffer('SRID=4326;POINT(13.405 52.525)'::geometry, 0.2, 12500)`
	f.exec(`INSERT INTO features VALUES
		(1, 7, ` + circle + `),
		(2, 7, ST_Transform(` + circle + `, 3857)),
		(3, 7, ST_AddPoint(ST_ExteriorRing(` + circle + `), ST_MakePoint('NaN', 1), 7)),
		(4, 7, ST_ShiftLongitude(ST_Translate(` + circle + `, 166.6, 0))),
		(5, 7, 'SRID=4326;POINT(13.405 52.525)')`)
	for _, limit := range []int{1 << 20, 512 << 10} { // found by the encoder: 800 kB that become 1.2 MB; by the server
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			table := f.table
			table.MaxBytes = limit
			var rows []*lookup.Row
			for i := range 5 {
				r := f.row(fmt.Sprint(i+1), "7")
				r.Table = &table
				rows = append(rows, r)
			}
			f.batch(rows...)
			for _, r := range rows[:2] {
				wantBigCircle(t, r.Feature)
			}
			if g := rows[2].Feature; g.Status != geometry.StatusInvalidCoordinates || g.HasPoint || g.HasBBox {
				t.Errorf("NaN inside: %q, point %v, bbox %v", g.Status, g.HasPoint, g.HasBBox)
			}
			if g := rows[3].Feature; g.JSON != nil || g.Status == geometry.StatusOK {
				t.Errorf("across the antimeridian: %q with %d bytes", g.Status, len(g.JSON))
			}
			wantJSON(t, rows[4].Feature, `{"type":"Point","coordinates":[13.405,52.525]}`)
		})
	}
}

func wantBigCircle(t *testing.T, g *geometry.Feature) {
	t.Helper()
	if g.Status != geometry.StatusOmittedTooLarge || g.JSON != nil || string(g.Version) != "7" {
		t.Errorf("status %q, %d bytes, version %q", g.Status, len(g.JSON), g.Version)
	}
	for i, want := range [4]float64{13.205, 52.325, 13.605, 52.725} {
		if !g.HasBBox || math.Abs(g.BBox[i]-want) > 1e-7 {
			t.Errorf("bbox %v, known: %v", g.BBox, g.HasBBox)
		}
	}
	if cell, ok := geometry.Cell(g.Lon, g.Lat, 8); !g.HasPoint || !ok || cell.String() != "881f1d4891fffff" {
		t.Errorf("cell %v of %v %v", cell, g.Lon, g.Lat)
	}
	if !g.Valid || !g.HasValid {
		t.Errorf("valid %v, known: %v", g.Valid, g.HasValid)
	}
}

func TestKeysOfAnyTypeFindTheirFeature(t *testing.T) {
	tests := []struct{ kind, key, bad string }{
		{"smallint", "12", "40000"},
		{"int", "-12", "1.5"},
		{"bigint", "9007199254740993", "9223372036854775808"},
		{"text", "ünï.* >'\"\\", "none"},
		{"varchar(20)", "a b", "none"},
		{"char(4)", "ab", "abc"},
		{"uuid", "0b0fd3a4-9e5c-4d0b-8a34-0b1de2b5a3f1", "0b0fd3a4"},
		{"numeric", "12.50", "x"},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			f := newFixture(t, "id "+tt.kind+" PRIMARY KEY, version int, geom geometry(Point, 4326)")
			f.exec("INSERT INTO features VALUES ($1::text::"+tt.kind+", 1, 'SRID=4326;POINT(2.35 48.85)')", tt.key)
			rows := []*lookup.Row{f.row(tt.key, "1"), f.row(tt.bad, "1"), f.row("a\x00b", "1"), f.row("\xff", "1"), f.row(tt.key, "1")}
			f.batch(rows...)
			for i, want := range []geometry.Status{"ok", "missing", "missing", "missing", "ok"} {
				if got := rows[i].Feature.Status; got != want {
					t.Errorf("key %q: status %q, want %q", rows[i].ID, got, want)
				}
			}
		})
	}
}

func TestFeatureOfAnotherVersionSaysSo(t *testing.T) {
	tests := []struct {
		kind, row, event string
		want             geometry.Status
	}{
		{"int", "10", "9", geometry.StatusNewer},
		{"int", "9", "10", geometry.StatusStale},
		{"int", "9", "9", geometry.StatusOK},
		{"timestamptz", "2026-11-30 22:53:39.123456+00", "2026-11-30 22:53:39.1+00", geometry.StatusNewer},
		{"timestamptz", "2026-11-30 22:53:39.123456+00", "2026-11-30 22:53:39.123456+00", geometry.StatusOK},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.row+" for "+tt.event, func(t *testing.T) {
			f := newFixture(t, "id int PRIMARY KEY, version "+tt.kind+", geom geometry")
			f.exec("INSERT INTO features VALUES (1, $1::text::"+tt.kind+", 'SRID=4326;POINT(2.35 48.85)'), (2, NULL, NULL)", tt.row)
			r, null := f.row("1", tt.event), f.row("2", tt.event)
			f.batch(r, null)
			if r.Feature.Status != tt.want || string(r.Feature.Version) != tt.row {
				t.Errorf("status %q, version %q; want %q, %q", r.Feature.Status, r.Feature.Version, tt.want, tt.row)
			}
			if null.Feature.Status != geometry.StatusNull || null.Feature.Version != nil {
				t.Errorf("without version: status %q, version %q", null.Feature.Status, null.Feature.Version)
			}
		})
	}
}

func TestGeographyAndInvalidityAreRead(t *testing.T) {
	f := newFixture(t, "id int PRIMARY KEY, version int, geom geography")
	f.exec(`INSERT INTO features VALUES (1, 1, 'POLYGON((-60 50,60 50,60 55,-60 55,-60 50))'),
		(2, 1, 'POLYGON((13.40 52.52,13.50 52.62,13.50 52.52,13.40 52.62,13.40 52.52))')`)
	rows := []*lookup.Row{f.row("1", "1"), f.row("2", "1")}
	f.batch(rows...)
	wantJSON(t, rows[0].Feature, `{"type":"Polygon","coordinates":[[[-60,50],[60,50],[60,55],[-60,55],[-60,50]]]}`)
	if g := rows[0].Feature; !g.Valid || !g.HasValid || g.SourceSRID != 4326 {
		t.Errorf("plain polygon: valid %v, known %v, SRID %d", g.Valid, g.HasValid, g.SourceSRID)
	}
	if g := rows[1].Feature; g.Status != geometry.StatusOK || g.Valid || !g.HasValid {
		t.Errorf("bow tie: %q, valid %v, known %v", g.Status, g.Valid, g.HasValid)
	}
}

func TestTablesOfOneBatchAreAskedEach(t *testing.T) {
	f := newFixture(t, "id int PRIMARY KEY, version int, geom geometry")
	f.exec(`CREATE SCHEMA "Odd ""schema"`)
	f.exec(`CREATE TABLE "Odd ""schema"."my table" ("Key" text, "Shape" geometry)`)
	f.exec(`INSERT INTO "Odd ""schema"."my table" VALUES ('a', 'SRID=4326;POINT(1 1)')`)
	f.exec("INSERT INTO features VALUES (1, 1, 'SRID=4326;POINT(2 2)')")
	odd := lookup.Table{Table: `Odd "schema.my table`, ID: "Key", Geom: "Shape", AssumeSRID: 4326}
	rows := []*lookup.Row{f.row("1", "1"), f.row("a", "3"), f.row("1", "1"), f.row("a", "3")}
	rows[1].Table, rows[3].Table = &odd, &odd
	f.batch(rows...)
	for i, want := range []string{"[2,2]", "[1,1]", "[2,2]", "[1,1]"} {
		wantJSON(t, rows[i].Feature, `{"type":"Point","coordinates":`+want+`}`)
		if rows[i].Feature.Status != geometry.StatusOK {
			t.Errorf("row %d: status %q", i, rows[i].Feature.Status)
		}
	}
}

func TestCancelledBatchEnds(t *testing.T) {
	f := newFixture(t, "id int PRIMARY KEY, version int, geom geometry")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.lookup.Batch(ctx, []*lookup.Row{f.row("1", "1")}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	f.batch(f.row("1", "1")) // and the next one works
}
