package slot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	pollFree    = time.Second
	firstPause  = 50 * time.Millisecond
	longestWait = 3 * time.Second
)

// Holder is the session that is active on a slot.
type Holder struct {
	PID         int
	Application string
	Address     string    // "" for a local socket, or when not visible
	Since       time.Time // when that session began; zero when not visible
}

// WaitFree returns when nobody is active on the slot. It asks about once a second, over lost connections too, and
// tells onHolder, which may be nil, each time it sees another holder. A slot that does not exist is a
// *MissingSlotError. That the slot was free does not mean that it still is: Start decides.
func WaitFree(ctx context.Context, c Config, onHolder func(Holder)) error {
	var (
		conn  *pgx.Conn
		last  Holder
		pause backoff
	)
	defer func() {
		if conn != nil {
			closeSQL(conn)
		}
	}()
	for {
		holder, fresh, err := askHolder(ctx, c, conn)
		conn = fresh
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && holder.PID == 0:
			return nil
		case err == nil:
			pause.reset()
			if holder != last && onHolder != nil {
				onHolder(holder)
			}
			last = holder
			err = sleep(ctx, jitter(pollFree))
		case Transient(err):
			err = pause.sleep(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// askHolder asks on conn, or on a new connection when that is nil or lost. The Holder of a free slot is zero.
func askHolder(ctx context.Context, c Config, conn *pgx.Conn) (Holder, *pgx.Conn, error) {
	if conn == nil || conn.IsClosed() {
		var err error
		if conn, err = ConnectSQL(ctx, c, "standby"); err != nil {
			return Holder{}, nil, err
		}
	}
	const query = `
		SELECT coalesce(s.active_pid, 0), coalesce(a.application_name, ''), coalesce(host(a.client_addr), ''), a.backend_start
		FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name = $1`
	var (
		h     Holder
		since *time.Time
	)
	err := conn.QueryRow(ctx, query, c.Slot).Scan(&h.PID, &h.Application, &h.Address, &since)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, conn, &MissingSlotError{Slot: c.Slot}
	}
	if err != nil {
		return h, conn, fmt.Errorf("read holder of slot %s: %w", c.Slot, classify(err, c))
	}
	if since != nil {
		h.Since = *since
	}
	return h, conn, nil
}

// backoff is the pause between attempts: from 50 ms, doubled up to 3 s, each with jitter.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

func (b *backoff) sleep(ctx context.Context) error {
	b.next = min(max(2*b.next, firstPause), longestWait)
	return sleep(ctx, jitter(b.next))
}

// jitter spreads d over 75 to 125 %.
func jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
