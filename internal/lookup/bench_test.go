package lookup_test

import (
	"fmt"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/lookup"
)

func BenchmarkBatchOf200(b *testing.B) {
	for _, vertices := range []int{1, 65, 1025} {
		b.Run(fmt.Sprintf("%d_vertices", vertices), func(b *testing.B) {
			f := newFixture(b, "id bigint PRIMARY KEY, version int, geom geometry(Geometry, 4326)")
			shape := "ST_SetSRID(ST_MakePoint(13 + i / 1e5, 52), 4326)"
			if vertices > 1 {
				shape = fmt.Sprintf("ST_Buffer(%s, 0.01, %d)", shape, vertices/4)
			}
			f.exec("INSERT INTO features SELECT i, 1, " + shape + " FROM generate_series(1, 2000) AS i")
			f.exec("ANALYZE features")
			var rows []*lookup.Row
			for i := range 200 {
				rows = append(rows, f.row(fmt.Sprint(i*7+1), "1"))
			}
			f.batch(rows...)
			b.ReportAllocs()
			for b.Loop() {
				f.batch(rows...)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(200*b.N), "ns/row")
		})
	}
}
