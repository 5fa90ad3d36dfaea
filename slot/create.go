package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// cleanupTimeout bounds what is done after a creation was given up.
const cleanupTimeout = 10 * time.Second

// Created is a new slot.
type Created struct {
	// ConsistentPoint is the slot's first confirmed_flush_lsn: what commits behind it will be in the stream, and what
	// committed before is in the snapshot.
	ConsistentPoint decoder.LSN
	// Snapshot is for SET TRANSACTION SNAPSHOT, until Release. "" when it was not asked for.
	Snapshot string

	release sync.Once
	pg      *pgconn.PgConn
}

// Release gives the snapshot up. Transactions that have imported it keep it. It may be called again.
func (c *Created) Release() {
	c.release.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.pg.Close(ctx)
	})
}

// CreateTimeoutError says that creating the slot was given up, and who was waited for. No slot was left behind.
type CreateTimeoutError struct {
	Slot     string
	After    time.Duration
	Blockers []Blocker // the oldest first
}

func (e *CreateTimeoutError) Error() string {
	who := make([]string, len(e.Blockers))
	for i, b := range e.Blockers {
		who[i] = b.String()
	}
	if len(who) == 0 {
		who = []string{"no transaction is open now"}
	}
	return fmt.Sprintf("create slot %s: given up after %s, it waits for every open transaction that has written: %s",
		e.Slot, e.After, strings.Join(who, "; "))
}

// Hint says how to end the wait.
func (e *CreateTimeoutError) Hint() string {
	if len(e.Blockers) == 0 {
		return "start again"
	}
	oldest := e.Blockers[0]
	if oldest.Prepared != "" {
		return fmt.Sprintf("COMMIT PREPARED or ROLLBACK PREPARED '%s', then start again", oldest.Prepared)
	}
	return fmt.Sprintf("let the transaction end, or SELECT pg_terminate_backend(%d), then start again", oldest.PID)
}

// CreateSlot makes the slot, and with export a snapshot that fits it without gap or overlap. It waits for the
// transactions that are open, for Config.CreateTimeout at most: then, as when ctx ends, nothing is left behind. The
// publication must exist before.
func CreateSlot(ctx context.Context, c Config, export bool) (*Created, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	sql, err := ConnectSQL(ctx, c, "create")
	if err != nil {
		return nil, err
	}
	defer closeSQL(sql)
	var version int
	if err := sql.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return nil, fmt.Errorf("create slot %s: %w", c.Slot, classify(err, c))
	}
	pg, err := connectReplication(ctx, c)
	if err != nil {
		return nil, err
	}
	created, err := creation{c, sql, pg}.run(ctx, createCommand(c, version, export))
	if err != nil || !export {
		(&Created{pg: pg}).Release()
	}
	if err != nil {
		return nil, err
	}
	return created, nil
}

// createCommand is in the form that every version from 13 understands, unless FAILOVER is wanted.
func createCommand(c Config, version int, export bool) string {
	command := "CREATE_REPLICATION_SLOT " + quoteIdent(c.Slot) + " LOGICAL " + Plugin
	snapshot := "nothing"
	if export {
		snapshot = "export"
	}
	switch {
	case version >= 170000 && c.Failover != "off":
		return command + " (SNAPSHOT '" + snapshot + "', FAILOVER true)"
	case export:
		return command + " EXPORT_SNAPSHOT"
	}
	return command + " NOEXPORT_SNAPSHOT"
}

// creation is one attempt to make a slot, with a second connection to look at it.
type creation struct {
	cfg Config
	sql *pgx.Conn
	pg  *pgconn.PgConn
}

type creationResult struct {
	slot pglogrepl.CreateReplicationSlotResult
	err  error
}

func (k creation) run(ctx context.Context, command string) (*Created, error) {
	done := make(chan creationResult, 1)
	go func() {
		slot, err := pglogrepl.ParseCreateReplicationSlot(k.pg.Exec(context.WithoutCancel(ctx), command))
		done <- creationResult{slot, err}
	}()
	timer := time.NewTimer(k.cfg.createTimeout())
	defer timer.Stop()
	select {
	case r := <-done:
		return k.finish(r)
	case <-timer.C:
		blockers, err := readBlockers(ctx, k.sql, k.pg.PID())
		return nil, k.giveUp(ctx, done, errors.Join(&CreateTimeoutError{k.cfg.Slot, k.cfg.createTimeout(), blockers}, err))
	case <-ctx.Done():
		return nil, k.giveUp(ctx, done, context.Cause(ctx))
	}
}

func (k creation) finish(r creationResult) (*Created, error) {
	if r.err != nil {
		return nil, fmt.Errorf("create slot %s: %w", k.cfg.Slot, classify(r.err, k.cfg))
	}
	point, err := decoder.ParseLSN(r.slot.ConsistentPoint)
	if err != nil {
		return nil, fmt.Errorf("create slot %s: %w", k.cfg.Slot, err)
	}
	return &Created{ConsistentPoint: point, Snapshot: r.slot.SnapshotName, pg: k.pg}, nil
}

// giveUp ends the creation, makes sure that no slot is left, and returns why, or that one may be left.
func (k creation) giveUp(ctx context.Context, done <-chan creationResult, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	err := k.terminate(ctx)
	if err == nil {
		<-done
		err = DropSlot(ctx, k.sql, k.cfg.Slot)
	}
	var missing *MissingSlotError
	if err == nil || errors.As(err, &missing) {
		return why
	}
	return fmt.Errorf("%w (the slot may have been left behind: %w; SELECT pg_drop_replication_slot('%s'))", why, err, k.cfg.Slot)
}

// terminate ends the walsender that creates the slot, and waits until it is gone.
func (k creation) terminate(ctx context.Context) error {
	for {
		var alive bool
		err := k.sql.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE pid = $1`,
			int32(k.pg.PID())).Scan(&alive)
		if err != nil || !alive {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// DropSlot drops the slot. A slot that does not exist is a *MissingSlotError, one in use an *ActiveError.
func DropSlot(ctx context.Context, conn *pgx.Conn, slot string) error {
	if _, err := conn.Exec(ctx, `SELECT pg_drop_replication_slot($1)`, slot); err != nil {
		return fmt.Errorf("drop slot %s: %w", slot, classify(err, Config{Slot: slot}))
	}
	return nil
}
