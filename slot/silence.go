package slot

import (
	"context"
	"time"
)

// busyTimeout bounds the question to the server; the session's own reading rests meanwhile.
const busyTimeout = 2 * time.Second

// busy asks by SQL whether our walsender has a reason for its silence: it decodes, and waits neither for WAL nor for
// us. Then the silence is no sign that the connection is broken.
func (s *Stream) busy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	conn, err := ConnectSQL(ctx, s.cfg, "probe")
	if err != nil {
		return false
	}
	defer closeSQL(conn)
	const query = `
		SELECT count(*) > 0 FROM pg_replication_slots s JOIN pg_stat_activity a ON a.pid = s.active_pid
		WHERE s.slot_name = $1 AND a.pid = $2 AND coalesce(a.wait_event_type, '') NOT IN ('Activity', 'Client')`
	var busy bool
	if err := conn.QueryRow(ctx, query, s.cfg.Slot, int32(s.pid)).Scan(&busy); err != nil || !busy {
		return false
	}
	s.log.Warn("the walsender is silent while it decodes")
	return true
}
