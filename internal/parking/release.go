package parking

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// releasable takes a bounded piece of what may go on. Its parameters: source, upto, copied, skip, limit, bytes. A window
// rather than a join with the parked rows: what it costs does not depend on statistics of a table that changes at once.
const releasable = `
WITH queue AS (
  SELECT id, ord, position, state, bytes, aggregate <> '' AND coalesce(bool_or(state = 'parked') OVER (
           PARTITION BY aggregate ORDER BY ord, position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false) AS blocked
    FROM tidegate.parked WHERE source = $1 AND state <> 'discarded'
     AND EXISTS (SELECT FROM tidegate.parked WHERE source = $1 AND state IN ('held', 'retry', 'releasing', 'discard'))
), ready AS (
  SELECT id, ord, position, bytes FROM queue
   WHERE state <> 'parked' AND (NOT blocked OR state = 'discard' OR ($4 AND state <> 'held'))
     AND CASE WHEN ord < 0 THEN $3 ELSE position <= $2 END
   ORDER BY ord, position LIMIT $5
), bounded AS (
  SELECT id, sum(bytes) OVER (ORDER BY ord, position) - bytes AS before FROM ready
)
SELECT ` + fields + `
  FROM bounded JOIN tidegate.parked p USING (id) WHERE before < $6 ORDER BY p.ord, p.position`

// releaseBytes bounds what one call of Releasable brings into memory, but for the last row.
const releaseBytes = 4 << 20

// Releasable gives the rows that may go on now, in their order: held ones, and those that an operator wants tried again
// or gives up. With a parked row of its aggregate before it a row does not go on, except that with skip a row that is not
// held does, and one that is given up always does. Rows behind position upto are left out, and until copied those that
// were read from their table. There are at most limit rows, and fewer when they are large, but at least one when there is
// one.
func (s *Store) Releasable(ctx context.Context, upto string, copied, skip bool, limit int) ([]Row, error) {
	var all []Row
	err := s.durably(ctx, "find releasable rows", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, releasable, s.source, upto, copied, skip, limit, releaseBytes)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanRow)
		return err
	})
	return all, err
}

// Releasing notes that rows are about to be published, so that after a crash it is known where to look for them: in
// stream, after sequence from or a lower one that was noted before. With a *ChangedError an operator has given one of
// them up meanwhile, or it is gone, and nothing is noted.
func (s *Store) Releasing(ctx context.Context, ids []int64, stream string, from uint64) error {
	const update = `UPDATE tidegate.parked SET state = 'releasing', changed_at = now(), stream = $3,
       from_seq = CASE WHEN stream = $3 THEN least(from_seq, $4) ELSE $4 END
 WHERE source = $1 AND id = ANY($2) AND state IN ('held', 'retry', 'releasing')`
	return s.all(ctx, "note what is about to be published", ids, update, s.source, ids, stream, int64(from))
}

// Held lets rows wait as before that were about to be published and were not sent: nobody need look for them.
func (s *Store) Held(ctx context.Context, ids []int64) error {
	const update = `UPDATE tidegate.parked SET state = 'held', changed_at = now(), from_seq = NULL
 WHERE source = $1 AND id = ANY($2) AND state = 'releasing'`
	return s.durably(ctx, "hold rows again", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, update, s.source, ids)
		return err
	})
}

// Released forgets rows that are stored in their stream.
func (s *Store) Released(ctx context.Context, ids []int64) error {
	return s.durably(ctx, "forget released rows", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM tidegate.parked WHERE source = $1 AND id = ANY($2)", s.source, ids)
		return err
	})
}

// Repark parks a row again that went on and still cannot be published. It counts as one more attempt. A row that is
// parked already, or that an operator has given up meanwhile, is left as it is.
func (s *Store) Repark(ctx context.Context, id int64, reason string) error {
	const update = `UPDATE tidegate.parked SET state = 'parked', changed_at = now(), attempts = attempts + 1, last_error = $3
 WHERE source = $1 AND id = $2 AND state IN ('held', 'retry', 'releasing')`
	return s.durably(ctx, "park a row again", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, update, s.source, id, s.clean(short(reason)))
		return err
	})
}

// Discarded resolves rows that an operator has given up: they stay as the record of that. With a *ChangedError the
// operator wants one of them tried again, or it is gone, and none is resolved.
func (s *Store) Discarded(ctx context.Context, ids []int64) error {
	const update = `UPDATE tidegate.parked SET state = 'discarded', changed_at = CASE state WHEN 'discarded' THEN changed_at ELSE now() END
 WHERE source = $1 AND id = ANY($2) AND state IN ('discard', 'discarded')`
	return s.all(ctx, "discard rows", ids, update, s.source, ids)
}

// all runs an update that must change every one of the rows.
func (s *Store) all(ctx context.Context, doing string, ids []int64, update string, args ...any) error {
	return s.durably(ctx, doing, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, update, args...)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != int64(len(ids)) {
			return &ChangedError{Doing: doing}
		}
		return nil
	})
}
