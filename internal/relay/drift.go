package relay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/slot"
)

// drift is what the slot's watch checks for the session that streams: PostgreSQL says nothing when a publication is
// altered or a table is made again, it leaves the rows out.
type drift struct {
	found chan error // at most one
	oids  map[uint32]*outbox
	good  moment // the beginning of the last check that found nothing
}

// moment is a time on this machine's clock and in the WAL.
type moment struct {
	at  time.Time
	lsn decoder.LSN
}

func (m moment) String() string {
	return fmt.Sprintf("%s (%s)", m.lsn, m.at.UTC().Format(time.RFC3339))
}

// driftWatch hands the session's drift to the watch. The watch alone changes it from then on.
type driftWatch struct{ session atomic.Pointer[drift] }

// watchDrift ends the session when drift is found while it streams.
func (s *session) watchDrift(work context.Context) error {
	d := &drift{found: make(chan error, 1), oids: s.source.oids, good: moment{s.checked, s.confirmed}}
	s.bridge.drift.session.Store(d)
	defer s.bridge.drift.session.Store(nil)
	select {
	case err := <-d.found:
		return err
	case <-work.Done():
		return nil
	}
}

// lookForDrift checks publication and tables for the session that streams, if there is one. What hinders the check is
// no drift: the watch will see it too.
func (b *Bridge) lookForDrift(ctx context.Context, sql *pgx.Conn) {
	d := b.drift.session.Load()
	if d == nil {
		return
	}
	now := moment{at: time.Now()}
	var text string
	err := sql.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&text)
	if err == nil {
		now.lsn, err = decoder.ParseLSN(text)
	}
	if err == nil {
		err = b.compareTables(ctx, sql, d.oids)
	}
	var (
		drifted *slot.DriftError
		refused *slot.RefusedError
	)
	switch {
	case err == nil:
		d.good = now
	case errors.As(err, &drifted), errors.As(err, &refused):
		found := &exit.Error{
			Code: exit.Drift,
			Err:  fmt.Errorf("%w: rows committed between %s and %s may be missing in the stream", err, d.good, now),
			Hint: slot.Explain(err) + "; the rows of that time are in the outbox table",
		}
		select {
		case d.found <- found:
		default:
		}
	}
}

func (b *Bridge) compareTables(ctx context.Context, sql *pgx.Conn, oids map[uint32]*outbox) error {
	if err := b.ensurePublication(ctx, sql, false); err != nil {
		return err
	}
	now, err := b.tableOIDs(ctx, sql)
	if err != nil {
		return err
	}
	for oid, o := range oids {
		if now[oid] != o {
			return &slot.DriftError{
				Object: "table " + o.table.Name, Seen: "it is another table than when the session began: it was dropped or renamed, and made again",
				Fix: "see that the publication has the new table, then start again",
			}
		}
	}
	return nil
}
