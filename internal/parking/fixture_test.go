package parking_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/parking"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/migrations"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const source = "app"

// database makes a database with the table and gives its URL.
func database(t *testing.T) string {
	t.Helper()
	url := testkit.SharedPostgres(t).PlainDatabase(t)
	migrate(t, url)
	return url
}

func migrate(t *testing.T, url string) {
	t.Helper()
	if _, err := migrations.Up(t.Context(), url, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
}

// store opens a store on a new database.
func store(t *testing.T) (*parking.Store, string) {
	t.Helper()
	url := database(t)
	return open(t, url, 1000), url
}

func open(t *testing.T, url string, maxRows int) *parking.Store {
	t.Helper()
	s, err := parking.Open(t.Context(), testkit.Connect(t, url), source, maxRows)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func desk(t *testing.T, url string) *parking.Desk {
	t.Helper()
	d, err := parking.OpenDesk(t.Context(), testkit.Connect(t, url), source)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// at is the position of the n-th row.
func at(n int) string {
	return event.Position{Timeline: 1, Commit: 0x1000, Index: uint32(n)}.String()
}

// row is a row of aggregate order/<aggregate> at position n.
func row(n int, aggregate string, state parking.State) parking.Row {
	id := fmt.Sprintf("row-%d", n)
	return parking.Row{
		Position: at(n), Table: "public.outbox", RowID: []byte(id),
		Aggregate:     event.AggregateKey(nil, "public.outbox", []byte("order"), []byte(aggregate)),
		AggregateType: []byte("order"), AggregateID: []byte(aggregate), EventType: []byte("Placed"),
		Columns: []event.Column{{Name: "id", TypeOID: 25}}, Values: decoder.Tuple{{Kind: decoder.ValueText, Data: []byte(id)}},
		XID: 700, State: state, Reason: "subject is too long",
	}
}

// fromTable is a row that was read from its table.
func fromTable(ord int64, aggregate string, state parking.State) parking.Row {
	r := row(0, aggregate, state)
	r.RowID = fmt.Append(nil, "old", ord)
	r.Position, r.Ord = parking.TablePosition(r.Table, r.RowID), ord
	return r
}

func park(t *testing.T, s *parking.Store, rows ...parking.Row) {
	t.Helper()
	inserted, _, err := s.Park(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	for i, new := range inserted {
		if !new {
			t.Fatalf("row %d was there", i)
		}
	}
}

// names gives "<row id>:<state>" of rows.
func names(rows []parking.Row) string {
	var all []string
	for _, r := range rows {
		all = append(all, string(r.RowID)+":"+string(r.State))
	}
	return strings.Join(all, " ")
}

func releasable(t *testing.T, s *parking.Store, upto int, copied, skip bool) []parking.Row {
	t.Helper()
	rows, err := s.Releasable(t.Context(), at(upto), copied, skip, 100)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// list gives every row of the source, in order, as names does.
func list(t *testing.T, url string) string {
	t.Helper()
	return testkit.Value[string](t, url, `SELECT coalesce(string_agg(convert_from(row_id, 'UTF8') || ':' || state, ' ' ORDER BY ord, position), '')
		FROM tidegate.parked WHERE source = $1`, source)
}

func ids(rows []parking.Row) []int64 {
	var all []int64
	for _, r := range rows {
		all = append(all, r.ID)
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func connectAs(t *testing.T, url, role string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	must(t, err)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), "SET ROLE "+pgx.Identifier{role}.Sanitize())
	must(t, err)
	return conn
}

// background is for steps that are the same in every case of a table.
func background() context.Context { return context.Background() }
