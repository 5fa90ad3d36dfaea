package relay

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/parking"
	"github.com/tidegate-cdc/tidegate/slot"
)

// keeper is a session's way to the rows that are set aside in the source database. One job uses it at a time; the
// connection is made again by the job that finds it broken.
type keeper struct {
	slot    slot.Config
	source  string
	maxRows int

	conn  *pgx.Conn
	store *parking.Store
}

// keepTimeout bounds one job: a connection that died without a word must not be waited for.
const keepTimeout = 30 * time.Second

// do runs a job on a working connection. The job may be run again after an error: everything in a store is safe to repeat.
func (k *keeper) do(ctx context.Context, job func(context.Context, *parking.Store) error) error {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	if k.conn == nil || k.conn.IsClosed() {
		conn, err := slot.ConnectSQL(ctx, k.slot, "parking")
		if err != nil {
			return err
		}
		store, err := parking.Open(ctx, conn, k.source, k.maxRows)
		if err != nil {
			return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
		}
		k.conn, k.store = conn, store
	}
	err := job(ctx, k.store)
	if err != nil && !isFull(err) { // whatever it was, nothing of it is carried over
		k.close()
	}
	return err
}

func (k *keeper) close() {
	if k != nil && k.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = k.conn.Close(ctx)
		k.conn = nil
	}
}

func isFull(err error) bool {
	var full *parking.FullError
	return errors.As(err, &full)
}

// judgeParking says what an error of the store means.
func judgeParking(err error) (int, string, bool) {
	var (
		missing   *parking.MissingError
		privilege *parking.PrivilegeError
		changed   *parking.ChangedError
	)
	switch {
	case errors.As(err, &missing):
		return exit.Postgres, missing.Hint(), true
	case errors.As(err, &privilege):
		return exit.Postgres, privilege.Hint(), true
	case errors.As(err, &changed): // an operator was faster: what there is to do is looked for anew
		return transient, "", true
	}
	return 0, "", false
}

// toKeep describes a row to the store. A row that is not poison itself waits behind one that is.
func toKeep(r *row) parking.Row {
	p := parking.Row{
		Position: placeOf(r), Ord: r.ord, Table: r.outbox.table.Name,
		RowID: r.event.ID, AggregateType: r.event.AggregateType, AggregateID: r.event.AggregateID, EventType: r.event.EventType,
		CommittedAt: r.event.CommittedAt, XID: r.event.XID, Stream: r.outbox.streamName, State: parking.StateHeld,
	}
	if hasAggregate(r) {
		p.Aggregate = r.pub.Aggregate
	}
	if r.poison != nil {
		p.State, p.Reason = parking.StateParked, r.poison.Error()
	}
	switch {
	case r.whole != nil:
		p.Columns, p.Values = r.whole.columns, r.whole.values
	case !isOversize(r.poison):
		p.Columns, p.Values = r.event.Row()
	}
	return p
}

// placeOf is what tells a row from all others of its source, whenever it comes again.
func placeOf(r *row) string {
	if r.pub.Position.IsZero() {
		return parking.TablePosition(r.outbox.table.Name, r.event.ID)
	}
	return r.pub.Position.String()
}

func isOversize(err error) bool {
	var large *slot.TooLargeError
	return errors.As(err, &large)
}

// hasAggregate reports whether it is known of which aggregate a row is. Of one that was framed past, or lacks it, it may
// not be.
func hasAggregate(r *row) bool { return r.event.AggregateID != nil && r.event.AggregateType != nil }

// whole is a row with all its columns, for one that could not be read as configured: the mapping may be what changes.
type whole struct {
	columns []event.Column
	values  decoder.Tuple
}

func wholeOf(columns []event.Column, values decoder.Tuple) *whole {
	w := &whole{columns: columns, values: make(decoder.Tuple, len(values))}
	for i, v := range values {
		w.values[i] = v
		if v.Data != nil {
			w.values[i].Data = append([]byte{}, v.Data...)
		}
	}
	return w
}

func (w *whole) size() int {
	n := 0
	for i := range w.values {
		n += len(w.values[i].Data) + int(unsafe.Sizeof(w.values[i]))
	}
	return n
}
