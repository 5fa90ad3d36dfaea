package parking

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
)

// fields are the columns that scanRow reads, of the table under the name p.
const fields = `p.id, p.position, p.ord, p.table_name, p.row_id, p.aggregate, p.aggregate_type, p.aggregate_id, p.event_type,
       p.columns, p.types, p.vals, p.committed_at, p.xid, p.state, p.attempts, p.last_error, coalesce(p.stream, ''), coalesce(p.from_seq, 0),
       p.parked_at, p.changed_at`

// withoutContent is fields for those who do not look into the rows: all seem to be parked by reference.
const withoutContent = `p.id, p.position, p.ord, p.table_name, p.row_id, p.aggregate, p.aggregate_type, p.aggregate_id, p.event_type,
       NULL::text[], NULL::bigint[], NULL::bytea[], p.committed_at, p.xid, p.state, p.attempts, p.last_error, coalesce(p.stream, ''), coalesce(p.from_seq, 0),
       p.parked_at, p.changed_at`

func scanRow(from pgx.CollectableRow) (Row, error) {
	var (
		r         Row
		columns   []string
		types     []int64
		values    [][]byte
		committed *time.Time
		xid, seq  int64
	)
	err := from.Scan(&r.ID, &r.Position, &r.Ord, &r.Table, &r.RowID, &r.Aggregate, &r.AggregateType, &r.AggregateID, &r.EventType,
		&columns, &types, &values, &committed, &xid, &r.State, &r.Attempts, &r.Reason, &r.Stream, &seq, &r.ParkedAt, &r.ChangedAt)
	if err != nil {
		return r, err
	}
	r.XID, r.From = uint32(xid), uint64(seq)
	if committed != nil {
		r.CommittedAt = *committed
	}
	if columns != nil && len(columns) == len(types) && len(columns) == len(values) {
		r.Columns, r.Values = make([]event.Column, len(columns)), make(decoder.Tuple, len(columns))
	}
	for i := range r.Columns {
		r.Columns[i] = event.Column{Name: columns[i], TypeOID: uint32(types[i])}
		r.Values[i] = decoder.Value{Kind: decoder.ValueText, Data: values[i]}
		if values[i] == nil {
			r.Values[i].Kind = decoder.ValueNull
		}
	}
	return r, nil
}
