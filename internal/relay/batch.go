package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/backfill"
	"github.com/tidegate-cdc/tidegate/internal/parking"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// releaseBytes bounds what one batch brings into memory, but for its last row.
const releaseBytes = 8 << 20

// batch makes rows for the pipeline of what the store lets out. It works in the background.
type batch struct {
	session *session
	store   *parking.Store
	ends    map[*publish.Stream]uint64

	rows    []*row
	bytes   int
	gone    []string         // a row's aggregate, for each row that has left the store already
	back    map[int64]string // rows that cannot even be read
	stopped map[string]int   // how many rows of an aggregate stay because of these
}

func (b *batch) prepare(ctx context.Context, rows []parking.Row) error {
	b.back, b.stopped = map[int64]string{}, map[string]int{}
	discarded, rest := split(rows, func(p *parking.Row) bool { return p.State == parking.StateDiscard })
	for i := range discarded {
		b.gone = append(b.gone, string(discarded[i].Aggregate))
	}
	if err := b.store.Discarded(ctx, idsOf(discarded)); err != nil {
		return err
	}
	rest, err := b.leaveOutStored(ctx, rest)
	if err != nil {
		return err
	}
	for i := range rest {
		if b.bytes > releaseBytes { // what was set aside by reference may be large: the others have their turn next
			break
		}
		if err := b.read(ctx, &rest[i]); err != nil {
			return err
		}
	}
	return b.announce(ctx)
}

// leaveOutStored removes the rows that an earlier process has published without saying so.
func (b *batch) leaveOutStored(ctx context.Context, rows []parking.Row) ([]parking.Row, error) {
	for st, end := range b.ends {
		from, doubtful := end, false
		for i := range rows {
			if p := &rows[i]; p.State == parking.StateReleasing && p.Stream == st.Name {
				from, doubtful = min(from, p.From), true
			}
		}
		if !doubtful {
			continue
		}
		tail, err := b.session.bridge.conn.ReadTail(ctx, st, from, b.session.bridge.cfg.Source.Name)
		if err != nil {
			return nil, fromNATS(err)
		}
		stored, rest := split(rows, func(p *parking.Row) bool {
			id := event.AppendMsgID(nil, b.session.bridge.cfg.Source.Name, p.Table, p.RowID)
			_, ok := tail.Has(id, nil, event.Position{})
			return ok && p.State == parking.StateReleasing && p.Stream == st.Name
		})
		if err := b.store.Released(ctx, idsOf(stored)); err != nil {
			return nil, err
		}
		for i := range stored {
			b.gone = append(b.gone, string(stored[i].Aggregate))
		}
		rows = rest
	}
	return rows, nil
}

// read makes a row for the pipeline. What cannot be read stays, and what is behind it in its aggregate.
func (b *batch) read(ctx context.Context, p *parking.Row) error {
	key := string(p.Aggregate)
	if key != "" && b.stopped[key] > 0 {
		b.stopped[key]++
		return nil
	}
	r, err := b.session.bridge.fromStore(ctx, b.session.keeper.conn, p)
	if stays := (*staysError)(nil); errors.As(err, &stays) {
		b.back[p.ID] = stays.Error()
		b.stopped[key]++
		return nil
	}
	if err == nil {
		b.rows = append(b.rows, r)
		b.bytes += r.event.Size()
	}
	return err
}

// announce records from where the streams will have to be read for the rows that are about to be sent.
func (b *batch) announce(ctx context.Context) error {
	for st, end := range b.ends {
		var ids []int64
		for _, r := range b.rows {
			if r.outbox.stream == st {
				ids = append(ids, r.parked)
			}
		}
		if err := b.store.Releasing(ctx, ids, st.Name, end); err != nil {
			return err
		}
	}
	return nil
}

// staysError says why a row cannot leave the store.
type staysError struct{ why string }

func (e *staysError) Error() string { return e.why }

// fromStore makes a row of one that was set aside, by the present configuration.
func (b *Bridge) fromStore(ctx context.Context, conn *pgx.Conn, p *parking.Row) (*row, error) {
	o := b.outboxOf(p.Table)
	if o == nil {
		return nil, &staysError{fmt.Sprintf("no outbox of the configuration is table %s", p.Table)}
	}
	columns, values := p.Columns, p.Values
	if columns == nil {
		var err error
		if columns, values, err = b.readLarge(ctx, conn, o, p); err != nil {
			return nil, err
		}
	}
	binding, err := o.table.BindColumns(columns)
	if err != nil {
		return nil, &staysError{err.Error()}
	}
	r := b.pool.get()
	r.outbox, r.parked = o, p.ID
	r.poison = binding.Fill(&r.event, values)
	r.pub.Late = true
	r.pub.Position, _ = event.ParsePosition(p.Position) // a row that was read from its table has none
	r.event.Position, r.event.CommittedAt, r.event.XID, r.event.Late = r.pub.Position, p.CommittedAt, 0, lateParked
	return r, nil
}

// readLarge reads a row that was set aside by reference from its table.
func (b *Bridge) readLarge(ctx context.Context, conn *pgx.Conn, o *outbox, p *parking.Row) ([]event.Column, decoder.Tuple, error) {
	table := backfill.Table{Table: o.table, OrderBy: o.orderBy}
	columns, values, err := backfill.One(ctx, conn, table, p.RowID)
	switch {
	case err != nil && slot.Transient(err):
		return nil, nil, err
	case err != nil:
		return nil, nil, &staysError{err.Error()}
	case values == nil:
		return nil, nil, &staysError{fmt.Sprintf("the row is larger than publish.max_row was, and is not in table %s any more", p.Table)}
	}
	size := 0
	for _, v := range values {
		size += len(v.Data)
	}
	if size > int(b.cfg.Publish.MaxRow) {
		return nil, nil, &staysError{fmt.Sprintf("the row has %d bytes, more than publish.max_row, %d", size, b.cfg.Publish.MaxRow)}
	}
	return columns, values, nil
}

func (b *Bridge) outboxOf(table string) *outbox {
	for _, o := range b.outboxes {
		if o.table.Name == table {
			return o
		}
	}
	return nil
}

func split(rows []parking.Row, first func(*parking.Row) bool) (yes, no []parking.Row) {
	for i := range rows {
		if first(&rows[i]) {
			yes = append(yes, rows[i])
		} else {
			no = append(no, rows[i])
		}
	}
	return yes, no
}

func idsOf(rows []parking.Row) []int64 {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	return ids
}
