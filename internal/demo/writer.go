package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

const (
	writers = 8
	// stuck is when a transaction of the writer counts as stuck.
	stuck = 30 * time.Second
)

// write runs the writers until ctx ends or the bridge does, with a constant number of transactions a second in all. A transaction that
// has begun is always finished, so that a row is either committed or rolled back, and known as such.
func write(ctx context.Context, url string, perSecond float64, l *ledger, ended <-chan struct{}) error {
	limiter := rate.NewLimiter(rate.Limit(perSecond), int(min(max(1, perSecond/100), 1000)))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return nil
		}
	})
	for i := range writers {
		group.Go(func() error {
			conn, err := pgx.Connect(context.WithoutCancel(ctx), url)
			if err != nil {
				return fmt.Errorf("connect writer: %w", err)
			}
			defer conn.Close(context.WithoutCancel(ctx))
			w := &writer{conn: conn, rand: rand.New(rand.NewPCG(rand.Uint64(), uint64(i))), ledger: l}
			return w.run(ctx, limiter)
		})
	}
	return group.Wait()
}

// writer is one session of an application that edits features and takes orders.
type writer struct {
	conn   *pgx.Conn
	rand   *rand.Rand
	ledger *ledger
	world  world
}

// world is what the writer's own features and orders are, as far as they are not finished.
type world struct {
	features []feature
	orders   []order
}

func (s world) clone() world { return world{slices.Clone(s.features), slices.Clone(s.orders)} }

func (w *writer) run(ctx context.Context, limiter *rate.Limiter) error {
	for limiter.Wait(ctx) == nil {
		if err := w.transaction(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// transaction makes one to three changes. One transaction in ten is rolled back, one in ten rolls a part of itself
// back to a savepoint, one in ten keeps what it did behind a savepoint.
func (w *writer) transaction(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stuck)
	defer cancel()
	before := w.world.clone()
	tx, err := w.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // without effect after a commit
	rows, err := w.changes(ctx, tx, 1+w.rand.IntN(2))
	if err != nil {
		return err
	}
	chance := w.rand.IntN(10)
	if chance == 1 || chance == 2 {
		kept, err := w.savepoint(ctx, tx, chance == 1)
		if err != nil {
			return err
		}
		rows = append(rows, kept...)
	}
	if chance == 0 {
		w.world = before
		w.ledger.rollBack(rows)
		return tx.Rollback(ctx)
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	w.ledger.commit(rows, time.Now())
	return nil
}

// savepoint makes a change behind a savepoint and keeps it, or rolls it back. It gives the rows that were kept.
func (w *writer) savepoint(ctx context.Context, tx pgx.Tx, keep bool) ([]string, error) {
	before := w.world.clone()
	nested, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := w.changes(ctx, nested, 1)
	if err != nil {
		return nil, errors.Join(err, nested.Rollback(ctx))
	}
	if keep {
		return rows, nested.Commit(ctx)
	}
	w.world = before
	w.ledger.rollBack(rows)
	return nil, nested.Rollback(ctx)
}

// changes makes n changes and gives their outbox rows.
func (w *writer) changes(ctx context.Context, tx pgx.Tx, n int) (rows []string, err error) {
	for range n {
		row, err := w.change(ctx, tx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (w *writer) change(ctx context.Context, tx pgx.Tx) (row string, err error) {
	features, orders := len(w.world.features), len(w.world.orders)
	switch chance := w.rand.IntN(100); {
	case chance < 20 || (chance < 55 && features == 0):
		return w.createFeature(ctx, tx)
	case chance < 45:
		return w.moveFeature(ctx, tx, w.rand.IntN(features))
	case chance < 55:
		return w.retireFeature(ctx, tx, w.rand.IntN(features))
	case chance < 75 || orders == 0:
		return w.placeOrder(ctx, tx)
	default:
		return w.advanceOrder(ctx, tx, w.rand.IntN(orders))
	}
}
