package router

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/geometry"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	outbox        = &event.Table{Name: "public.outbox", Kind: event.KindEvent}
	featureOutbox = &event.Table{Name: "public.feature_outbox", Kind: event.KindFeature, Collection: "features"}
)

func newRoute(t testing.TB, table *event.Table, subject string) *Route {
	t.Helper()
	r, err := New(Config{Source: "app", Table: table, Subject: subject, H3Resolution: 8})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// order is a row of a generic outbox.
func order() *event.Event {
	return &event.Event{
		Table:         outbox,
		Position:      event.Position{Timeline: 1, Commit: 0x16B374D848, Index: 2},
		CommittedAt:   time.Date(2026, 11, 30, 22, 53, 39, 123456000, time.FixedZone("", 3600)),
		ID:            []byte("3f9c"),
		AggregateType: []byte("order"),
		AggregateID:   []byte("42"),
		EventType:     []byte("placed"),
		Payload:       []byte(`{"total": 1234567890123456789012345678901234567890}`),
		ContentType:   "application/json",
	}
}

// move is a row of a feature outbox.
func move() *event.Event {
	return &event.Event{
		Table:         featureOutbox,
		Position:      event.Position{Timeline: 1, Commit: 0x16B374D848, Index: 3},
		CommittedAt:   time.Date(2026, 11, 30, 22, 53, 40, 0, time.UTC),
		CreatedAt:     time.Date(2026, 11, 30, 22, 53, 39, 5000, time.UTC),
		ID:            []byte("7001"),
		AggregateType: []byte("features"),
		AggregateID:   []byte("4471"),
		EventType:     []byte("moved"),
		Version:       []byte("12"),
		SchemaVersion: []byte("1"),
	}
}

// berlin is the geometry of a feature, POINT(13.405 52.525).
func berlin(t testing.TB) *geometry.Feature {
	t.Helper()
	wkb, err := hex.DecodeString("0101000020e61000008fc2f5285ccf2a403333333333434a40")
	if err != nil {
		t.Fatal(err)
	}
	g := &geometry.Feature{Version: []byte("12"), Valid: true, HasValid: true, SourceSRID: 25833}
	if err := geometry.Encode(g, wkb, geometry.Options{}); err != nil {
		t.Fatal(err)
	}
	return g
}

func fill(t testing.TB, r *Route, ev *event.Event, g *geometry.Feature) *event.Message {
	t.Helper()
	var m event.Message
	if err := r.Fill(&m, ev, g); err != nil {
		t.Fatal(err)
	}
	return &m
}

// header gives the values of a header.
func header(m *event.Message, name string) string {
	var values []string
	for _, h := range m.Headers {
		if h.Name == name {
			values = append(values, h.Value)
		}
	}
	return strings.Join(values, "|")
}

// dump shows a whole message as text.
func dump(m *event.Message) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, m.Subject)
	for _, h := range m.Headers {
		fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
	}
	fmt.Fprintf(&b, "\n%s\n", m.Body)
	return b.Bytes()
}

func TestMessagesAreByteForByteAsDocumented(t *testing.T) {
	full := order()
	full.Version, full.Late = []byte("9"), "replay"
	full.Traceparent = []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	full.ID, full.AggregateID = []byte(" a/b%\t"), []byte("eu.west *>$ä\x80 ")
	full.Headers = []byte(`{"tenant": "blue \"sky\"", "note": "line\nbreak", "Content-Type": "application/vnd.order+json"}`)
	null := order()
	null.Payload, null.PayloadNull, null.Position, null.CommittedAt, null.Late = nil, true, event.Position{}, time.Time{}, "initial"
	keyed := move()
	keyed.RoutingKey = []byte("8a1f1d48919ffff")
	gone := move()
	gone.RoutingKey, gone.CreatedAt, gone.SchemaVersion = []byte("north \"sea\"\\\x01\xff"), time.Time{}, []byte("v2")
	tooLarge := berlin(t)
	tooLarge.JSON, tooLarge.Status = nil, geometry.StatusOmittedTooLarge

	const event, feature = "outbox.{aggregate_type}.{aggregate_id}", "geo.{collection}.{event_type}.{h3}"
	for _, c := range []struct {
		name string
		m    func() []byte
	}{
		{"event", func() []byte { return dump(fill(t, newRoute(t, outbox, event), order(), nil)) }},
		{"event-full", func() []byte { return dump(fill(t, newRoute(t, outbox, event), full, nil)) }},
		{"event-null", func() []byte { return dump(fill(t, newRoute(t, outbox, event), null, nil)) }},
		{"feature", func() []byte { return dump(fill(t, newRoute(t, featureOutbox, feature), move(), berlin(t))) }},
		{"feature-keyed", func() []byte { return dump(fill(t, newRoute(t, featureOutbox, feature), keyed, berlin(t))) }},
		{"feature-too-large", func() []byte { return dump(fill(t, newRoute(t, featureOutbox, feature), move(), tooLarge)) }},
		{"feature-missing", func() []byte {
			return dump(fill(t, newRoute(t, featureOutbox, "geo.{routing_key}.{h3}.{feature_id}"), gone,
				&geometry.Feature{Status: geometry.StatusMissing}))
		}},
		{"feature-no-lookup", func() []byte { return dump(fill(t, newRoute(t, featureOutbox, feature), move(), nil)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkGolden(t, filepath.Join("testdata", c.name+".golden"), c.m())
		})
	}
}

func checkGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("message differs from %s\n got %s\nwant %s", path, got, want)
	}
	_, body, _ := bytes.Cut(got, []byte("\n\n"))
	if bytes.HasPrefix(body, []byte("{")) && !json.Valid(body) {
		t.Errorf("body is not JSON: %s", body)
	}
}

func TestPayloadBytesAreNotTouched(t *testing.T) {
	r := newRoute(t, outbox, "outbox.{aggregate_id}")
	for _, payload := range []string{`0.10000000000000000000000000000000000000001`, `null`, `"x"`, " {} ", "\x00\xff\n", "", `[1,  2]`} {
		ev := order()
		ev.Payload = []byte(payload)
		m := fill(t, r, ev, nil)
		if string(m.Body) != payload || header(m, event.HeaderNull) != "" {
			t.Errorf("payload %q becomes %q, null %q", payload, m.Body, header(m, event.HeaderNull))
		}
	}
}

func TestMessageKeepsNothingOfTheRow(t *testing.T) {
	r := newRoute(t, outbox, "outbox.{aggregate_id}")
	ev := order()
	m := fill(t, r, ev, nil)
	before := string(dump(m))
	for _, b := range [][]byte{ev.ID, ev.AggregateID, ev.Payload, r.text[:cap(r.text)], r.key[:cap(r.key)]} {
		for i := range b {
			b[i] = '#'
		}
	}
	if after := string(dump(m)); after != before {
		t.Errorf("the message changed with the row:\n%s", after)
	}
}

func TestUsedMessageCarriesNothingOver(t *testing.T) {
	events, features := newRoute(t, outbox, "outbox.{aggregate_id}"), newRoute(t, featureOutbox, "geo.{feature_id}")
	var m event.Message
	first := order()
	first.Headers = []byte(`{"tenant":"blue"}`)
	for range 2 {
		for _, c := range []struct {
			r  *Route
			ev *event.Event
			g  *geometry.Feature
		}{{events, first, nil}, {features, move(), berlin(t)}, {events, order(), nil}} {
			if err := c.r.Fill(&m, c.ev, c.g); err != nil {
				t.Fatal(err)
			}
			fresh := fill(t, newRoute(t, c.r.config.Table, c.r.config.Subject), c.ev, c.g)
			if got, want := string(dump(&m)), string(dump(fresh)); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
		}
	}
}

func TestRoutingKeyOfTheRowWins(t *testing.T) {
	const berlinCell, finer, coarser = "881f1d4891fffff", "8f283473fffffff", "8075fffffffffff"
	point := berlin(t)
	for _, c := range []struct {
		name, key string
		g         *geometry.Feature
		h3, body  string
	}{
		{"computed", "", point, "15.4.3.5.2.2.1.1.0", `"` + berlinCell + `"`},
		{"coarser cell is padded", coarser, point, "58.x.x.x.x.x.x.x.x", `"` + coarser + `"`},
		{"cell of a deleted feature", "881f1d4891fffff", &geometry.Feature{Status: geometry.StatusMissing}, "15.4.3.5.2.2.1.1.0", `"881f1d4891fffff"`},
		{"finer cell is cut", "8a1f1d48919ffff", nil, "15.4.3.5.2.2.1.1.0", `"8a1f1d48919ffff"`},
		{"no cell", "north", point, "15.4.3.5.2.2.1.1.0", `"north"`},
		{"no cell and no point", "north", nil, "x.x.x.x.x.x.x.x.x", `"north"`},
		{"nothing", "", &geometry.Feature{Status: geometry.StatusNull}, "x.x.x.x.x.x.x.x.x", `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ev := move()
			ev.RoutingKey = []byte(c.key)
			m := fill(t, newRoute(t, featureOutbox, "geo.{h3}.{routing_key}"), ev, c.g)
			key := strings.Trim(c.body, `"`)
			if key == "null" {
				key = "%"
			}
			if want := "geo." + c.h3 + "." + key; m.Subject != want {
				t.Errorf("subject %s, want %s", m.Subject, want)
			}
			if !bytes.Contains(m.Body, []byte(`"routing_key":`+c.body+`,`)) {
				t.Errorf("body %s", m.Body)
			}
		})
	}
}

func TestIntegersStayNumbersAndOtherTextStaysText(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-7": "-7", "12345678901234567890123456789012345678901": "12345678901234567890123456789012345678901",
		"007": `"007"`, "-0": `"-0"`, "-": `"-"`, "": `""`, "1.5": `"1.5"`, "1e3": `"1e3"`, "v1": `"v1"`, "-01": `"-01"`,
		"é\t\"\\\x1f\b\f\r\n\x7f": `"é\t\"\\\u001f\b\f\r\n` + "\x7f" + `"`, "\xc3(": `"\ufffd("`,
	} {
		if got := string(appendScalar(nil, []byte(text))); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
	if got := string(appendScalar(nil, nil)); got != "null" {
		t.Errorf("NULL becomes %s", got)
	}
}

func TestValidIsOnlySaidOfAGeometry(t *testing.T) {
	r := newRoute(t, featureOutbox, "geo.{h3}")
	g := &geometry.Feature{Status: geometry.StatusInvalidCoordinates, Valid: true, HasValid: true}
	if m := fill(t, r, move(), g); bytes.Contains(m.Body, []byte(`"valid"`)) || bytes.Contains(m.Body, []byte(`"bbox"`)) {
		t.Errorf("body %s", m.Body)
	}
}

func TestTooLongSubjectIsPoison(t *testing.T) {
	r := newRoute(t, outbox, "outbox.{aggregate_id}")
	ev := order()
	ev.AggregateID = bytes.Repeat([]byte("a"), DefaultMaxSubject-len("outbox."))
	if m := fill(t, r, ev, nil); len(m.Subject) != DefaultMaxSubject {
		t.Errorf("subject of %d bytes", len(m.Subject))
	}
	ev.AggregateID = append(ev.AggregateID, 'a')
	m := event.Message{Subject: "old", Headers: []event.Header{{Name: "old"}}, Body: []byte("old")}
	err := r.Fill(&m, ev, nil)
	var poison *event.PoisonError
	if !errors.As(err, &poison) || poison.Table != "public.outbox" || poison.ID != "3f9c" {
		t.Fatalf("error %v", err)
	}
	if want := "its subject has 3841 bytes: at most 3840 are allowed"; poison.Reason != want {
		t.Errorf("reason %q, want %q", poison.Reason, want)
	}
	if m.Subject != "" || len(m.Headers) != 0 || len(m.Body) != 0 {
		t.Errorf("message %+v of a poison row", m)
	}
}

func TestPartitionsNeverChange(t *testing.T) {
	r := newRoute(t, outbox, "outbox.p{partition:16}.{aggregate_id}")
	for id, want := range map[string]string{"": "5", "42": "3", "foobar": "8"} { // FNV-1a of "foobar" is 85944171f73967e8
		ev := order()
		ev.AggregateID = []byte(id)
		if m := fill(t, r, ev, nil); !strings.HasPrefix(m.Subject, "outbox.p"+want+".") {
			t.Errorf("id %q: subject %s, want partition %s", id, m.Subject, want)
		}
	}
}
