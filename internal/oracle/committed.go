package oracle

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/event"
)

// Table says how an outbox's rows are read.
type Table struct {
	Source string // the source's name in the messages' ids
	Name   string // schema.table

	ID            string // column
	AggregateType string // column; empty: Collection is the aggregate type of every row
	Collection    string
	AggregateID   string // column

	// OrderBy is a column whose order is the commit order within each aggregate. A number that a sequence hands out
	// at insert is one only where no two transactions write one aggregate at once, for example because each locks
	// the aggregate's own row first: otherwise the one that inserts first may commit second, and the Report counts
	// correct messages as out of order.
	OrderBy string
}

// Outbox is the generic outbox of the migrations.
func Outbox(source string) Table {
	return Table{
		Source: source, Name: "public.outbox", ID: "id",
		AggregateType: "aggregate_type", AggregateID: "aggregate_id", OrderBy: "seq",
	}
}

// FeatureOutbox is the feature outbox of the migrations.
func FeatureOutbox(source string) Table {
	return Table{
		Source: source, Name: "public.feature_outbox", ID: "id",
		Collection: "features", AggregateID: "feature_id", OrderBy: "id",
	}
}

// Committed writes down every row of an outbox that is committed now. The writers should have ended: a row committed
// later counts as Extra once its message is seen.
func (l *Ledger) Committed(ctx context.Context, conn *pgx.Conn, table Table) error {
	rows, err := conn.Query(ctx, table.query())
	if err != nil {
		return fmt.Errorf("read %s: %w", table.Name, err)
	}
	var id, aggregateType, aggregateID string
	_, err = pgx.ForEachRow(rows, []any{&id, &aggregateType, &aggregateID}, func() error {
		msgID := event.AppendMsgID(nil, table.Source, table.Name, []byte(id))
		key := event.AggregateKey(nil, table.Name, []byte(aggregateType), []byte(aggregateID))
		return l.Commit(string(msgID), string(key))
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", table.Name, err)
	}
	return nil
}

func (t Table) query() string {
	kind := "'" + strings.ReplaceAll(t.Collection, "'", "''") + "'"
	if t.AggregateType != "" {
		kind = column(t.AggregateType)
	}
	return fmt.Sprintf("SELECT %s::text, %s::text, %s::text FROM %s AS o ORDER BY o.%s",
		column(t.ID), kind, column(t.AggregateID), pgx.Identifier(strings.SplitN(t.Name, ".", 2)).Sanitize(), column(t.OrderBy))
}

func column(name string) string { return pgx.Identifier{name}.Sanitize() }
