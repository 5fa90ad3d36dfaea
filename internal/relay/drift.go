package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/slot"
)

// drift looks whether publication and tables still yield every row. PostgreSQL says nothing when they do not: it leaves
// the rows out. So nothing is confirmed that lies behind the beginning of the last look that found them unchanged.
//
// It outlives sessions: what was altered and altered back between two of them is noticed too.
type drift struct {
	b *Bridge

	turn    chan struct{} // one look at a time: who has it owns what follows
	sql     *pgx.Conn     // while a session streams
	server  string        // that what follows was seen on
	base    *slot.Catalog
	before  *slot.Catalog     // the last one that was read, good or not
	good    moment            // the beginning of the last look that found nothing
	created map[string]string // a table's column with the time of its rows, where it has one

	proven atomic.Uint64 // good's LSN; 0 when there is none on this server
}

// moment is a time on the server's clock and in its WAL.
type moment struct {
	at  time.Time
	lsn decoder.LSN
}

func (m moment) String() string {
	return fmt.Sprintf("%s (%s)", m.lsn, m.at.UTC().Format(time.RFC3339))
}

const (
	// driftEvery is how often is looked while there is anything to confirm.
	driftEvery = time.Second
	// driftTimeout bounds one look.
	driftTimeout = 5 * time.Second
	// driftLast bounds the look of a session that is asked to stop.
	driftLast = time.Second
)

// errAltering says that a look proves nothing yet: a change may be committed in the WAL, and not be visible.
var errAltering = errors.New("a transaction that alters publication or tables has not ended")

func newDrift(b *Bridge) *drift { return &drift{b: b, turn: make(chan struct{}, 1)} }

// take waits for the turn. Who has it gives it back by done.
func (d *drift) take(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *drift) done() { <-d.turn }

// begin checks publication and tables before a session, and takes what is there for what is to stay, unless that was
// seen before on this server. When a look proves nothing yet the session begins too, and confirms nothing.
func (d *drift) begin(ctx context.Context, sql *pgx.Conn, srv *slot.Server) error {
	if err := d.take(ctx); err != nil {
		return err
	}
	defer d.done()
	d.proven.Store(0)
	if server := fmt.Sprintf("%s/%d", srv.SystemID, srv.DatabaseOID); d.server != server {
		d.server, d.base, d.before, d.good = server, nil, nil, moment{}
	}
	if err := d.look(ctx, sql); err != nil && !errors.Is(err, errAltering) {
		return err
	}
	return d.readColumns(ctx, sql)
}

// readColumns learns how the rows of a time are found, while the tables are as they should be.
func (d *drift) readColumns(ctx context.Context, sql *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, driftTimeout)
	defer cancel()
	d.created = map[string]string{}
	for _, o := range d.b.outboxes {
		columns, err := catalogColumns(ctx, sql, o.table.Name)
		if err != nil {
			return fmt.Errorf("read columns of %s: %w", o.table.Name, err)
		}
		name := columnsOf(o.table).CreatedAt
		if slices.ContainsFunc(columns, func(c event.Column) bool { return c.Name == name }) {
			d.created[o.table.Name] = name
		}
	}
	return nil
}

// look compares once. nil: everything before the look's beginning may be confirmed. A *slot.DriftError within an
// *exit.Error is drift; anything else means that nothing is known.
func (d *drift) look(ctx context.Context, sql *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, driftTimeout)
	defer cancel()
	now, err := slot.ReadCatalog(ctx, sql, d.b.slot.Publication, d.b.slot.Tables)
	if err != nil {
		return err
	}
	before := d.before
	d.before = now
	if d.base == nil || !d.base.Equal(now) {
		if err := d.judge(ctx, sql, now); err != nil {
			return d.found(err, d.good, moment{now.At, now.LSN})
		}
		d.base = now
	}
	if d.good == (moment{}) {
		d.good = moment{now.At, now.LSN}
	}
	if now.Open(before) {
		return errAltering
	}
	d.good = moment{now.At, now.LSN}
	d.proven.Store(uint64(now.LSN))
	return nil
}

// judge decides whether a change did harm, or does.
func (d *drift) judge(ctx context.Context, sql *pgx.Conn, now *slot.Catalog) error {
	if err := d.b.ensurePublication(ctx, sql, false); err != nil || d.base == nil {
		return err
	}
	return d.base.Compare(now, d.b.slot.Publication)
}

// lookAgain is look on the session's own connection, which is made where there is none.
func (d *drift) lookAgain(ctx context.Context) (err error) {
	if err := d.take(ctx); err != nil {
		return err
	}
	defer d.done()
	if d.sql == nil || d.sql.IsClosed() {
		ctx, cancel := context.WithTimeout(ctx, driftTimeout)
		defer cancel()
		if d.sql, err = slot.ConnectSQL(ctx, d.b.slot, "drift"); err != nil {
			d.sql = nil
			return err
		}
	}
	return d.look(ctx, d.sql)
}

func (d *drift) disconnect() {
	_ = d.take(context.Background()) // a look is bounded
	defer d.done()
	if d.sql != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.sql.Close(ctx)
		d.sql = nil
	}
}

// explainDrift adds the window to drift that the stream itself has shown. Where the stream had not come as far as the
// last good look, it stands at a place in the WAL where the publication was not there: no mending changes that.
func (s *session) explainDrift(err error) error {
	var shown *slot.DriftError
	if !errors.As(err, &shown) || isCoded(err) {
		return err
	}
	d := s.bridge.drift
	_ = d.take(context.Background()) // a look is bounded
	defer d.done()
	name := s.bridge.slot.Slot
	from, stuck := d.good, fmt.Sprintf("Then SELECT pg_drop_replication_slot('%s'). %s", name, makeSlotAgain(name))
	fix := slot.CreatePublicationSQL(s.bridge.slot.Publication, s.bridge.slot.Tables) +
		"; should it be missing still when the bridge is started, the slot stands where it was not there, and cannot pass. " + stuck
	if s.stream == nil || s.stream.Progress().Received < d.good.lsn {
		from, fix = s.left, "the slot cannot pass that place. "+stuck
	}
	return d.found(&slot.DriftError{Object: shown.Object, Seen: shown.Seen, Fix: fix, Err: shown.Err}, from, moment{at: time.Now()})
}

// watchDrift looks for as long as the session lasts, and ends it when there is drift. It looks while the WAL moves, and
// while reading rests, when it may move unseen: an idle server is not asked.
func (s *session) watchDrift(work context.Context) error {
	d := s.bridge.drift
	defer d.disconnect()
	ticker := time.NewTicker(driftEvery / 4)
	defer ticker.Stop()
	var last time.Time
	blind := false
	for {
		select {
		case <-work.Done():
			return nil
		case <-ticker.C:
		}
		if !last.IsZero() && (time.Since(last) < driftEvery || !s.unproven()) {
			continue
		}
		last = time.Now()
		err := d.lookAgain(work)
		switch {
		case work.Err() != nil:
			return nil
		case isDrift(err):
			return err
		}
		s.driftKnown(err, &blind)
	}
}

// driftKnown tells of looks that prove nothing, and of the first that does again.
func (s *session) driftKnown(err error, blind *bool) {
	switch {
	case err != nil:
		s.bridge.health.Report(problemDrift, "it is not known whether publication and tables yield every row, so nothing is confirmed: "+err.Error())
		if !*blind {
			s.log.Warn("cannot look for drift", "error", err)
		}
	case *blind:
		s.log.Info("looking for drift again")
		fallthrough
	default:
		s.bridge.health.Clear(problemDrift)
	}
	*blind = err != nil
}

// unproven reports whether there may be WAL behind the last good look.
func (s *session) unproven() bool {
	return s.stream.Progress().Received > s.proven() || s.source.Full()
}

// proven is up to where publication and tables are known to have yielded every row.
func (s *session) proven() decoder.LSN { return decoder.LSN(s.bridge.drift.proven.Load()) }

// confirm tells PostgreSQL what it may forget. Nothing else does: what lies behind the last good look, and what NATS does
// not know as finished, is left out; and while NATS seems to have lost something nothing is said.
func (s *session) confirm() {
	if lsn := min(s.tracker.confirmable, s.saved.Confirmable, s.proven()); lsn > 0 && !s.doubted.Load() {
		s.stream.Confirm(lsn)
	}
}

// lookLast lets a session that is asked to stop confirm what it has finished. When PostgreSQL shuts down there is nobody
// to ask.
func (s *session) lookLast(why error) error {
	if !errors.Is(why, context.Canceled) || s.stream.Progress().Received <= s.proven() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), driftLast)
	defer cancel()
	if err := s.bridge.drift.lookAgain(ctx); isDrift(err) {
		return err
	}
	return nil
}
