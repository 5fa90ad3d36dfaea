package event_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
)

func TestPoisonRowNamesTableColumnAndID(t *testing.T) {
	unchanged := decoder.Value{Kind: decoder.ValueUnchanged}
	binary := decoder.Value{Kind: decoder.ValueBinary, Data: []byte{1}}
	value := func(s string) decoder.Value { return row(s)[0] }
	for _, tt := range []struct {
		bind  func(testing.TB) (*event.Binding, decoder.Tuple)
		at    int
		value decoder.Value
		want  string
	}{
		{jsonOutbox, 0, null, "publish row of public.outbox: column id: must not be null"},
		{jsonOutbox, 1, null, "publish row id-1 of public.outbox: column aggregate_type: must not be null"},
		{jsonOutbox, 2, null, "publish row id-1 of public.outbox: column aggregate_id: must not be null"},
		{jsonOutbox, 3, null, "publish row id-1 of public.outbox: column event_type: must not be null"},
		{jsonOutbox, 4, unchanged, "publish row id-1 of public.outbox: column payload: the server did not send the value (unchanged TOAST)"},
		{jsonOutbox, 5, unchanged, "publish row id-1 of public.outbox: column created_at: the server did not send the value (unchanged TOAST)"},
		{jsonOutbox, 4, binary, "publish row id-1 of public.outbox: column payload: the value is not text"},
		{jsonOutbox, 5, value("infinity"), "publish row id-1 of public.outbox: column created_at: not a point in time in ISO style"},
		{byteaOutbox, 4, value(`\x0`), "publish row id-1 of public.outbox: column payload: not the text of a bytea"},
		{features, 0, null, "publish row of public.feature_outbox: column id: must not be null"},
		{features, 1, null, "publish row 1 of public.feature_outbox: column feature_id: must not be null"},
		{features, 2, null, "publish row 1 of public.feature_outbox: column feature_version: must not be null"},
		{features, 3, null, "publish row 1 of public.feature_outbox: column event_type: must not be null"},
	} {
		b, r := tt.bind(t)
		r[tt.at] = tt.value
		var ev event.Event
		err := b.Fill(&ev, r)
		var poison *event.PoisonError
		if !errors.As(err, &poison) || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
			continue
		}
		if poison.ID != string(ev.ID) || ev.Table == nil || ev.Table.Name != poison.Table {
			t.Errorf("%s: event of %v with id %q", tt.want, ev.Table, ev.ID)
		}
		if poison.Column != "aggregate_id" && poison.Column != "feature_id" && len(ev.AggregateID) == 0 {
			t.Errorf("%s: the aggregate is not known", tt.want)
		}
	}
}

func jsonOutbox(t testing.TB) (*event.Binding, decoder.Tuple)  { return outbox(t, jsonb) }
func byteaOutbox(t testing.TB) (*event.Binding, decoder.Tuple) { return outbox(t, bytea) }

func TestRowOfAnotherWidthIsPoison(t *testing.T) {
	b, r := outbox(t, jsonb)
	var poison *event.PoisonError
	for _, r := range []decoder.Tuple{nil, r[:3], append(r, null)} {
		if err := b.Fill(new(event.Event), r); !errors.As(err, &poison) {
			t.Errorf("row of %d columns: %v", len(r), err)
		}
	}
}

func TestNullAndEmptyAreToldApart(t *testing.T) {
	b, r := outbox(t, bytea)
	var ev event.Event
	r[2], r[4], r[5] = row("")[0], row(`\x`)[0], null
	if err := b.Fill(&ev, r); err != nil {
		t.Fatal(err)
	}
	if ev.AggregateID == nil || ev.Payload == nil || len(ev.Payload) != 0 || ev.PayloadNull || !ev.CreatedAt.IsZero() {
		t.Errorf("empty values: %+v", ev)
	}
	r[4] = null
	if err := b.Fill(&ev, r); err != nil {
		t.Fatal(err)
	}
	if ev.Payload != nil || !ev.PayloadNull || ev.Version != nil || ev.Headers != nil {
		t.Errorf("null values: %+v", ev)
	}
}

func TestEmptyValuesOfAnUnusedEventAreNotNull(t *testing.T) {
	b, _ := outbox(t, text)
	var ev event.Event
	if err := b.Fill(&ev, row("", "", "", "", "", null, null)); err != nil {
		t.Fatal(err)
	}
	if ev.ID == nil || ev.AggregateType == nil || ev.EventType == nil || ev.Payload == nil {
		t.Errorf("an empty value became nil: %+v", ev)
	}
}

func TestFillLeavesTheRowsPlaceToItsCaller(t *testing.T) {
	b, r := outbox(t, jsonb)
	ev := event.Event{
		Position: event.Position{Commit: 7}, CommittedAt: time.Unix(1, 0), XID: 9, Late: "replay",
		Headers: []byte("of the row before"), RoutingKey: []byte("of the row before"), PayloadNull: true,
	}
	if err := b.Fill(&ev, r); err != nil {
		t.Fatal(err)
	}
	if ev.Position.Commit != 7 || !ev.CommittedAt.Equal(time.Unix(1, 0)) || ev.XID != 9 || ev.Late != "replay" {
		t.Errorf("changed: %+v", ev)
	}
	if ev.Headers != nil || ev.RoutingKey != nil || ev.PayloadNull {
		t.Errorf("left of the row before: %+v", ev)
	}
}

func TestOptionalColumnsAreFilledWhenMapped(t *testing.T) {
	cols := event.DefaultColumns(event.KindEvent)
	cols.Version, cols.Headers, cols.Traceparent = "v", "h", "tp"
	table := &event.Table{Name: "public.outbox", Kind: event.KindEvent, Columns: cols}
	b, err := table.BindColumns(append(columns(event.KindEvent, nil),
		event.Column{Name: "v", TypeOID: bigint}, event.Column{Name: "h", TypeOID: jsonb}, event.Column{Name: "tp", TypeOID: text}))
	if err != nil {
		t.Fatal(err)
	}
	var ev event.Event
	if err := b.Fill(&ev, row("1", "order", "o-1", "Placed", "{}", null, "12", `{"a": "b"}`, "00-ab-cd-01")); err != nil {
		t.Fatal(err)
	}
	if string(ev.Version) != "12" || string(ev.Headers) != `{"a": "b"}` || string(ev.Traceparent) != "00-ab-cd-01" {
		t.Errorf("got %q %q %q", ev.Version, ev.Headers, ev.Traceparent)
	}
}

func TestEventOutlivesTheRowItCameFrom(t *testing.T) {
	b, r := outbox(t, bytea)
	r[4] = row(`\x616263`)[0]
	var ev event.Event
	if err := b.Fill(&ev, r); err != nil {
		t.Fatal(err)
	}
	before := describe(&ev)
	for _, v := range r {
		clear(v.Data)
	}
	if after := describe(&ev); after != before || after.payload != "abc" {
		t.Errorf("got %+v, want %+v", after, before)
	}
	_ = append(ev.ID, "XXXXXXXX"...)
	if after := describe(&ev); after != before {
		t.Errorf("appending to one value changed another: %+v", after)
	}
}

func TestSameRowBySQLGivesTheSameEvent(t *testing.T) {
	table := &event.Table{Name: "public.outbox", Kind: event.KindEvent}
	cols := columns(event.KindEvent, nil)
	relation := &decoder.Relation{}
	for _, c := range cols {
		relation.Columns = append(relation.Columns, decoder.Column{Name: c.Name, TypeOID: c.TypeOID})
	}
	stream, err := table.Bind(relation)
	if err != nil {
		t.Fatal(err)
	}
	sql, err := table.BindColumns(cols)
	if err != nil {
		t.Fatal(err)
	}
	r := row("1", "order", "o-1", "Placed", "{}", "2026-11-30 22:53:39.123456+00")
	var a, b event.Event
	if err := errors.Join(stream.Fill(&a, r), sql.Fill(&b, r)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("by stream %+v\nby SQL %+v", a, b)
	}
}

func TestFillAllocatesNothingInSteadyState(t *testing.T) {
	for name, bind := range map[string]func(testing.TB) (*event.Binding, decoder.Tuple){
		"jsonb": jsonOutbox, "feature": features,
		"bytea": func(t testing.TB) (*event.Binding, decoder.Tuple) {
			b, r := byteaOutbox(t)
			r[4] = row(`\x` + strings.Repeat("ab", 5000))[0]
			return b, r
		},
	} {
		b, r := bind(t)
		var ev event.Event
		allocs := testing.AllocsPerRun(100, func() {
			if err := b.Fill(&ev, r); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations, want none", name, allocs)
		}
	}
}

func TestMemoryOfALargeRowIsGivenBack(t *testing.T) {
	const large = 8 << 20
	b, small := outbox(t, text)
	huge := append(decoder.Tuple(nil), small...)
	huge[4] = row(strings.Repeat("x", large))[0]
	var ev event.Event
	if err := b.Fill(&ev, huge); err != nil {
		t.Fatal(err)
	}
	if got := ev.Size(); got < large || got > large+4096 {
		t.Errorf("holds %d bytes for a row of %d", got, large)
	}
	if err := b.Fill(&ev, small); err != nil {
		t.Fatal(err)
	}
	if got := ev.Size(); got > 64<<10 {
		t.Errorf("still holds %d bytes for a small row", got)
	}
}

func BenchmarkFill(b *testing.B) {
	binding, r := outbox(b, jsonb)
	r[4] = row(`{"note": "` + strings.Repeat("x", 300) + `"}`)[0]
	var ev event.Event
	b.ReportAllocs()
	for b.Loop() {
		if err := binding.Fill(&ev, r); err != nil {
			b.Fatal(err)
		}
	}
}
