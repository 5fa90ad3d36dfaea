package event_test

import (
	"os"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// Type OIDs as in pg_type.
const (
	bytea       = 17
	bigint      = 20
	integer     = 23
	text        = 25
	json        = 114
	xml         = 142
	float4      = 700
	float8      = 701
	varchar     = 1043
	date        = 1082
	timestamp   = 1114
	timestamptz = 1184
	numeric     = 1700
	uuid        = 2950
	jsonb       = 3802
	enumeration = 16999
)

var null = decoder.Value{Kind: decoder.ValueNull}

// row gives a tuple of texts; null stands for itself.
func row(values ...any) decoder.Tuple {
	t := make(decoder.Tuple, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case string:
			t[i] = decoder.Value{Kind: decoder.ValueText, Data: []byte(v)}
		case decoder.Value:
			t[i] = v
		}
	}
	return t
}

// outbox gives the binding of a table of the default names whose payload has the given type, and a good row of it.
func outbox(t testing.TB, payload uint32) (*event.Binding, decoder.Tuple) {
	t.Helper()
	table := &event.Table{Name: "public.outbox", Kind: event.KindEvent}
	b, err := table.BindColumns([]event.Column{
		{Name: "id", TypeOID: uuid},
		{Name: "aggregate_type", TypeOID: text},
		{Name: "aggregate_id", TypeOID: varchar},
		{Name: "event_type", TypeOID: text},
		{Name: "payload", TypeOID: payload},
		{Name: "created_at", TypeOID: timestamptz},
		{Name: "not_mapped", TypeOID: text},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, row("id-1", "order", "o-1", "Placed", "{}", "2026-11-30 22:53:39.123456+00", "x")
}

// features gives the binding of a feature outbox of the default names, and a good row of it.
func features(t testing.TB) (*event.Binding, decoder.Tuple) {
	t.Helper()
	table := &event.Table{Name: "public.feature_outbox", Kind: event.KindFeature, Collection: "parcels"}
	b, err := table.BindColumns([]event.Column{
		{Name: "id", TypeOID: bigint},
		{Name: "feature_id", TypeOID: bigint},
		{Name: "feature_version", TypeOID: integer},
		{Name: "event_type", TypeOID: text},
		{Name: "routing_key", TypeOID: text},
		{Name: "schema_version", TypeOID: integer},
		{Name: "created_at", TypeOID: timestamptz},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, row("1", "77", "3", "moved", "881f1d4891fffff", "2", "2026-11-30 00:00:00+00")
}

// recorded gives the messages of the real session that package decoder keeps.
func recorded(t testing.TB) [][]byte {
	t.Helper()
	file, err := os.ReadFile("../decoder/testdata/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	return testkit.SessionMessages(t, string(file))
}
