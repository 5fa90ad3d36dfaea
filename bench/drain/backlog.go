package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

const (
	publication = "drain"
	backlogSlot = "drain_backlog"
	// fillers is how many sessions write the backlog, so that its transactions interleave as an application's do.
	fillers = 4
	// leastPayload is the room that a payload's own fields need.
	leastPayload = 160
)

// outboxTable has the columns of the generic outbox (migrations/).
const outboxTable = `
CREATE TABLE outbox (
	id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1) UNIQUE,
	aggregate_type text NOT NULL, aggregate_id text NOT NULL, event_type text NOT NULL,
	payload jsonb, headers jsonb, traceparent text,
	created_at timestamptz NOT NULL DEFAULT now(), published_at timestamptz);
CREATE PUBLICATION drain FOR TABLE outbox WITH (publish = 'insert', publish_via_partition_root = true);
-- A row of an order: the aggregate is chosen at random, but alike in every run; the payload is padded to its size.
CREATE PROCEDURE add_row(i bigint, aggregates int, size int) LANGUAGE plpgsql AS $$
DECLARE
	aggregate text := 'order-' || (hashint8(i)::bigint + 2147483648) % aggregates;
	payload text := format('{"note": "", "total": "%s.90", "status": "placed", "customer": "customer-%s", "order_id": "%s", "line_count": %s}',
		lpad((i % 1000)::text, 3, '1'), lpad(i::text, 12, '0'), lpad(aggregate, 18), i % 9 + 1);
BEGIN
	INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
	VALUES ('order', aggregate, 'OrderPlaced', replace(payload, '"note": ""', '"note": "' || repeat('x', size - length(payload)) || '"')::jsonb);
END $$;
CREATE PROCEDURE add_rows(first bigint, last bigint, per_tx int, aggregates int, size int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first..last LOOP
		CALL add_row(i, aggregates, size);
		IF (i - first + 1) % per_tx = 0 THEN COMMIT; END IF;
	END LOOP;
END $$`

// backlog is a filled outbox behind a slot that nobody reads; contenders get copies of the slot.
type backlog struct {
	g     *ground
	shape shape
	rows  int
	end   string // LSN behind the last row
}

// fill makes the backlog of one shape.
func (g *ground) fill(ctx context.Context, s shape, o *options) (*backlog, error) {
	if _, err := g.sql.Exec(ctx, "DROP TABLE IF EXISTS outbox; DROP PROCEDURE IF EXISTS add_row, add_rows; DROP PUBLICATION IF EXISTS drain;"+outboxTable); err != nil {
		return nil, fmt.Errorf("make outbox: %w", err)
	}
	if _, err := g.sql.Exec(ctx, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", backlogSlot); err != nil {
		return nil, fmt.Errorf("make slot: %w", err)
	}
	var fill errgroup.Group
	per := (o.rows + fillers - 1) / fillers
	for first := 1; first <= o.rows; first += per {
		fill.Go(func() error { return g.addRows(ctx, first, min(first+per-1, o.rows), s, o) })
	}
	if err := fill.Wait(); err != nil {
		return nil, fmt.Errorf("fill outbox: %w", err)
	}
	b := &backlog{g: g, shape: s, rows: o.rows}
	return b, b.check(ctx, o.payload)
}

func (g *ground) addRows(ctx context.Context, first, last int, s shape, o *options) error {
	conn, err := g.postgres.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// The simple protocol: a procedure that commits cannot run inside a transaction block.
	_, err = conn.Exec(ctx, "CALL add_rows($1, $2, $3, $4, $5)", pgx.QueryExecModeSimpleProtocol, first, last, s.perTx, o.aggregates, o.payload)
	return err
}

// check makes sure that the backlog is what it is said to be, and brings the cluster to rest.
func (b *backlog) check(ctx context.Context, payload int) error {
	var rows, least, most int
	err := b.g.sql.QueryRow(ctx, "SELECT count(*), min(length(payload::text)), max(length(payload::text)) FROM outbox").Scan(&rows, &least, &most)
	if err != nil {
		return fmt.Errorf("check outbox: %w", err)
	}
	if rows != b.rows || least != payload || most != payload {
		return fmt.Errorf("check outbox: it has %d rows with payloads of %d to %d bytes, want %d rows of %d bytes", rows, least, most, b.rows, payload)
	}
	if _, err := b.g.sql.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return b.g.sql.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&b.end)
}

// copySlot gives a contender its own slot on the same backlog.
func (b *backlog) copySlot(ctx context.Context, name string) error {
	if _, err := b.g.sql.Exec(ctx, "SELECT pg_copy_logical_replication_slot($1, $2)", backlogSlot, name); err != nil {
		return fmt.Errorf("copy slot: %w", err)
	}
	return nil
}

// dropSlot drops a slot once its walsender is gone.
func (g *ground) dropSlot(ctx context.Context, name string) error {
	deadline := time.Now().Add(stopTimeout)
	for {
		pid, err := g.walsender(ctx, name)
		if err != nil {
			return err
		}
		if pid == 0 || time.Now().After(deadline) {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
	if _, err := g.sql.Exec(ctx, "SELECT pg_drop_replication_slot($1)", name); err != nil {
		return fmt.Errorf("drop slot: %w", err)
	}
	return nil
}

// walsender is the process id of a slot's walsender, 0 while it has none.
func (g *ground) walsender(ctx context.Context, slot string) (pid int, err error) {
	err = g.sql.QueryRow(ctx, "SELECT coalesce(max(active_pid), 0) FROM pg_replication_slots WHERE slot_name = $1", slot).Scan(&pid)
	if err != nil {
		return 0, fmt.Errorf("look at slot %s: %w", slot, err)
	}
	return pid, nil
}

// awaitWalsender waits until p has the slot: from then on it is fed, and its time runs.
func (g *ground) awaitWalsender(ctx context.Context, slot string, p *process) (pid int, began time.Time, err error) {
	bounded, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = poll(bounded, "wait for "+p.name+" to take its slot", p, func() (bool, error) {
		pid, err = g.walsender(bounded, slot)
		return pid != 0, err
	})
	return pid, time.Now(), err
}
