package relay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/event"
)

// checkShapes binds every outbox to its table as the catalog describes it, so that a wrong mapping is known at the first
// start and not at the first row, which may come days later. It says nothing about a slot that exists: rows written in
// an earlier shape may wait in it. A table that does not exist is for the publication's check.
func (b *Bridge) checkShapes(ctx context.Context, sql *pgx.Conn) error {
	for _, o := range b.outboxes {
		columns, err := catalogColumns(ctx, sql, o.table.Name)
		if err != nil {
			return fmt.Errorf("read columns of %s: %w", o.table.Name, err)
		}
		if len(columns) == 0 {
			continue
		}
		if _, err := o.table.BindColumns(columns); err != nil {
			return err
		}
		if o.orderBy != "" && !slices.ContainsFunc(columns, func(c event.Column) bool { return c.Name == o.orderBy }) {
			return &event.SchemaError{Table: o.table.Name, Column: o.orderBy, Reason: "it is named by order_by, but the table does not have it"}
		}
	}
	return nil
}

// catalogColumns reads a table's columns without any privilege on it. A domain has the type that it is over.
func catalogColumns(ctx context.Context, sql *pgx.Conn, table string) ([]event.Column, error) {
	schema, name, _ := strings.Cut(table, ".")
	const query = `SELECT a.attname, coalesce(nullif(t.typbasetype, 0), t.oid)
		FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
		JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`
	rows, err := sql.Query(ctx, query, schema, name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (event.Column, error) {
		var c event.Column
		err := row.Scan(&c.Name, &c.TypeOID)
		return c, err
	})
}
