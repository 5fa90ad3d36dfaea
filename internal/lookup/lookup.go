// Package lookup reads the geometry that feature events refer to from PostGIS, in batches.
//
// Guarantee: a row is answered from one statement's snapshot in which its own transaction is visible, so an answer is
// never older than the event unless it says so (geometry.Stale), and a feature that its transaction created is never
// reported missing because the commit was decoded before other sessions could see it.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegate-cdc/tidegate/geometry"
	"github.com/tidegate-cdc/tidegate/internal/exit"
)

// Table is a features table as configured.
type Table struct {
	Table      string // "schema.table"
	ID         string // column of the key; any type that a text can be cast to
	Version    string // column of the version; "" = the table has none
	Geom       string // column of type geometry or geography
	AssumeSRID int    // for geometries whose SRID is 0; 0 = such geometries are unsupported
	MaxBytes   int    // geometries above it are left out, with bbox and routing point kept; 0 = no limit
	Point      geometry.PointMode
}

// Row is one question. Batch fills Feature, which must not be nil; its slices stay valid until it is filled again.
type Row struct {
	Table   *Table
	ID      []byte // key of the feature, as text
	Version []byte // version that the event speaks of, as text; nil = any
	XID     uint32 // transaction of the event, low 32 bits; 0 = nothing to wait for
	Feature *geometry.Feature
}

// Lookup holds one connection to the primary and makes it again when it breaks. Batch and Close have one caller;
// Waiting may be called from anywhere.
type Lookup struct {
	config  *pgconn.Config
	log     *slog.Logger
	session *session
	pending []*Row
	cause   atomic.Pointer[string]
}

// New makes a Lookup for a connection string or URL as pgconn reads it. It does not connect.
func New(connString string, log *slog.Logger) (*Lookup, error) {
	config, err := pgconn.ParseConfig(connString)
	if err != nil {
		return nil, fmt.Errorf("read look-up URL: %w", err)
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "tidegate lookup"
	}
	return &Lookup{config: config, log: log}, nil
}

// Close ends the connection. It may be called more than once.
func (l *Lookup) Close() { l.drop() }

// Waiting names what Batch waits for, and whether it waits at all.
func (l *Lookup) Waiting() (string, bool) {
	if c := l.cause.Load(); c != nil {
		return *c, true
	}
	return "", false
}

// Batch fills the Feature of every row. It waits for ever, with backoff, while the server cannot be reached or a
// row's transaction is not visible. Its errors are those of ctx and *exit.Error, after which some rows may be filled.
func (l *Lookup) Batch(ctx context.Context, rows []*Row) error {
	defer l.cause.Store(nil)
	l.pending = append(l.pending[:0], rows...)
	unreachable, invisible := newBackoff(50*time.Millisecond), newBackoff(time.Millisecond)
	for len(l.pending) > 0 {
		known := l.session != nil
		err := l.round(ctx)
		switch {
		case ctx.Err() != nil:
			l.drop()
			return context.Cause(ctx)
		case err == nil && len(l.pending) == 0:
			return nil
		case err == nil:
			unreachable = newBackoff(50 * time.Millisecond)
			l.explainInvisible(ctx, l.pending[0].XID)
			err = invisible.wait(ctx)
		case refused(err) && known: // what the session knows of the table may be out of date: ask again
			l.drop()
			err = nil
		case refused(err):
			l.drop()
			return err
		default:
			l.drop()
			l.waitFor("geometry look-up: " + brief(err))
			err = unreachable.wait(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// round asks once for everything pending, one statement a table, and leaves the rows that are not visible pending.
func (l *Lookup) round(ctx context.Context) error {
	if l.session == nil {
		s, err := connect(ctx, l.config, l.log)
		if err != nil {
			return err
		}
		l.session = s
	}
	l.session.invisible = l.session.invisible[:0]
	for rest := l.pending; len(rest) > 0; {
		same := partition(rest)
		if err := l.session.answer(ctx, rest[:same]); err != nil {
			return err
		}
		rest = rest[same:]
	}
	l.pending = append(l.pending[:0], l.session.invisible...)
	return nil
}

// partition moves the rows of the first row's table to the front, in order among themselves, and counts them.
func partition(rows []*Row) int {
	n := 0
	for i, r := range rows {
		if r.Table == rows[0].Table {
			copy(rows[n+1:i+1], rows[n:i])
			rows[n] = r
			n++
		}
	}
	return n
}

// explainInvisible says why the commit of xid cannot be seen yet, as far as this role may know.
func (l *Lookup) explainInvisible(ctx context.Context, xid uint32) {
	if _, already := l.Waiting(); !already { // the common case lasts milliseconds: not worth a question
		l.waitFor(fmt.Sprintf("commit of xid %d is not visible yet", xid))
		return
	}
	l.waitFor(l.session.whyInvisible(ctx, xid))
}

func (l *Lookup) waitFor(cause string) {
	if now, waiting := l.Waiting(); !waiting || now != cause {
		l.log.Debug("look-up waits", "cause", cause)
	}
	l.cause.Store(&cause)
}

func (l *Lookup) drop() {
	if l.session == nil {
		return
	}
	l.session.close()
	l.session = nil
}

// maxBytes is the limit as the statement wants it.
func (t *Table) maxBytes() int {
	if t.MaxBytes <= 0 || t.MaxBytes > math.MaxInt32 {
		return math.MaxInt32
	}
	return t.MaxBytes
}

func refused(err error) bool {
	var r *exit.Error
	return errors.As(err, &r)
}
