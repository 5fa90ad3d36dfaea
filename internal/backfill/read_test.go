package backfill_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/backfill"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// read gives the ids of a table's rows as they are read.
func read(t *testing.T, url, table, orderBy string) (ids []string, err error) {
	t.Helper()
	ctx := context.Background()
	tx, err := testkit.Connect(t, url).BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	outbox := backfill.Table{Table: &event.Table{Name: "public." + table, Kind: event.KindEvent}, OrderBy: orderBy}
	err = backfill.Read(ctx, tx, outbox, func(b *event.Binding, row decoder.Tuple) error {
		var ev event.Event
		if err := b.Fill(&ev, row); err != nil {
			return err
		}
		ids = append(ids, string(ev.ID))
		return nil
	})
	return ids, err
}

const columns = "aggregate_type text DEFAULT 'a', aggregate_id text DEFAULT '1', event_type text DEFAULT 'e', payload jsonb, created_at timestamptz DEFAULT now()"

func TestRowsAreReadInTheOrderThatAColumnTells(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	testkit.Exec(t, url, "CREATE TABLE by_seq (id text, seq bigint, "+columns+"); INSERT INTO by_seq (id, seq) VALUES ('a', 10), ('b', 9), ('c', 100)")
	testkit.Exec(t, url, "CREATE TABLE by_id (id bigint, "+columns+"); INSERT INTO by_id (id) VALUES (10), (9), (100)")
	testkit.Exec(t, url, "CREATE TABLE by_other (id text, seq bigint, n int, "+columns+"); INSERT INTO by_other (id, seq, n) VALUES ('a', 1, 3), ('b', 2, 2), ('c', 3, 1)")
	for _, tc := range []struct {
		table, orderBy string
		want           []string
	}{
		{"by_seq", "", []string{"b", "a", "c"}},
		{"by_id", "", []string{"9", "10", "100"}},
		{"by_other", "n", []string{"c", "b", "a"}},
	} {
		if ids, err := read(t, url, tc.table, tc.orderBy); err != nil || !slices.Equal(ids, tc.want) {
			t.Errorf("%s: %v, %v; want %v", tc.table, ids, err, tc.want)
		}
	}
}

func TestTableWithoutAnOrderIsRefusedOnceItHasRows(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	testkit.Exec(t, url, "CREATE TABLE t (id text, "+columns+")")
	if _, err := read(t, url, "t", ""); err != nil {
		t.Fatalf("empty: %v", err)
	}
	testkit.Exec(t, url, "INSERT INTO t (id) VALUES ('a')")
	var unordered *backfill.OrderError
	if ids, err := read(t, url, "t", ""); !errors.As(err, &unordered) || len(ids) != 0 {
		t.Fatalf("with a row: %v, %v", ids, err)
	}
	var schema *event.SchemaError
	if _, err := read(t, url, "t", "nothing"); !errors.As(err, &schema) {
		t.Fatalf("ordered by a column that is not there: %v", err)
	}
}
