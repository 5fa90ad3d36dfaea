package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/parking"
)

// parkRows parks rows as the bridge does: parkrows URL SLOT STATE:ID:AGGREGATE…, in this order. SLOT is the source and
// the slot, which must differ from test to test: slots are the cluster's.
func parkRows(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, args[0])
	ts.Check(err)
	defer conn.Close(ctx)
	store, err := parking.Open(ctx, conn, args[1], 100)
	ts.Check(err)
	var rows []parking.Row
	for i, arg := range args[2:] {
		part := strings.Split(arg, ":")
		rows = append(rows, parking.Row{
			Position: event.Position{Timeline: 1, Commit: 0x2000, Index: uint32(i)}.String(), Table: "public.outbox", RowID: []byte(part[1]),
			Aggregate:     event.AggregateKey(nil, "public.outbox", []byte("order"), []byte(part[2])),
			AggregateType: []byte("order"), AggregateID: []byte(part[2]), EventType: []byte("OrderPlaced"),
			Columns: []event.Column{{Name: "id", TypeOID: 2950}, {Name: "payload", TypeOID: 3802}, {Name: "headers", TypeOID: 3802}, {Name: "odd", TypeOID: 70000}, {Name: "none", TypeOID: 25}},
			Values: decoder.Tuple{
				{Kind: decoder.ValueText, Data: []byte(part[1])},
				{Kind: decoder.ValueText, Data: []byte(`{"text": "` + strings.Repeat("ä", 500) + `"}`)},
				{Kind: decoder.ValueNull},
				{Kind: decoder.ValueText, Data: []byte("\xff\x1b[31m")},
				{Kind: decoder.ValueText, Data: []byte{}},
			},
			CommittedAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), State: parking.State(part[0]), Attempts: 1, Reason: "publish row: header \x1b[31m is not allowed",
		})
		if part[0] == "large" {
			rows[i].State, rows[i].Columns, rows[i].Values, rows[i].Aggregate, rows[i].AggregateID, rows[i].AggregateType = parking.StateParked, nil, nil, nil, nil, nil
		}
	}
	_, _, err = store.Park(ctx, rows)
	ts.Check(err)
}

// startBridge stands for a running bridge until the end of the script: bridge URL SLOT WHAT, where WHAT is publish, to
// publish what may go on, or refuse, to park it again, or idle. It holds the slot.
func startBridge(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := pgx.Connect(ctx, args[0])
	ts.Check(err)
	_, err = conn.Exec(ctx, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", args[1])
	ts.Check(err)
	_, err = conn.Exec(ctx, "CREATE PUBLICATION held")
	ts.Check(err)
	walsender := holdSlot(ctx, ts, args[0], args[1])
	store, err := parking.Open(ctx, conn, args[1], 100)
	ts.Check(err)
	ended := make(chan error, 1)
	go func() { ended <- actAsBridge(ctx, store, args[2]) }()
	ts.Defer(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			ts.Logf("bridge: %v", err)
		}
		walsender.Close(context.Background())
		conn.Close(context.Background())
	})
}

func holdSlot(ctx context.Context, ts *testscript.TestScript, at, slot string) *pgconn.PgConn {
	u, err := url.Parse(at)
	ts.Check(err)
	query := u.Query()
	query.Set("replication", "database")
	u.RawQuery = query.Encode()
	walsender, err := pgconn.Connect(ctx, u.String())
	ts.Check(err)
	ts.Check(pglogrepl.StartReplication(ctx, walsender, slot, 0, pglogrepl.StartReplicationOptions{PluginArgs: []string{"proto_version '1'", "publication_names 'held'"}}))
	return walsender
}

func actAsBridge(ctx context.Context, store *parking.Store, what string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if what == "idle" {
			continue
		}
		rows, err := store.Releasable(ctx, "F", true, false, 10)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := settleRow(ctx, store, r, what); err != nil {
				return err
			}
		}
	}
}

func settleRow(ctx context.Context, store *parking.Store, r parking.Row, what string) error {
	ids := []int64{r.ID}
	if r.State == parking.StateDiscard {
		return store.Discarded(ctx, ids)
	}
	if err := store.Releasing(ctx, ids, "OUTBOX", 1); err != nil {
		return err
	}
	if what == "refuse" {
		return store.Repark(ctx, r.ID, fmt.Sprintf("publish row %s: it is still too large", r.RowID))
	}
	return store.Released(ctx, ids)
}
