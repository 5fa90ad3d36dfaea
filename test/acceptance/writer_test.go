package acceptance_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// writer is an application: several connections that write transactions of outbox rows, some of them rolled back,
// some with savepoints that are. Each connection has its own aggregates, so that the order of seq is, for every
// aggregate, the order of the commits. It survives servers that go away; whether a transaction that was cut off was
// committed it does not know: the table tells.
type writer struct {
	url       string
	stop      context.CancelFunc
	done      sync.WaitGroup
	committed atomic.Int64
}

const (
	writers    = 3
	aggregates = 40 // of each writer
)

// write starts writing about rate transactions a second.
func write(t *testing.T, url string, rate int) *writer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &writer{url: url, stop: cancel}
	seed := uint64(time.Now().UnixNano())
	t.Logf("writer seed %d", seed)
	for i := range writers {
		w.done.Go(func() {
			w.work(ctx, i, time.Second*writers/time.Duration(rate), rand.New(rand.NewPCG(seed, uint64(i))))
		})
	}
	t.Cleanup(w.end)
	return w
}

// end stops writing; it may be called again.
func (w *writer) end() {
	w.stop()
	w.done.Wait()
}

func (w *writer) work(ctx context.Context, id int, pause time.Duration, random *rand.Rand) {
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
		if err := w.transaction(ctx, conn, id, random); err != nil {
			_ = conn.Close(context.Background())
		}
	}
}

const insertRow = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', $1, 'changed', $2)"

// transaction writes one to four rows. One transaction in ten is rolled back; one in five has a part that is.
func (w *writer) transaction(ctx context.Context, conn *pgx.Conn, id int, random *rand.Rand) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	row := func(kind string) error {
		aggregate := fmt.Sprintf("w%d-%d", id, random.IntN(aggregates))
		_, err := tx.Exec(ctx, insertRow, aggregate, fmt.Sprintf(`{"kind": %q, "n": %d}`, kind, random.Int32()))
		return err
	}
	for range 1 + random.IntN(3) {
		if err := row("kept"); err != nil {
			return err
		}
	}
	if random.IntN(5) == 0 {
		inner, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if err := row("rolled back to a savepoint"); err != nil {
			return err
		}
		if err := inner.Rollback(ctx); err != nil {
			return err
		}
		if err := row("kept"); err != nil {
			return err
		}
	}
	if random.IntN(10) == 0 {
		return tx.Rollback(ctx)
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	w.committed.Add(1)
	return nil
}
