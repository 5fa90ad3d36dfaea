package event

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// A row that waits outside memory must come out of it as the event that it was.
func TestRowOfAnEventMakesTheSameEventAgain(t *testing.T) {
	columns := []Column{
		{"id", oidText},
		{"noise", 23},
		{"aggregate_type", oidText},
		{"aggregate_id", oidText},
		{"event_type", oidText},
		{"payload", oidText},
		{"created_at", oidTimestamptz},
		{"version", 20},
		{"headers", oidJSONB},
		{"traceparent", oidText},
	}
	texts := rapid.SampledFrom([]string{"", "x", "é\n\x01", `{"a": 1.000}`, `\x`, "4711"})
	rapid.Check(t, func(t *rapid.T) {
		columns[5].TypeOID = rapid.SampledFrom([]uint32{oidText, oidJSONB, oidJSON, oidBytea}).Draw(t, "payload type")
		names := DefaultColumns(KindEvent)
		names.Version, names.Headers, names.Traceparent = "version", "headers", rapid.SampledFrom([]string{"traceparent", "id", ""}).Draw(t, "traceparent")
		table := &Table{Name: "public.outbox", Kind: KindEvent, Columns: names}
		row := make(decoder.Tuple, len(columns))
		for i, c := range columns {
			text := texts.Draw(t, c.Name)
			switch {
			case c.Name == "created_at":
				text = rapid.SampledFrom([]string{
					"2026-11-30 22:53:39.123456+00", "2026-11-30 22:53:39+05:30", "0044-03-15 12:00:00+00 BC", "12026-01-01 00:00:00.5+00",
				}).Draw(t, "at")
			case c.TypeOID == oidBytea:
				text = rapid.SampledFrom([]string{`\x`, `\x00ff7a`, `a\\b\001`}).Draw(t, "bytes")
			}
			row[i] = decoder.Value{Kind: decoder.ValueText, Data: []byte(text)}
			if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
				row[i] = decoder.Value{Kind: decoder.ValueNull}
			}
		}
		before := fillOf(t, table, columns, row)
		kept, values := before.Row()
		after := fillOf(t, table, kept, values)
		before.from, before.buf, after.from, after.buf = nil, nil, nil, nil
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("before %+v\nafter  %+v", before, after)
		}
	})
}

// fillOf fills an event; that the row is poison is no failure here.
func fillOf(t *rapid.T, table *Table, columns []Column, row decoder.Tuple) *Event {
	b, err := table.BindColumns(columns)
	if err != nil {
		t.Fatal(err)
	}
	ev := &Event{}
	_ = b.Fill(ev, row)
	return ev
}
