package event_test

import (
	"errors"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
)

// columns gives the default columns of kind k with good types, changed by name: a zero type takes the column away.
func columns(k event.Kind, change map[string]uint32) []event.Column {
	types := map[string]uint32{"payload": jsonb, "created_at": timestamptz}
	names := []string{"id", "aggregate_type", "aggregate_id", "event_type", "payload", "created_at"}
	if k == event.KindFeature {
		names = []string{"id", "feature_id", "feature_version", "event_type", "routing_key", "schema_version", "created_at"}
	}
	var cols []event.Column
	for _, name := range names {
		oid := uint32(text)
		if t, ok := types[name]; ok {
			oid = t
		}
		if t, ok := change[name]; ok {
			oid = t
		}
		if oid != 0 {
			cols = append(cols, event.Column{Name: name, TypeOID: oid})
		}
	}
	return cols
}

func TestTableThatCannotServeIsRefused(t *testing.T) {
	headers := event.DefaultColumns(event.KindEvent)
	headers.Headers = "payload"
	noPayload := event.DefaultColumns(event.KindEvent)
	noPayload.Payload = ""
	for _, tt := range []struct {
		kind    event.Kind
		columns event.Columns
		change  map[string]uint32
		want    string
	}{
		{event.KindEvent, event.Columns{}, map[string]uint32{"event_type": 0}, "bind table public.t: column event_type: missing: add it, or name another as columns.event_type"},
		{event.KindEvent, event.Columns{}, map[string]uint32{"created_at": 0}, "bind table public.t: column created_at: missing: add it, or name another as columns.created_at"},
		{event.KindFeature, event.Columns{}, map[string]uint32{"feature_version": 0}, "bind table public.t: column feature_version: missing: add it, or name another as columns.feature_version"},
		{event.KindEvent, noPayload, nil, "bind table public.t: no column for payload: name one as columns.payload"},
		{event.KindEvent, event.Columns{}, map[string]uint32{"id": bytea}, "bind table public.t: column id: type bytea cannot be used as id"},
		{event.KindEvent, event.Columns{}, map[string]uint32{"aggregate_type": xml}, "bind table public.t: column aggregate_type: type xml cannot be used as aggregate_type"},
		{event.KindEvent, event.Columns{}, map[string]uint32{"aggregate_id": json}, "bind table public.t: column aggregate_id: type json cannot be used as aggregate_id"},
		{event.KindEvent, event.Columns{}, map[string]uint32{"created_at": date}, "bind table public.t: column created_at: a type other than timestamptz or timestamp cannot be used as created_at"},
		{event.KindFeature, event.Columns{}, map[string]uint32{"feature_id": float8}, "bind table public.t: column feature_id: a floating-point type cannot be used as feature_id"},
		{event.KindFeature, event.Columns{}, map[string]uint32{"feature_id": float4}, "bind table public.t: column feature_id: a floating-point type cannot be used as feature_id"},
		{event.KindEvent, headers, map[string]uint32{"payload": bigint}, "bind table public.t: column payload: a type other than jsonb, json or text cannot be used as headers"},
	} {
		table := &event.Table{Name: "public.t", Kind: tt.kind, Columns: tt.columns}
		_, err := table.BindColumns(columns(tt.kind, tt.change))
		var schema *event.SchemaError
		if !errors.As(err, &schema) || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}

func TestUsableTypesAreAccepted(t *testing.T) {
	cols := event.DefaultColumns(event.KindEvent)
	cols.Headers, cols.Traceparent, cols.Version = "payload", "event_type", "id"
	for _, change := range []map[string]uint32{
		{"id": uuid},
		{"id": bigint},
		{"id": numeric},
		{"id": varchar},
		{"event_type": enumeration},
		{"created_at": timestamp},
		{"created_at": enumeration},
		{"payload": json},
		{"payload": text},
		{"payload": enumeration},
	} {
		table := &event.Table{Name: "public.t", Kind: event.KindEvent, Columns: cols}
		if _, err := table.BindColumns(columns(event.KindEvent, change)); err != nil {
			t.Errorf("%v: %v", change, err)
		}
	}
}

func TestContentTypeFollowsThePayloadColumn(t *testing.T) {
	for oid, want := range map[uint32]string{
		json: "application/json", jsonb: "application/json", bytea: "application/octet-stream",
		text: "text/plain; charset=utf-8", varchar: "text/plain; charset=utf-8", enumeration: "text/plain; charset=utf-8",
	} {
		b, row := outbox(t, oid)
		row[4] = null
		var ev event.Event
		if err := b.Fill(&ev, row); err != nil {
			t.Fatal(err)
		}
		if b.ContentType() != want || ev.ContentType != want {
			t.Errorf("type %d: %q and %q, want %q", oid, b.ContentType(), ev.ContentType, want)
		}
	}
	if b, _ := features(t); b.ContentType() != "" {
		t.Errorf("kind feature: %q", b.ContentType())
	}
}

// A domain's own OID says nothing; the stream names the type beneath.
func TestDomainCountsAsTheTypeBeneath(t *testing.T) {
	bind := func(column, base string) (*event.Binding, error) {
		rel := &decoder.Relation{}
		for _, c := range columns(event.KindEvent, nil) {
			col := decoder.Column{Name: c.Name, TypeOID: c.TypeOID}
			if c.Name == column {
				col.TypeOID, col.BaseType = 70_000, base
			}
			rel.Columns = append(rel.Columns, col)
		}
		names := event.DefaultColumns(event.KindEvent)
		if column == "payload" {
			return (&event.Table{Name: "public.t", Kind: event.KindEvent, Columns: names}).Bind(rel)
		}
		names.Headers = "payload"
		return (&event.Table{Name: "public.t", Kind: event.KindEvent, Columns: names}).Bind(rel)
	}
	for base, want := range map[string]string{
		"bytea": "application/octet-stream", "json": "application/json", "jsonb": "application/json",
		"text": "text/plain; charset=utf-8", "varchar": "text/plain; charset=utf-8", "bpchar": "text/plain; charset=utf-8",
		"xml": "text/plain; charset=utf-8", "int4": "text/plain; charset=utf-8",
	} {
		b, err := bind("payload", base)
		if err != nil || b.ContentType() != want {
			t.Errorf("payload over %s: %v, %v", base, b, err)
		}
	}
	for base, good := range map[string]bool{"timestamptz": true, "timestamp": true, "int8": false, "text": false} {
		if _, err := bind("created_at", base); (err == nil) != good {
			t.Errorf("created_at over %s: %v", base, err)
		}
	}
	for base, good := range map[string]bool{"uuid": true, "int8": true, "float4": false, "float8": false, "bytea": false, "": true} {
		if _, err := bind("id", base); (err == nil) != good {
			t.Errorf("id over %s: %v", base, err)
		}
	}
}

func TestDebeziumsNamesAreRecognisedOnlyWhereOursAreNotThere(t *testing.T) {
	both := append(columns(event.KindEvent, nil),
		event.Column{Name: "aggregatetype", TypeOID: text}, event.Column{Name: "aggregateid", TypeOID: text},
		event.Column{Name: "type", TypeOID: text})
	table := &event.Table{Name: "public.t", Kind: event.KindEvent}
	b, err := table.BindColumns(both)
	if err != nil {
		t.Fatal(err)
	}
	var ev event.Event
	r := row("1", "ours", "ours", "ours", "{}", "2026-01-01 00:00:00+00", "theirs", "theirs", "theirs")
	if err := b.Fill(&ev, r); err != nil || string(ev.AggregateType) != "ours" {
		t.Errorf("got %q, %v", ev.AggregateType, err)
	}

	explicit := &event.Table{Name: "public.t", Kind: event.KindEvent, Columns: event.DefaultColumns(event.KindEvent)}
	if _, err := explicit.BindColumns(both[6:]); err == nil {
		t.Error("names that were given were not used")
	}
}

func TestKindIsNamedAsInTheConfiguration(t *testing.T) {
	for kind, want := range map[event.Kind]string{event.KindEvent: "event", event.KindFeature: "feature", 0: "unknown"} {
		if got := kind.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
