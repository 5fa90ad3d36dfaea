package relay

import (
	"context"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/backfill"
	"github.com/tidegate-cdc/tidegate/slot"
)

// lateInitial marks rows that are older than the slot.
const lateInitial = "initial"

// copySnapshot publishes the rows that are older than the slot: exactly those that its exported snapshot sees. The
// stream's gate stays shut until all of them are stored and the checkpoint says so.
func (s *session) copySnapshot(ctx context.Context) error {
	defer s.snapshot.Release()
	conn, err := slot.ConnectSQL(ctx, s.bridge.slot, "snapshot")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tx, err := backfill.Snapshot(ctx, conn, s.snapshot.Snapshot)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	s.snapshot.Release() // its walsender is needed no more: the transaction has the snapshot
	var count int64
	for _, o := range s.bridge.outboxes {
		table := backfill.Table{Table: o.table, OrderBy: o.orderBy}
		err := backfill.Read(ctx, tx, table, func(b *event.Binding, row decoder.Tuple) error {
			if count++; count%100_000 == 0 {
				s.log.Info("publishing rows older than the slot", "rows", count, "table", o.table.Name)
			}
			return s.copyRow(ctx, o, b, row, count)
		})
		if err != nil {
			return err
		}
	}
	s.log.Info("read the rows older than the slot", "rows", count)
	s.in.put(item{mark: s.snapshot.ConsistentPoint, end: s.snapshot.ConsistentPoint})
	return nil
}

// beforeAll, taken off a row's number in the copy, puts it before every row of the stream where it has to wait.
const beforeAll = 1 << 62

func (s *session) copyRow(ctx context.Context, o *outbox, b *event.Binding, values decoder.Tuple, number int64) error {
	if err := s.budget.wait(ctx); err != nil {
		return err
	}
	r := s.bridge.pool.get()
	r.outbox, r.ord = o, number-beforeAll
	r.fill(b, values)
	r.event.Position, r.event.CommittedAt, r.event.XID, r.event.Late = event.Position{}, time.Time{}, 0, lateInitial
	r.pub.Size = r.memory()
	s.budget.take(r.pub.Size)
	s.in.put(item{row: r})
	return nil
}

// copied reports whether everything older than the slot is stored.
func (s *session) copied() bool {
	return s.snapshot == nil || s.tracker.finished >= s.snapshot.ConsistentPoint
}
