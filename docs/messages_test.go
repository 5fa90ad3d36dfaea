package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twpayne/go-geom"
	"github.com/twpayne/go-geom/encoding/ewkb"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/geometry"
	"github.com/tidegate-cdc/tidegate/router"
)

// rows gives the cells of the table in messages.md that has this head.
func rows(t *testing.T, head string) [][]string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, "messages.md"), "\n"+head+"\n")
	if !found {
		t.Fatalf("messages.md has no table %s", head)
	}
	var list [][]string
	for i, line := range strings.Split(rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if i == 0 {
			continue // the line under the head
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for c := range cells {
			cells[c] = plain(strings.TrimSpace(cells[c]))
		}
		list = append(list, cells)
	}
	return list
}

// plain takes a cell's value out of its code marks.
func plain(cell string) string {
	if cell == "(empty)" {
		return ""
	}
	if len(cell) > 1 && cell[0] == '`' {
		return cell[1 : len(cell)-1]
	}
	return cell
}

func TestTokensAreAsDocumented(t *testing.T) {
	for _, row := range rows(t, "| Value | Token |") {
		if got := string(router.AppendToken(nil, []byte(row[0]))); got != row[1] {
			t.Errorf("%q becomes %q, documented as %q", row[0], got, row[1])
		}
		if back, ok := router.Unescape(row[1]); !ok || back != row[0] {
			t.Errorf("%q is decoded as %q, %v", row[1], back, ok)
		}
	}
}

func TestHeaderValuesAreAsDocumented(t *testing.T) {
	for _, row := range rows(t, "| Value | In a header |") {
		if got := string(event.AppendHeaderValue(nil, []byte(row[0]))); got != row[1] {
			t.Errorf("%q becomes %q, documented as %q", row[0], got, row[1])
		}
	}
}

func TestPartitionsAreAsDocumented(t *testing.T) {
	for _, row := range rows(t, "| Aggregate id | `{partition:16}` |") {
		m := publish(t, &event.Table{Name: "public.outbox", Kind: event.KindEvent}, "{partition:16}", &event.Event{AggregateID: []byte(row[0])}, nil)
		if m.Subject != row[1] {
			t.Errorf("%q is in partition %s, documented as %s", row[0], m.Subject, row[1])
		}
	}
}

func TestCellTokensAreAsDocumented(t *testing.T) {
	for _, row := range rows(t, "| Cell | Resolution | Tokens |") {
		cell, _ := geometry.ParseCell([]byte(row[0]))
		resolution, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := string(geometry.AppendCellTokens(nil, cell, resolution)); got != row[2] {
			t.Errorf("%s at %d becomes %s, documented as %s", row[0], resolution, got, row[2])
		}
	}
}

// TestHeadersAreAsDocumented fills everything that a row can have and looks at the table of headers, order and all.
func TestHeadersAreAsDocumented(t *testing.T) {
	ev := example(t, event.KindEvent, "id", "1", "aggregate_type", "order", "aggregate_id", "4711", "event_type", "OrderPlaced",
		"payload", "", "created_at", "2026-11-30 23:55:56+00", "version", "3", "traceparent", "00-00-00-01")
	ev.Late = "initial"
	ev.PayloadNull = true
	var names, documented []string
	for _, h := range publish(t, ev.Table, "outbox.{aggregate_id}", ev, nil).Headers {
		names = append(names, h.Name)
	}
	for _, row := range rows(t, "| Header | Value |") {
		documented = append(documented, row[0])
	}
	if !slices.Equal(names, documented) {
		t.Errorf("headers are %q, documented as %q", names, documented)
	}
	for _, p := range pages(t) {
		for _, name := range aHeader.FindAllString(p.text, -1) {
			if !slices.Contains(names, name) {
				t.Errorf("%s: there is no header %s", p.path, name)
			}
		}
	}
}

// TestTheReadmesMessageIsTheRowsMessage makes the message of the row on README's first screen.
func TestTheReadmesMessageIsTheRowsMessage(t *testing.T) {
	ev := example(t, event.KindFeature, "id", "1", "feature_id", "42", "feature_version", "1", "event_type", "created",
		"schema_version", "2", "created_at", "2026-11-30 23:55:56.232811+00")
	wkb, err := ewkb.Marshal(geom.NewPointFlat(geom.XY, []float64{13.404954, 52.520008}).SetSRID(4326), ewkb.NDR)
	if err != nil {
		t.Fatal(err)
	}
	g := &geometry.Feature{}
	if err := geometry.Encode(g, wkb, geometry.Options{}); err != nil {
		t.Fatal(err)
	}
	g.Version, g.SourceSRID, g.Valid, g.HasValid = []byte("1"), 4326, true, true
	m := publish(t, ev.Table, "geo.{collection}.{event_type}.{h3}", ev, g)

	var want strings.Builder
	fmt.Fprintf(&want, "subject  %s\n\n", m.Subject)
	for _, h := range m.Headers {
		fmt.Fprintf(&want, "%s: %s\n", h.Name, h.Value)
	}
	fmt.Fprintf(&want, "\n%s", m.Body)
	unbroken := regexp.MustCompile(`,\n"`).ReplaceAllString(read(t, "../README.md"), `,"`)
	if !strings.Contains(unbroken, want.String()) {
		t.Errorf("README.md does not show this message:\n%s", want.String())
	}
}

// example is the event of a row, at the place in the WAL that README shows; cells are column and value in turns.
func example(t *testing.T, kind event.Kind, cells ...string) *event.Event {
	t.Helper()
	table := &event.Table{Name: "public.outbox", Kind: kind, Columns: event.DefaultColumns(kind)}
	if kind == event.KindFeature {
		table.Name, table.Collection, table.Columns.RoutingKey = "public.feature_outbox", "features", ""
	} else {
		table.Columns.Version, table.Columns.Traceparent = "version", "traceparent"
	}
	var columns []event.Column
	var row decoder.Tuple
	for i := 0; i < len(cells); i += 2 {
		column := event.Column{Name: cells[i], TypeOID: 25}
		if cells[i] == "created_at" {
			column.TypeOID = 1184
		}
		columns = append(columns, column)
		row = append(row, decoder.Value{Kind: decoder.ValueText, Data: []byte(cells[i+1])})
	}
	binding, err := table.BindColumns(columns)
	if err != nil {
		t.Fatal(err)
	}
	ev := &event.Event{}
	if err := binding.Fill(ev, row); err != nil {
		t.Fatal(err)
	}
	ev.Position = event.Position{Timeline: 1, Commit: 0x22D5698}
	ev.CommittedAt = time.Date(2026, 11, 30, 23, 55, 56, 308_855_000, time.UTC)
	return ev
}

func publish(t *testing.T, table *event.Table, subject string, ev *event.Event, g *geometry.Feature) *event.Message {
	t.Helper()
	route, err := router.New(router.Config{Source: "app", Table: table, Subject: subject, H3Resolution: 8})
	if err != nil {
		t.Fatal(err)
	}
	m := &event.Message{}
	if err := route.Fill(m, ev, g); err != nil {
		t.Fatal(err)
	}
	return m
}
