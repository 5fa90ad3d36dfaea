package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegate-cdc/tidegate/internal/admin"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// attempt looks at both sides, decides how to start, and runs one session.
func (b *Bridge) attempt(ctx context.Context) error {
	sql, srv, err := b.inspect(ctx)
	if err != nil {
		return err
	}
	defer closeSQL(ctx, sql)
	if srv.Slot != nil && srv.Slot.ActivePID != 0 {
		closeSQL(ctx, sql)
		return b.standBy(ctx)
	}
	if err := b.connectNATS(ctx); err != nil {
		return err
	}
	cp, err := b.points.Load(ctx, b.cfg.Source.Name)
	if err != nil {
		return fromNATS(err)
	}
	if cp == nil && srv.Slot != nil {
		if err := b.checkpointMissing(ctx, srv.Slot); err != nil {
			return err
		}
	}
	next, err := b.situation(ctx, sql, srv, cp).decide()
	if err != nil {
		return err
	}
	if next == stepCreate || next == stepCopy {
		if err := b.checkShapes(ctx, sql); err != nil {
			return err
		}
	}
	streams, err := b.ensureStreams(ctx, cp)
	if err != nil {
		return err
	}
	return b.begin(ctx, next, cp, sql, srv, streams)
}

// answerTimeout bounds what PostgreSQL answers at once: a connection that died without a word must not be waited for.
const answerTimeout = 30 * time.Second

// closeSQL ends a connection; it may be called again.
func closeSQL(ctx context.Context, sql *pgx.Conn) { _ = sql.Close(context.WithoutCancel(ctx)) }

// inspect connects to PostgreSQL and checks that a slot can work there.
func (b *Bridge) inspect(ctx context.Context) (*pgx.Conn, *slot.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	sql, err := slot.ConnectSQL(ctx, b.slot, "setup")
	if err != nil {
		return nil, nil, err
	}
	srv, err := slot.Inspect(ctx, sql, b.slot)
	if err == nil {
		err = srv.Check(b.slot)
	}
	if err != nil {
		closeSQL(ctx, sql)
		return nil, nil, err
	}
	return sql, srv, nil
}

// errSlotFree ends a standby's wait: what there is to begin with is looked at anew.
var errSlotFree = errors.New("the slot is free")

// standBy waits until the slot is free, and then ends with errSlotFree. The slot is the lock: who holds it publishes,
// and nobody else.
func (b *Bridge) standBy(ctx context.Context) error {
	b.metrics.active.Set(0)
	b.health.Clear("session")
	last := 0
	err := slot.WaitFree(ctx, b.slot, func(h slot.Holder) {
		b.health.SetRole(admin.RoleStandby, fmt.Sprintf("pid %d (%s)", h.PID, h.Application))
		if h.PID != last {
			last = h.PID
			b.log.Info("standing by: another instance holds the slot", "slot", b.slot.Slot, "pid", h.PID, "application", h.Application)
		}
	})
	if err != nil {
		return err
	}
	b.log.Info("the slot is free; taking over", "slot", b.slot.Slot)
	return errSlotFree
}

func (b *Bridge) situation(ctx context.Context, sql *pgx.Conn, srv *slot.Server, cp *publish.Checkpoint) situation {
	return situation{
		slotName: b.slot.Slot, slot: srv.Slot, checkpoint: cp,
		here:   publish.Identity{SystemID: srv.SystemID, DatabaseOID: srv.DatabaseOID, Database: srv.Database, Slot: b.slot.Slot},
		create: b.cfg.Slot.Create, snapshot: b.cfg.Slot.Snapshot,
		rows: func() (int64, string, error) { return b.countRows(ctx, sql) },
	}
}

// countRows counts the rows of the outboxes, to tell the operator what he decides about.
func (b *Bridge) countRows(ctx context.Context, sql *pgx.Conn) (int64, string, error) {
	var total int64
	var parts []string
	for _, o := range b.outboxes {
		var n int64
		name := pgx.Identifier(strings.SplitN(o.table.Name, ".", 2)).Sanitize()
		if err := sql.QueryRow(ctx, "SELECT count(*) FROM "+name).Scan(&n); err != nil {
			if fatal := failure(err); fatal == nil {
				return 0, "", err
			}
			hint := slot.Explain(err)
			if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "42501" {
				hint = "GRANT SELECT ON " + name + " TO the bridge's role, or say slot.snapshot: skip when older rows are to be left alone"
			}
			return 0, "", &exit.Error{Code: exit.Postgres, Err: fmt.Errorf("count rows of %s: %w", o.table.Name, err), Hint: hint}
		}
		total += n
		parts = append(parts, fmt.Sprintf("%s: %d", o.table.Name, n))
	}
	return total, strings.Join(parts, ", "), nil
}

// begin makes what the start needs and runs the session. The order matters: the intention is written down before the
// slot is made, the publication is made before the slot, and the slot is held before the checkpoint is believed.
func (b *Bridge) begin(ctx context.Context, next step, cp *publish.Checkpoint, sql *pgx.Conn, srv *slot.Server, streams []*publish.Stream) error {
	s := newSession(b, next, srv.DatabaseOID, streams)
	if srv.Slot != nil && cp != nil {
		s.left = moment{cp.CommittedAt, srv.Slot.Confirmed}
	}
	switch next {
	case stepCreate, stepCopy:
		if err := b.writeIntention(ctx, cp, next, streams); err != nil {
			return err
		}
		created, err := b.createSlot(ctx, next, sql, srv)
		if err != nil {
			return err
		}
		defer created.Release()
		if next == stepCopy {
			s.snapshot = created
		}
	case stepResume, stepAdopt:
		if err := b.drift.begin(ctx, sql, srv); err != nil {
			return err
		}
	}
	var err error
	if s.source.oids, err = b.tableOIDs(ctx, sql); err != nil {
		return err
	}
	closeSQL(ctx, sql)
	return s.run(ctx)
}

func (b *Bridge) ensurePublication(ctx context.Context, sql *pgx.Conn, create bool) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err := slot.EnsurePublication(ctx, sql, b.slot.Publication, b.slot.Tables, create)
	return err
}

// tableOIDs tells by which OIDs the stream will name the outboxes.
func (b *Bridge) tableOIDs(ctx context.Context, sql *pgx.Conn) (map[uint32]*outbox, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	oids := map[uint32]*outbox{}
	for _, o := range b.outboxes {
		schema, name, _ := strings.Cut(o.table.Name, ".")
		var oid uint32
		err := sql.QueryRow(ctx, `SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = $1 AND c.relname = $2`, schema, name).Scan(&oid)
		if err != nil {
			return nil, fmt.Errorf("read identity of table %s: %w", o.table.Name, err)
		}
		oids[oid] = o
	}
	return oids, nil
}

// errElsewhere ends an attempt to make the slot in which another instance was faster: it has made it, or dropped what
// it took for the rest of a copy that was cut short. The next attempt finds out.
var errElsewhere = errors.New("another instance starts this source too")

// createSlot makes publication and slot. A slot that is there already is left from a copy that was cut short: nothing
// was ever confirmed on it, and its snapshot is gone.
func (b *Bridge) createSlot(ctx context.Context, next step, sql *pgx.Conn, srv *slot.Server) (*slot.Created, error) {
	if next == stepCopy {
		if err := slot.DropSlot(ctx, sql, b.slot.Slot); err != nil && !isMissing(err) {
			return nil, err
		}
	}
	if err := b.ensurePublication(ctx, sql, b.cfg.Slot.Create); err != nil {
		return nil, err
	}
	if err := b.drift.begin(ctx, sql, srv); err != nil {
		return nil, err
	}
	created, err := slot.CreateSlot(ctx, b.slot, next == stepCopy)
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == "42710" { // it exists
		return nil, fmt.Errorf("create slot %s: %w", b.slot.Slot, errElsewhere)
	}
	if err != nil {
		return nil, err
	}
	b.log.Info("created the slot", "slot", b.slot.Slot, "publication", b.slot.Publication, "lsn", created.ConsistentPoint.String())
	return created, nil
}

func isMissing(err error) bool {
	var missing *slot.MissingSlotError
	return errors.As(err, &missing)
}

// writeIntention records that a first start has begun, so that one that is cut short is taken up and not taken for a
// dropped slot. Where a copy was begun before, the streams are read from where that one began. It continues the
// checkpoint that was decided upon: where another instance has written since, the decision is void.
func (b *Bridge) writeIntention(ctx context.Context, cp *publish.Checkpoint, next step, streams []*publish.Stream) error {
	if cp == nil {
		cp = &publish.Checkpoint{Source: b.cfg.Source.Name, InitialFrom: map[string]publish.Mark{}, Streams: map[string]publish.Mark{}}
		for _, st := range streams {
			info, err := st.Info(ctx)
			if err != nil {
				return fromNATS(err)
			}
			cp.InitialFrom[st.Name] = publish.Mark{Seq: info.Last}
			cp.Streams[st.Name] = publish.Mark{Seq: info.Last}
		}
	}
	cp.Phase = phaseCreating
	if next == stepCopy {
		cp.Phase = phaseInitial
	}
	cp.WrittenAt = time.Now()
	return fromNATS(b.points.Save(ctx, cp))
}
