package backfill

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
)

// One reads the row that has an id, as Read would give it, with values of its own; nil values say that there is none.
func One(ctx context.Context, conn *pgx.Conn, t Table, id []byte) (columns []event.Column, values decoder.Tuple, err error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, nil, fmt.Errorf("read a row of %s: %w", t.Name, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := prepare(ctx, tx); err != nil {
		return nil, nil, fmt.Errorf("read a row of %s: %w", t.Name, err)
	}
	name := pgx.Identifier(strings.SplitN(t.Name, ".", 2)).Sanitize()
	if columns, err = describe(ctx, tx, name); err != nil {
		return nil, nil, fmt.Errorf("read a row of %s: %w", t.Name, err)
	}
	binding, err := t.BindColumns(columns)
	if err != nil {
		return nil, nil, err
	}
	// By equality of the column itself, so that its index serves: the text is taken for a value of the column's type.
	sql := selection(name, columns) + " WHERE t." + pgx.Identifier{binding.IDColumn()}.Sanitize() + " = $1"
	rows, err := tx.Query(ctx, sql, pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode}, string(id))
	if err != nil {
		return nil, nil, fmt.Errorf("read a row of %s: %w", t.Name, err)
	}
	defer rows.Close()
	if rows.Next() {
		for _, v := range tupleOf(nil, rows.RawValues()) {
			v.Data = append([]byte(nil), v.Data...)
			values = append(values, v)
		}
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, nil, fmt.Errorf("read a row of %s: %w", t.Name, err)
	}
	return columns, values, nil
}
