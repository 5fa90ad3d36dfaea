package router

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/event"
)

func TestHeadersStandInTheirFixedOrder(t *testing.T) {
	ev := order()
	ev.Version, ev.Late, ev.PayloadNull, ev.Traceparent = []byte("1"), "parked", true, []byte("00-1-2-01")
	ev.Headers = []byte(`{"z":"1","a":"2"}`)
	var names []string
	for _, h := range fill(t, newRoute(t, outbox, "o.{event_type}"), ev, nil).Headers {
		names = append(names, h.Name)
	}
	want := "Nats-Msg-Id Tidegate-Id Tidegate-Event-Type Tidegate-Aggregate-Type Tidegate-Aggregate-Id Tidegate-Version " +
		"Tidegate-Committed-At Tidegate-Position Tidegate-Late Tidegate-Null traceparent Content-Type z a"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("headers\n got %s\nwant %s", got, want)
	}
}

func TestMsgIDAndPositionNameTheSource(t *testing.T) {
	m := fill(t, newRoute(t, outbox, "o.{event_type}"), order(), nil)
	if want := "app/public.outbox/3f9c"; m.ID != want || header(m, event.HeaderMsgID) != want {
		t.Errorf("id %q, header %q; want %q", m.ID, header(m, event.HeaderMsgID), want)
	}
	if got, want := header(m, event.HeaderPosition), "app/00000001-00000016B374D848-00000002"; got != want {
		t.Errorf("position %q, want %q", got, want)
	}
}

func TestRowsOwnHeadersAreAdded(t *testing.T) {
	r := newRoute(t, outbox, "o.{event_type}")
	for _, c := range []struct{ headers, name, want string }{
		{`{"tenant":"blue"}`, "tenant", "blue"},
		{" { \"a\" : \"1\" ,\n\t\"tenant\" : \"\" } ", "tenant", ""},
		{`{"tenant":"a\\b\"cä\u00e4\r\n%"}`, "tenant", `a\b"cää%0D%0A%25`},
		{`{"t\u0065nant":"x"}`, "tenant", "x"},
		{`{"tenant":"x","Tenant":"y"}`, "Tenant", "y"},
		{`{"content-type":"text/csv"}`, event.HeaderContentType, "text/csv"},
		{`{"traceparent":"00-1-2-01"}`, event.HeaderTraceparent, "00-1-2-01"},
		{`{"natsy":"x","cell":"y"}`, "cell", "y"},
		{`{}`, event.HeaderContentType, "application/json"},
		{`null`, event.HeaderContentType, "application/json"},
		{``, event.HeaderContentType, "application/json"},
	} {
		ev := order()
		ev.Headers = []byte(c.headers)
		if got := header(fill(t, r, ev, nil), c.name); got != c.want {
			t.Errorf("%s: %s is %q, want %q", c.headers, c.name, got, c.want)
		}
	}
}

func TestHeadersThatMustNotBePublishedArePoison(t *testing.T) {
	mapped := *outbox
	mapped.Columns.Headers = "meta"
	for _, c := range []struct{ headers, reason string }{
		{`{"Nats-Rollup":"all"}`, `"Nats-Rollup" is not allowed: names that begin with Nats-, Tidegate- or ce- are reserved`},
		{`{"a":"1","nATS-Msg-Id":"x"}`, `"nATS-Msg-Id" is not allowed`},
		{`{"tidegate-id":"x"}`, `"tidegate-id" is not allowed`},
		{`{"CE-type":"x"}`, `"CE-type" is not allowed`},
		{`{"N\u0061ts-Rollup":"sub"}`, `"Nats-Rollup" is not allowed`},
		{`{"a b":"x"}`, `"a b" is no name for a header`},
		{`{"a:b":"x"}`, `"a:b" is no name for a header`},
		{`{"":"x"}`, `"" is no name for a header`},
		{`{"ä":"x"}`, `"ä" is no name for a header`},
		{`{"a\r\nNats-Rollup":"x"}`, `"a\r\nNats-Rollup" is no name for a header`},
		{`{"a":1}`, `the value of "a" is not a string`},
		{`{"a":"1","b":null}`, `the value of "b" is not a string`},
		{`{"a":{"b":"c"}}`, `the value of "a" is not a string`},
		{`{"a":"1","b":"2","a":"3"}`, `"a" is named twice`},
		{`["a"]`, "not a JSON object of strings"},
		{`"a"`, "not a JSON object of strings"},
		{`{"a":"1"`, "not a JSON object of strings"},
		{`{"a":"` + strings.Repeat("x", 65536) + `"}`, "longer than 65535 bytes"},
	} {
		for column, table := range map[string]*event.Table{"headers": outbox, "meta": &mapped} {
			ev := order()
			ev.Headers = []byte(c.headers)
			var m event.Message
			err := newRoute(t, table, "o.{event_type}").Fill(&m, ev, nil)
			var poison *event.PoisonError
			if !errors.As(err, &poison) || poison.Column != column || !strings.HasPrefix(poison.Reason, c.reason) {
				t.Errorf("%.60s: error %v, want column %s: %s", c.headers, err, column, c.reason)
			}
			if m.Subject != "" || len(m.Headers) != 0 {
				t.Errorf("%.60s: message %+v", c.headers, m)
			}
		}
	}
}

func FuzzRowHeaders(f *testing.F) {
	f.Add([]byte(`{"tenant":"blue","content-type":"x/y"}`))
	f.Add([]byte(`{"a\u0000":"\n%","Nats-Rollup":"all"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, headers []byte) {
		ev := order()
		ev.Headers = headers
		var m event.Message
		if newRoute(t, outbox, "o.{event_type}").Fill(&m, ev, nil) != nil {
			return
		}
		seen := map[string]bool{}
		for i, h := range m.Headers {
			own := strings.HasPrefix(h.Name, "Nats-") || strings.HasPrefix(h.Name, "Tidegate-")
			if h.Name == "" || strings.ContainsAny(h.Name, "\r\n: ") || strings.ContainsAny(h.Value, "\r\n\x00") || own && i > 7 || seen[h.Name] {
				t.Fatalf("%q: header %d is %q: %q", headers, i, h.Name, h.Value)
			}
			seen[h.Name] = true
		}
	})
}
