package parking

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
)

const insert = `INSERT INTO tidegate.parked (source, position, ord, table_name, row_id, aggregate, aggregate_type, aggregate_id, event_type,
       columns, types, vals, bytes, committed_at, xid, state, attempts, last_error, stream, from_seq)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, nullif($19, ''), nullif($20::bigint, 0))
ON CONFLICT (source, position) DO NOTHING`

// Park puts rows in and tells which of them were new: one whose position is there already, in whatever state, is left as
// it is. All rows are on disk when it returns, also those that were there; lsn is at or past the commit records. When
// more than the allowed rows would be unresolved, it is a *FullError and none was put in.
func (s *Store) Park(ctx context.Context, rows []Row) (inserted []bool, lsn decoder.LSN, err error) {
	if len(rows) == 0 {
		return nil, 0, nil
	}
	var batch pgx.Batch
	for i := range rows {
		args, err := s.insertArgs(&rows[i])
		if err != nil {
			return nil, 0, fmt.Errorf("park row %d of %d: %w", i+1, len(rows), err)
		}
		batch.Queue(insert, args...)
	}
	err = s.durably(ctx, "park rows", func(tx pgx.Tx) error {
		inserted, err = s.insert(ctx, tx, &batch)
		if err != nil {
			return err
		}
		return s.flushExisting(ctx, tx, rows, inserted)
	})
	if err != nil {
		return nil, 0, err
	}
	lsn, err = s.flushed(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("park rows: %w", err)
	}
	return inserted, lsn, nil
}

func (s *Store) insert(ctx context.Context, tx pgx.Tx, batch *pgx.Batch) (inserted []bool, err error) {
	var before int
	const count = "SELECT count(*)::int FROM tidegate.parked WHERE source = $1 AND state <> 'discarded'"
	if err := tx.QueryRow(ctx, count, s.source).Scan(&before); err != nil {
		return nil, err
	}
	results := tx.SendBatch(ctx, batch)
	after := before
	for range batch.Len() {
		tag, err := results.Exec()
		if err != nil {
			return nil, errors.Join(err, results.Close())
		}
		inserted = append(inserted, tag.RowsAffected() == 1)
		after += int(tag.RowsAffected())
	}
	if err := results.Close(); err != nil {
		return nil, err
	}
	if after > before && after > s.maxRows {
		return nil, &FullError{Rows: after, Max: s.maxRows}
	}
	return inserted, nil
}

// flushExisting locks the rows that were there. That writes WAL: a transaction that wrote none would not wait for the
// disk, nor for a synchronous standby, and who put the rows in may have been cut off while it waited.
func (s *Store) flushExisting(ctx context.Context, tx pgx.Tx, rows []Row, inserted []bool) error {
	var existing []string
	for i := range rows {
		if !inserted[i] {
			existing = append(existing, rows[i].Position)
		}
	}
	if len(existing) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, "SELECT FROM tidegate.parked WHERE source = $1 AND position = ANY($2) FOR UPDATE", s.source, existing)
	return err
}

func (s *Store) flushed(ctx context.Context) (decoder.LSN, error) {
	var text string
	if err := s.conn.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&text); err != nil {
		return 0, err
	}
	return decoder.ParseLSN(text)
}

func (s *Store) insertArgs(r *Row) ([]any, error) {
	if r.Position == "" || !utf8.ValidString(r.Position) {
		return nil, fmt.Errorf("position %q is none", r.Position)
	}
	columns, types, values, size, err := s.content(r)
	if err != nil {
		return nil, err
	}
	var committed *time.Time
	if !r.CommittedAt.IsZero() {
		committed = &r.CommittedAt
	}
	return []any{
		s.source, r.Position, r.Ord, s.clean(r.Table), r.RowID, notNil(r.Aggregate), r.AggregateType, r.AggregateID, r.EventType,
		columns, types, values, size, committed, int64(r.XID), string(r.State), r.Attempts, s.clean(short(r.Reason)), r.Stream, int64(r.From),
	}, nil
}

// content gives the row's columns and values as arrays, nil ones of a row that is parked by reference.
func (s *Store) content(r *Row) (columns []string, types []int64, values [][]byte, size int64, err error) {
	if r.ByReference() {
		return nil, nil, nil, 0, nil
	}
	if len(r.Columns) != len(r.Values) {
		return nil, nil, nil, 0, fmt.Errorf("%d columns and %d values", len(r.Columns), len(r.Values))
	}
	columns, types, values = []string{}, []int64{}, [][]byte{}
	for i, v := range r.Values {
		var data []byte
		switch v.Kind {
		case decoder.ValueText:
			data = notNil(v.Data)
		case decoder.ValueNull:
		default:
			return nil, nil, nil, 0, fmt.Errorf("column %s: kind %q of value is neither text nor null", r.Columns[i].Name, byte(v.Kind))
		}
		size += int64(len(data))
		// A name that is no text of this database's cannot have been configured: no mapping looks for it.
		columns, types, values = append(columns, s.clean(r.Columns[i].Name)), append(types, int64(r.Columns[i].TypeOID)), append(values, data)
	}
	return columns, types, values, size, nil
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// clean makes text what every database takes: a row must not fail to be parked because of a character in its reason.
func (s *session) clean(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if !s.ascii || isASCII(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

const maxReason = 4000 // bytes

func short(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "") + "…"
}
