// Package backfill reads outbox rows from their table: those that a stream does not have. It is the one way from a
// table to events, whatever makes it necessary.
package backfill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
)

// Table is an outbox and the column that tells the order of its rows.
type Table struct {
	*event.Table
	// OrderBy is the configured column; "" lets Read find one: seq, or an id that is an integer.
	OrderBy string
}

// OrderError says that nothing tells in which order a table's rows were written.
type OrderError struct{ Table string }

func (e *OrderError) Error() string {
	return fmt.Sprintf("read table %s: no column tells the order of its rows: it has no seq, and its id is no integer", e.Table)
}

// Hint says what can be done about it.
func (e *OrderError) Hint() string {
	return "add one: ALTER TABLE " + e.Table + " ADD COLUMN seq bigint GENERATED ALWAYS AS IDENTITY (CACHE 1); or name one with outboxes[].order_by"
}

// Snapshot opens a read-only transaction that sees exactly what the exported snapshot sees. Row security is off: a
// role that may not see every row gets an error and not fewer rows.
func Snapshot(ctx context.Context, conn *pgx.Conn, snapshot string) (pgx.Tx, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, fmt.Errorf("begin reading the snapshot: %w", err)
	}
	// The name comes from the server and is quoted as a literal: SET takes no parameters.
	literal := "'" + strings.ReplaceAll(snapshot, "'", "''") + "'"
	if err := prepare(ctx, tx, "SET TRANSACTION SNAPSHOT "+literal, "SET LOCAL statement_timeout = 0"); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare reading the snapshot: %w", err), tx.Rollback(ctx))
	}
	return tx, nil
}

// prepare lets a transaction read every row, in the form that the replication stream would carry.
func prepare(ctx context.Context, tx pgx.Tx, first ...string) error {
	for _, statement := range append(first,
		"SET LOCAL row_security = off",
		"SET LOCAL TimeZone = 'UTC'", "SET LOCAL DateStyle = 'ISO'", "SET LOCAL bytea_output = 'hex'", "SET LOCAL extra_float_digits = 3",
	) {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Read gives every row of the table to each, in its order, as text values. The tuple is valid during the call only.
func Read(ctx context.Context, tx pgx.Tx, t Table, each func(*event.Binding, decoder.Tuple) error) error {
	name := pgx.Identifier(strings.SplitN(t.Name, ".", 2)).Sanitize()
	columns, err := describe(ctx, tx, name)
	if err != nil {
		return fmt.Errorf("read table %s: %w", t.Name, err)
	}
	binding, err := t.BindColumns(columns)
	if err != nil {
		return err
	}
	order, err := t.order(binding)
	if unordered := (*OrderError)(nil); errors.As(err, &unordered) {
		var rows bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+name+")").Scan(&rows); err != nil {
			return fmt.Errorf("read table %s: %w", t.Name, err)
		}
		if !rows { // nothing has to be put in order
			return nil
		}
	}
	if err != nil {
		return err
	}
	// Without the table's name ORDER BY would mean the column of the result, which is text: 10 before 9.
	sql := selection(name, columns) + " ORDER BY t." + pgx.Identifier{order}.Sanitize()
	if err := readRows(ctx, tx, sql, binding, each); err != nil {
		return fmt.Errorf("read table %s: %w", t.Name, err)
	}
	return nil
}

func readRows(ctx context.Context, tx pgx.Tx, sql string, b *event.Binding, each func(*event.Binding, decoder.Tuple) error) error {
	rows, err := tx.Query(ctx, sql, pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return err
	}
	defer rows.Close()
	var tuple decoder.Tuple
	for rows.Next() {
		tuple = tupleOf(tuple[:0], rows.RawValues())
		if err := each(b, tuple); err != nil {
			return err
		}
	}
	return rows.Err()
}

// tupleOf appends a result's row to tuple; nothing is copied.
func tupleOf(tuple decoder.Tuple, raw [][]byte) decoder.Tuple {
	for _, v := range raw {
		value := decoder.Value{Kind: decoder.ValueText, Data: v}
		if v == nil {
			value.Kind = decoder.ValueNull
		}
		tuple = append(tuple, value)
	}
	return tuple
}

// describe gives the names and types of a table's columns, without reading a row.
func describe(ctx context.Context, tx pgx.Tx, name string) ([]event.Column, error) {
	rows, err := tx.Query(ctx, "SELECT * FROM "+name+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	rows.Close()
	return toColumns(rows.FieldDescriptions()), rows.Err()
}

func toColumns(fields []pgconn.FieldDescription) []event.Column {
	columns := make([]event.Column, len(fields))
	for i, f := range fields {
		columns[i] = event.Column{Name: f.Name, TypeOID: f.DataTypeOID}
	}
	return columns
}

func (t Table) order(b *event.Binding) (string, error) {
	columns := b.Columns()
	want := t.OrderBy
	for _, c := range columns {
		switch {
		case want != "" && c.Name == want:
			return want, nil
		case want == "" && c.Name == "seq":
			return c.Name, nil
		}
	}
	if want != "" {
		return "", &event.SchemaError{Table: t.Name, Column: want, Reason: "it is named by order_by, but the table does not have it"}
	}
	for _, c := range columns {
		if c.Name == b.IDColumn() && (c.TypeOID == pgtype.Int8OID || c.TypeOID == pgtype.Int4OID || c.TypeOID == pgtype.Int2OID) {
			return c.Name, nil
		}
	}
	return "", &OrderError{t.Name}
}

// selection selects every column of a table, which it calls t, as the text that the replication stream would carry.
func selection(name string, columns []event.Column) string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pgx.Identifier{c.Name}.Sanitize())
		b.WriteString("::text")
	}
	b.WriteString(" FROM ")
	b.WriteString(name)
	b.WriteString(" AS t")
	return b.String()
}
