package event_test

import (
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// want is an event in a form that is easy to write down; "-" is a nil slice.
type want struct {
	id, aggType, aggID, typ, version, payload, routing, schema string
	createdAt                                                  time.Time
	null                                                       bool
}

func describe(ev *event.Event) want {
	s := func(b []byte) string {
		if b == nil {
			return "-"
		}
		return string(b)
	}
	return want{
		s(ev.ID), s(ev.AggregateType), s(ev.AggregateID), s(ev.EventType), s(ev.Version), s(ev.Payload),
		s(ev.RoutingKey), s(ev.SchemaVersion), ev.CreatedAt, ev.PayloadNull,
	}
}

// The rows of decoder/testdata/session.sql.
var session = map[string][]want{
	"public.outbox": {
		{
			"00000000-0000-4000-8000-000000000001", "order", "o-1", "OrderPlaced", "-",
			`{"note": "naïve ☃", "total": 12345678901234567890.123456789012345678901}`, "-", "-",
			time.Date(2026, 11, 30, 22, 53, 39, 123456000, time.UTC), false,
		},
		{
			"00000000-0000-4000-8000-000000000002", "order", "o-1", "OrderNulled", "-", "null", "-", "-",
			time.Date(2026, 11, 30, 22, 53, 39, 500000000, time.UTC), false,
		},
		{
			"00000000-0000-4000-8000-000000000003", "order", "", "OrderGone", "-", "-", "-", "-",
			time.Date(-43, 3, 15, 12, 0, 0, 0, time.UTC), true,
		},
		{
			"00000000-0000-4000-8000-000000000004", "order", " a.b > * % $ ", "OrderText", "-", `"scalar"`, "-", "-",
			time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC), false,
		},
	},
	"public.feature_outbox": {
		{
			"1", "parcels", "9007199254740993", "created", "1", "-", "881f1d4891fffff", "2",
			time.Date(2026, 11, 30, 0, 0, 0, 1000, time.UTC), false,
		},
		{
			"3", "parcels", "-2", "moved", "2147483647", "-", "-", "2",
			time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), false,
		},
	},
	"public.outboxevent": {
		{
			"123456789012345678901234567890", "customer", "c-1", "CustomerCreated", "-", "\x00\xff\\x", "-", "-",
			time.Time{},
			false,
		},
		{"2", "customer", "c-1", "CustomerEmptied", "-", "", "-", "-", time.Time{}, false},
		{"3", "customer", "c-1", "CustomerGone", "-", "-", "-", "-", time.Time{}, true},
	},
}

func TestMain(m *testing.M) { testkit.Main(m) }

// TestRowsOfARealSessionAreExact reads all three shapes of outbox from what PostgreSQL sent, with one Event: when the
// recording was made, and now.
func TestRowsOfARealSessionAreExact(t *testing.T) {
	t.Run("recorded", func(t *testing.T) { rowsAreExact(t, recorded(t)) })
	t.Run("live", func(t *testing.T) {
		rowsAreExact(t, testkit.RecordSession(t, testkit.Postgres(t).PlainDatabase(t)))
	})
}

func rowsAreExact(t *testing.T, messages [][]byte) {
	t.Helper()
	tables := map[string]*event.Table{
		"public.outbox":         {Name: "public.outbox", Kind: event.KindEvent},
		"public.feature_outbox": {Name: "public.feature_outbox", Kind: event.KindFeature, Collection: "parcels"},
		"public.outboxevent":    {Name: "public.outboxevent", Kind: event.KindEvent}, // Debezium's
	}
	contentTypes := map[string]string{
		"public.outbox": "application/json", "public.outboxevent": "application/octet-stream",
	}
	got := make(map[string][]want)
	var ev event.Event
	eachInsert(t, messages, func(m *decoder.Message) {
		name := m.Relation.Namespace + "." + m.Relation.Name
		table := tables[name]
		if table == nil {
			return
		}
		b, err := table.Bind(m.Relation)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Fill(&ev, m.New); err != nil {
			t.Fatal(err)
		}
		if ev.Table != table || b.Table() != table || ev.ContentType != contentTypes[name] {
			t.Errorf("row of %s: table %v, content type %q", name, ev.Table, ev.ContentType)
		}
		got[name] = append(got[name], describe(&ev))
	})
	for name, rows := range session {
		if len(got[name]) != len(rows) {
			t.Errorf("%s: %d rows, want %d", name, len(got[name]), len(rows))
			continue
		}
		for i := range rows {
			if got[name][i] != rows[i] {
				t.Errorf("%s row %d\ngot  %+v\nwant %+v", name, i, got[name][i], rows[i])
			}
		}
	}
}

func eachInsert(t *testing.T, messages [][]byte, do func(*decoder.Message)) {
	t.Helper()
	d := decoder.New()
	var m decoder.Message
	for _, data := range messages {
		if err := d.Decode(data, &m); err != nil {
			t.Fatal(err)
		}
		if m.Kind == decoder.KindInsert {
			do(&m)
		}
	}
}
