package parking

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Retry asks the bridge to try a row again, and gives the row as it was. A *StateError when it is not the operator's to
// decide; a wish that the bridge has not followed yet can be changed.
func (d *Desk) Retry(ctx context.Context, ref string) (*Row, error) {
	return d.wish(ctx, ref, StateRetry)
}

// Discard asks the bridge to give a row up, and gives the row as it was. Else as Retry.
func (d *Desk) Discard(ctx context.Context, ref string) (*Row, error) {
	return d.wish(ctx, ref, StateDiscard)
}

func (d *Desk) wish(ctx context.Context, ref string, state State) (*Row, error) {
	row, err := d.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	const update = `UPDATE tidegate.parked SET state = $3, changed_at = now()
 WHERE source = $1 AND id = $2 AND state IN ('parked', 'retry', 'discard')`
	granted := false
	err = d.durably(ctx, string(state)+" parked row", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, update, d.source, row.ID, string(state))
		granted = tag.RowsAffected() == 1
		return err
	})
	if err != nil || granted {
		return row, err
	}
	return nil, d.refusal(ctx, row.ID, state)
}

// refusal says why a row is not the operator's to decide.
func (d *Desk) refusal(ctx context.Context, id int64, wish State) error {
	row, err := d.byNumber(ctx, id)
	if err != nil {
		return err
	}
	behind, err := d.Behind(ctx, row)
	if err != nil {
		return err
	}
	return &StateError{Wish: wish, Row: *row, Behind: behind}
}

// RetryAggregate asks the bridge to try every parked row of an aggregate again, and gives them as they are now, in
// their order. What waits behind them follows by itself.
func (d *Desk) RetryAggregate(ctx context.Context, aggregate string) ([]Row, error) {
	const update = `WITH p AS (
  UPDATE tidegate.parked p SET state = 'retry', changed_at = now() WHERE source = $1 AND state = 'parked' AND ` + byAggregate + ` = $2 RETURNING p.*
) SELECT ` + withoutContent + ` FROM p ORDER BY ord, position`
	var rows []Row
	err := d.durably(ctx, "retry parked rows of an aggregate", func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, update, d.source, []byte(aggregate))
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(found, scanRow)
		return err
	})
	if err == nil && len(rows) == 0 {
		return nil, &NotFoundError{What: "parked rows of aggregate " + aggregate}
	}
	return rows, err
}
