package slot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// Server is what Inspect saw of a server and of the slot on it.
type Server struct {
	SystemID         string // "" when the role may not read it
	Timeline         uint32 // 0 when the role may not read it
	Database         string
	DatabaseOID      uint32
	Version          int // server_version_num: 150018
	WALLevel         string
	SynchronousNames string
	Standby          bool
	WALEnd           decoder.LSN
	Slot             *State // nil: there is none of this name
}

// State is the slot's row in pg_replication_slots. LSNs that are NULL there are 0.
type State struct {
	Type, Plugin, Database string
	Temporary              bool
	ActivePID              int // 0: nobody holds it
	Confirmed, Restart     decoder.LSN
	WALStatus              string
	Invalidation           string // the reason, from PostgreSQL 16; "" while it is usable
}

// Lost reports whether the server has given up WAL, or rows of the catalog, that the slot needs. It never comes back.
func (s *State) Lost() bool { return s.WALStatus == "lost" || s.Invalidation != "" }

// ConnectSQL opens an ordinary connection to the slot's database, named "tidegate_<slot>_<purpose>" there. It uses no
// prepared statements, so that it passes poolers.
func ConnectSQL(ctx context.Context, c Config, purpose string) (*pgx.Conn, error) {
	pc, err := c.sqlConfig(cutName("tidegate_" + c.Slot + "_" + purpose))
	if err != nil {
		return nil, err
	}
	pc.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open SQL connection: %w", classify(err, c))
	}
	return conn, nil
}

func closeSQL(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// Inspect reads what Check needs. Any role may do it.
func Inspect(ctx context.Context, conn *pgx.Conn, c Config) (*Server, error) {
	s := &Server{}
	if err := s.read(ctx, conn); err != nil {
		return nil, fmt.Errorf("inspect server: %w", classify(err, c))
	}
	slot, err := readSlot(ctx, conn, c.Slot)
	if err != nil {
		return nil, fmt.Errorf("inspect slot %s: %w", c.Slot, classify(err, c))
	}
	s.Slot = slot
	return s, nil
}

func (s *Server) read(ctx context.Context, conn *pgx.Conn) error {
	const query = `
		SELECT d.datname, d.oid, current_setting('server_version_num')::int, current_setting('wal_level'),
		       current_setting('synchronous_standby_names'), pg_is_in_recovery(),
		       CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0')
		            ELSE pg_current_wal_flush_lsn() END::text,
		       has_function_privilege('pg_control_system()', 'execute')
		       AND has_function_privilege('pg_control_checkpoint()', 'execute')
		FROM pg_database d WHERE d.datname = current_database()`
	var (
		end     string
		control bool
	)
	err := conn.QueryRow(ctx, query).Scan(&s.Database, &s.DatabaseOID, &s.Version, &s.WALLevel,
		&s.SynchronousNames, &s.Standby, &end, &control)
	if err != nil {
		return err
	}
	if s.WALEnd, err = decoder.ParseLSN(end); err != nil || !control {
		return err
	}
	const identity = `SELECT s.system_identifier::text, c.timeline_id FROM pg_control_system() s, pg_control_checkpoint() c`
	return conn.QueryRow(ctx, identity).Scan(&s.SystemID, &s.Timeline)
}

// slotRow names the columns of all versions; what a version does not have stays zero.
type slotRow struct {
	Type         string  `json:"slot_type"`
	Plugin       string  `json:"plugin"`
	Database     string  `json:"database"`
	Temporary    bool    `json:"temporary"`
	ActivePID    int     `json:"active_pid"`
	Confirmed    *string `json:"confirmed_flush_lsn"`
	Restart      *string `json:"restart_lsn"`
	WALStatus    string  `json:"wal_status"`
	Conflicting  bool    `json:"conflicting"`
	Invalidation string  `json:"invalidation_reason"`
}

// readSlot gives the slot's row, nil when there is none.
func readSlot(ctx context.Context, conn *pgx.Conn, name string) (*State, error) {
	var text string
	err := conn.QueryRow(ctx, `SELECT to_jsonb(s)::text FROM pg_replication_slots s WHERE slot_name = $1`, name).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var row slotRow
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return nil, err
	}
	return row.state()
}

func (r *slotRow) state() (*State, error) {
	s := &State{
		Type: r.Type, Plugin: r.Plugin, Database: r.Database, Temporary: r.Temporary, ActivePID: r.ActivePID,
		WALStatus: r.WALStatus, Invalidation: r.Invalidation,
	}
	if r.Conflicting && s.Invalidation == "" {
		s.Invalidation = "conflict with recovery"
	}
	var err error
	if r.Confirmed != nil {
		if s.Confirmed, err = decoder.ParseLSN(*r.Confirmed); err != nil {
			return nil, err
		}
	}
	if r.Restart != nil {
		s.Restart, err = decoder.ParseLSN(*r.Restart)
	}
	return s, err
}

// heldPosition reads where a slot stands that our own walsender holds, and then how far the server's WAL goes. It
// refuses a server on which pid does not hold the slot: the two connections then lead to different servers.
func heldPosition(ctx context.Context, c Config, pid int) (confirmed, end decoder.LSN, err error) {
	conn, err := ConnectSQL(ctx, c, "position")
	if err != nil {
		return 0, 0, err
	}
	defer closeSQL(conn)
	state, err := readSlot(ctx, conn, c.Slot)
	if err != nil {
		return 0, 0, classify(err, c)
	}
	if state == nil || state.ActivePID != pid {
		return 0, 0, &RefusedError{
			Check: "postgres.replication_url",
			Seen:  fmt.Sprintf("the server of postgres.url does not show slot %s as held by walsender %d", c.Slot, pid),
			Err:   ErrNotHeld,
			Fix:   "let postgres.url and postgres.replication_url lead to the same server and database",
		}
	}
	var text string
	if err := conn.QueryRow(ctx, `SELECT pg_current_wal_flush_lsn()::text`).Scan(&text); err != nil {
		return 0, 0, classify(err, c)
	}
	end, err = decoder.ParseLSN(text)
	return state.Confirmed, end, err
}
