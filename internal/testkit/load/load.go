// Package load is an application that writes outbox rows while tests break what is behind it.
package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Writer is an application: several connections that write transactions of outbox rows, some of them rolled back, some
// with savepoints that are, and one whose transactions stay open for long beside the others'. Each connection has its
// own aggregates, so that the order of seq is, for every aggregate, the order of the commits. It survives servers that
// go away; whether a transaction that was cut off was committed it does not know: the table tells.
type Writer struct {
	url  string
	stop context.CancelFunc
	done sync.WaitGroup
}

const (
	writers    = 3
	aggregates = 40 // of each writer
)

// Write starts writing about rate transactions a second until the test or End ends it.
func Write(t testing.TB, url string, rate int, seed uint64) *Writer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &Writer{url: url, stop: cancel}
	for i := range writers {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		w.done.Go(func() { w.work(ctx, time.Second*writers/time.Duration(rate), author{i, random, 0}) })
	}
	random := rand.New(rand.NewPCG(seed, writers))
	w.done.Go(func() { w.work(ctx, 200*time.Millisecond, author{writers, random, 300 * time.Millisecond}) })
	t.Cleanup(w.End)
	return w
}

// End stops writing; it may be called again.
func (w *Writer) End() {
	w.stop()
	w.done.Wait()
}

func (w *Writer) work(ctx context.Context, pause time.Duration, a author) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.Background())
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if conn == nil || conn.IsClosed() {
			var err error
			if conn, err = pgx.Connect(ctx, w.url); err != nil {
				conn = nil
				continue
			}
		}
		if err := a.transaction(ctx, conn); err != nil {
			_ = conn.Close(context.Background())
		}
	}
}

// author is one connection's hand: its aggregates, its dice, and how long it thinks between two rows.
type author struct {
	id     int
	random *rand.Rand
	thinks time.Duration
}

const insertRow = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', $1, 'changed', $2)"

// transaction writes one to four rows. One transaction in ten is rolled back; one in five has a part that is.
func (a author) transaction(ctx context.Context, conn *pgx.Conn) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	for range 1 + a.random.IntN(3) {
		if err := a.row(ctx, tx, "kept"); err != nil {
			return err
		}
	}
	if a.random.IntN(5) == 0 {
		if err := a.changesItsMind(ctx, tx); err != nil {
			return err
		}
	}
	if a.random.IntN(10) == 0 {
		return tx.Rollback(ctx)
	}
	return tx.Commit(ctx)
}

// changesItsMind writes a row behind a savepoint, takes it back, and writes another.
func (a author) changesItsMind(ctx context.Context, tx pgx.Tx) error {
	inner, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	if err := a.row(ctx, tx, "rolled back to a savepoint"); err != nil {
		return err
	}
	if err := inner.Rollback(ctx); err != nil {
		return err
	}
	return a.row(ctx, tx, "kept")
}

func (a author) row(ctx context.Context, tx pgx.Tx, kind string) error {
	aggregate := fmt.Sprintf("w%d-%d", a.id, a.random.IntN(aggregates))
	payload := fmt.Sprintf(`{"kind": %q, "n": %d}`, kind, a.random.Int32())
	if _, err := tx.Exec(ctx, insertRow, aggregate, payload); err != nil || a.thinks == 0 {
		return err
	}
	select {
	case <-time.After(a.thinks):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
