package parking

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Store is the bridge's side. Its methods may be called by one goroutine at a time, and nobody else may use the
// connection meanwhile. Each is one transaction, on disk when it returns without an error; after an error it may have
// happened too, and every method may be called again for the same rows.
type Store struct {
	*session
	maxRows int
}

// Open looks whether the table is there (else *MissingError) and may be used by the role (else *PrivilegeError). At most
// maxRows rows of the source may be unresolved.
func Open(ctx context.Context, conn *pgx.Conn, source string, maxRows int) (*Store, error) {
	s, err := open(ctx, conn, source, "SELECT, INSERT, UPDATE, DELETE")
	if err != nil {
		return nil, err
	}
	return &Store{session: s, maxRows: maxRows}, nil
}

// Load gives the aggregates that have unresolved rows, those that are unknown left out.
func (s *Store) Load(ctx context.Context) ([]Aggregate, error) {
	const query = `SELECT aggregate, count(*)::int FROM tidegate.parked
 WHERE source = $1 AND state <> 'discarded' AND aggregate <> '' GROUP BY aggregate`
	var all []Aggregate
	err := s.durably(ctx, "load parked aggregates", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, query, s.source)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Aggregate])
		return err
	})
	return all, err
}

// Stats counts the unresolved rows.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	const query = `SELECT count(*)::int, (count(*) FILTER (WHERE state = 'parked'))::int, (count(*) FILTER (WHERE state = 'held'))::int,
       min(parked_at) FROM tidegate.parked WHERE source = $1 AND state <> 'discarded'`
	var (
		stats  Stats
		oldest *time.Time
	)
	err := s.durably(ctx, "count parked rows", func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, query, s.source).Scan(&stats.Rows, &stats.Parked, &stats.Held, &oldest)
	})
	if oldest != nil {
		stats.Oldest = *oldest
	}
	return stats, err
}
