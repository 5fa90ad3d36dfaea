// Package guard watches how much WAL a slot holds back, on a connection of its own: it goes on while the pipeline is
// stuck, NATS is down, or another instance holds the slot.
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sample is one look at a slot. Sizes are in bytes of WAL.
type Sample struct {
	Retained    float64 // current position less restart_lsn; NaN when the slot is lost
	Unconfirmed float64 // current position less confirmed_flush_lsn
	Safe        float64 // what may be written before the slot is lost; +Inf without a limit
	Active      bool
	WALStatus   string // reserved, extended, unreserved or lost; "" when there is no slot
}

// ErrNoSlot says that there is no slot of the name.
var ErrNoSlot = errors.New("sample slot: it does not exist")

const sampleSQL = `
SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8,
       pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::float8,
       safe_wal_size::float8, active, coalesce(wal_status, 'lost')
  FROM pg_replication_slots WHERE slot_name = $1`

// Take looks at the slot once. Any role may.
func Take(ctx context.Context, conn *pgx.Conn, slot string) (Sample, error) {
	var s Sample
	var retained, unconfirmed, safe *float64
	err := conn.QueryRow(ctx, sampleSQL, slot).Scan(&retained, &unconfirmed, &safe, &s.Active, &s.WALStatus)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s, ErrNoSlot
	case err != nil:
		return s, fmt.Errorf("sample slot %s: %w", slot, err)
	}
	s.Retained, s.Unconfirmed, s.Safe = or(retained, math.NaN()), or(unconfirmed, math.NaN()), or(safe, math.Inf(1))
	return s, nil
}

func or(v *float64, absent float64) float64 {
	if v == nil {
		return absent
	}
	return *v
}

// Each is called with every sample, within the time for one look, and may ask more on the connection.
type Each func(context.Context, *pgx.Conn, Sample)

// Watch takes a sample every interval and gives it to each, until ctx ends. Of a slot that does not exist the sample
// says that nothing is known. A lost connection is made again; that it is lost is logged when it happens and when it is
// over, not in between.
func Watch(ctx context.Context, connect func(context.Context) (*pgx.Conn, error), slot string, interval time.Duration, log *slog.Logger, each Each) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var conn *pgx.Conn
	blind := false
	look := func() error {
		var err error
		if conn == nil || conn.IsClosed() {
			if conn, err = connect(ctx); err != nil {
				return err
			}
		}
		bounded, cancel := context.WithTimeout(ctx, max(interval, time.Second))
		defer cancel()
		s, err := Take(bounded, conn, slot)
		if errors.Is(err, ErrNoSlot) {
			s, err = Sample{Retained: math.NaN(), Unconfirmed: math.NaN(), Safe: math.NaN()}, nil
		}
		if err == nil {
			each(bounded, conn, s)
		}
		return err
	}
	for {
		err := look()
		if (err != nil) != blind && ctx.Err() == nil {
			if blind = err != nil; blind {
				log.Warn("cannot watch the slot", "slot", slot, "error", err)
			} else {
				log.Info("watching the slot again", "slot", slot)
			}
		}
		select {
		case <-ctx.Done():
			if conn != nil {
				_ = conn.Close(context.WithoutCancel(ctx))
			}
			return
		case <-ticker.C:
		}
	}
}
