package event_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
)

// FuzzFill fills an event from a row of any values, in a form for each that kinds chooses. What is reported must be
// poison, what is filled must be what the row held, whatever the Event held before.
func FuzzFill(f *testing.F) {
	f.Add([]byte("ttttttt"), []byte("id-1"), []byte("order"), []byte("o-1"), []byte("Placed"), []byte(`\x00ff`), []byte("2026-11-30 22:53:39.123456+00"))
	f.Add([]byte("ttttnnn"), []byte(""), []byte(""), []byte(""), []byte(""), []byte(""), []byte(""))
	f.Add([]byte("tttttut"), []byte("1"), []byte("a"), []byte("b"), []byte("c"), []byte("{}"), []byte("infinity"))
	f.Add([]byte("nbut"), []byte("1"), []byte("a"), []byte("b"), []byte("c"), []byte(`\x0`), []byte("-"))
	f.Fuzz(func(t *testing.T, kinds, id, aggType, aggID, typ, payload, createdAt []byte) {
		values := [][]byte{id, aggType, aggID, typ, payload, createdAt, []byte("x")}
		r := make(decoder.Tuple, len(values))
		for i := range r {
			r[i] = null
			if i < len(kinds) && (kinds[i] == 't' || kinds[i] == 'b') {
				r[i] = decoder.Value{Kind: decoder.ValueKind(kinds[i]), Data: append([]byte{}, values[i]...)}
			} else if i < len(kinds) {
				r[i].Kind = decoder.ValueKind(kinds[i])
			}
		}
		var ev event.Event
		for _, oid := range []uint32{jsonb, bytea} {
			b, _ := outbox(t, oid)
			err := b.Fill(&ev, r)
			var poison *event.PoisonError
			if err != nil && !errors.As(err, &poison) {
				t.Fatalf("error of another kind: %v", err)
			}
			checkFilled(t, &ev, r, oid == bytea)
			if err == nil && !complete(&ev) {
				t.Fatalf("not poison, but incomplete: %+v", ev)
			}
		}
	})
}

// checkFilled compares what was copied as it is.
func checkFilled(t *testing.T, ev *event.Event, r decoder.Tuple, decoded bool) {
	t.Helper()
	got := [][]byte{ev.ID, ev.AggregateType, ev.AggregateID, ev.EventType, ev.Payload}
	for i, v := range got {
		if i == 4 && decoded {
			continue
		}
		held := r[i].Kind == decoder.ValueText
		if held != (v != nil) || held && !bytes.Equal(v, r[i].Data) {
			t.Fatalf("column %d: got %q of %c %q", i, v, r[i].Kind, r[i].Data)
		}
	}
	if ev.PayloadNull != (r[4].Kind == decoder.ValueNull) {
		t.Fatalf("payload of kind %c: null is %t", r[4].Kind, ev.PayloadNull)
	}
}

func complete(ev *event.Event) bool {
	return ev.ID != nil && ev.AggregateType != nil && ev.AggregateID != nil && ev.EventType != nil &&
		(ev.Payload != nil) != ev.PayloadNull
}
