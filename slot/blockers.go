package slot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Blocker is a transaction that has written and is open: the creation of a slot waits for it. What the role may not
// see of it is "" or 0.
type Blocker struct {
	PID         int    // 0: a prepared transaction
	Prepared    string // its global identifier
	User        string
	Application string
	State       string
	Age         time.Duration
}

func (b Blocker) String() string {
	if b.Prepared != "" {
		return fmt.Sprintf("prepared transaction %q (user %s, open for %s)", b.Prepared, b.User, b.Age.Round(time.Second))
	}
	var known []string
	add := func(format string, a any, ok bool) {
		if ok {
			known = append(known, fmt.Sprintf(format, a))
		}
	}
	add("user %s", b.User, b.User != "")
	add("application %q", b.Application, b.Application != "")
	add("%s", b.State, b.State != "")
	add("open for %s", b.Age.Round(time.Second), b.Age > 0)
	return fmt.Sprintf("pid %d (%s)", b.PID, strings.Join(known, ", "))
}

// readBlockers lists the open transactions that hold an xid, except those of pid itself. pg_locks shows them to every
// role; what pg_stat_activity adds depends on the role.
func readBlockers(ctx context.Context, conn *pgx.Conn, pid uint32) ([]Blocker, error) {
	const query = `
		SELECT coalesce(l.pid, 0), coalesce(p.gid, ''), coalesce(a.usename, p.owner, ''), coalesce(a.application_name, ''),
		       coalesce(a.state, ''), coalesce(extract(epoch FROM now() - coalesce(a.xact_start, p.prepared)), 0)::float8
		FROM pg_locks l
		LEFT JOIN pg_stat_activity a ON a.pid = l.pid
		LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND p.transaction = l.transactionid
		WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.pid IS DISTINCT FROM $1
		ORDER BY coalesce(a.xact_start, p.prepared) NULLS LAST, age(l.transactionid) DESC`
	rows, err := conn.Query(ctx, query, int32(pid))
	if err != nil {
		return nil, fmt.Errorf("read blocking transactions: %w", err)
	}
	blockers, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Blocker, err error) {
		var seconds float64
		err = row.Scan(&b.PID, &b.Prepared, &b.User, &b.Application, &b.State, &seconds)
		b.Age = time.Duration(seconds * float64(time.Second))
		return b, err
	})
	if err != nil {
		return nil, fmt.Errorf("read blocking transactions: %w", err)
	}
	return blockers, nil
}
