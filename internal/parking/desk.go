package parking

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Desk is the operator's side: it shows rows and takes the operator's wishes, which the bridge then follows. Like a
// Store it is for one goroutine, on a connection of its own.
type Desk struct{ *session }

// OpenDesk looks whether the table is there (else *MissingError) and may be read (else *PrivilegeError). Retry and
// Discard need UPDATE besides.
func OpenDesk(ctx context.Context, conn *pgx.Conn, source string) (*Desk, error) {
	s, err := open(ctx, conn, source, "SELECT")
	if err != nil {
		return nil, err
	}
	s.wants = "SELECT, UPDATE"
	return &Desk{s}, nil
}

// Filter says which rows List gives; zero fields let every row pass.
type Filter struct {
	States    []State
	Aggregate string // "type/id"
	Table     string // schema.table
	Limit     int
}

// byAggregate finds the rows of "type/id" without taking it apart: a slash may be in either.
const byAggregate = `p.aggregate_type || '/'::bytea || p.aggregate_id`

// List gives rows in the order in which they would be published, without what is in them, and how many there are
// besides when Limit cuts the list.
func (d *Desk) List(ctx context.Context, f Filter) (rows []Row, more int, err error) {
	const where = ` FROM tidegate.parked p WHERE source = $1 AND ($2::text[] IS NULL OR state = ANY($2))
   AND ($3::bytea = '' OR ` + byAggregate + ` = $3) AND ($4::text = '' OR table_name = $4)`
	var states []string // nil, and so NULL, for all
	for _, state := range f.States {
		states = append(states, string(state))
	}
	args := []any{d.source, states, []byte(f.Aggregate), d.clean(f.Table)}
	rows, err = d.rows(ctx, "SELECT "+withoutContent+where+" ORDER BY ord, position LIMIT nullif($5::bigint, 0)", append(args, f.Limit)...)
	if err != nil || f.Limit == 0 || len(rows) < f.Limit {
		return rows, 0, d.explain(ctx, "list parked rows", err)
	}
	err = d.conn.QueryRow(ctx, "SELECT count(*)::int"+where, args...).Scan(&more)
	return rows, more - len(rows), d.explain(ctx, "count parked rows", err)
}

func (d *Desk) rows(ctx context.Context, sql string, args ...any) ([]Row, error) {
	rows, err := d.conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRow)
}

// Find gives the row that ref names: by its own number, or as "schema.table:id". An outbox id may have been parked more
// than once: a row that is not resolved goes before the records of discarded ones.
func (d *Desk) Find(ctx context.Context, ref string) (*Row, error) {
	if id, err := strconv.ParseInt(ref, 10, 64); err == nil {
		return d.byNumber(ctx, id)
	}
	table, id, ok := strings.Cut(ref, ":")
	if !ok || table == "" || id == "" {
		return nil, fmt.Errorf("parked row %q: %w: it is neither a number nor schema.table:id", ref, ErrUsage)
	}
	rows, err := d.rows(ctx, "SELECT "+fields+` FROM tidegate.parked p WHERE source = $1 AND table_name = $2 AND row_id = $3
 ORDER BY state = 'discarded', id LIMIT 20`, d.source, d.clean(table), []byte(id))
	switch {
	case err != nil:
		return nil, d.explain(ctx, "find parked row", err)
	case len(rows) == 0:
		return nil, &NotFoundError{What: "parked row " + ref}
	case len(rows) > 1 && (rows[0].State == StateDiscarded) == (rows[1].State == StateDiscarded):
		return nil, ambiguous(ref, rows)
	}
	return &rows[0], nil
}

func ambiguous(ref string, rows []Row) error {
	e := &AmbiguousError{Ref: ref}
	for _, r := range rows {
		if (r.State == StateDiscarded) == (rows[0].State == StateDiscarded) {
			e.IDs = append(e.IDs, r.ID)
		}
	}
	return e
}

func (d *Desk) byNumber(ctx context.Context, id int64) (*Row, error) {
	rows, err := d.rows(ctx, "SELECT "+fields+" FROM tidegate.parked p WHERE source = $1 AND id = $2", d.source, id)
	if err != nil {
		return nil, d.explain(ctx, "find parked row", err)
	}
	if len(rows) == 0 {
		return nil, &NotFoundError{What: "parked row " + strconv.FormatInt(id, 10)}
	}
	return &rows[0], nil
}

// Watch gives what is there now of rows, by their numbers and without what is in them. Those that are missing have been
// published.
func (d *Desk) Watch(ctx context.Context, ids []int64) (map[int64]Row, error) {
	rows, err := d.rows(ctx, "SELECT "+withoutContent+" FROM tidegate.parked p WHERE source = $1 AND id = ANY($2)", d.source, ids)
	if err != nil {
		return nil, d.explain(ctx, "watch parked rows", err)
	}
	now := make(map[int64]Row, len(rows))
	for _, r := range rows {
		now[r.ID] = r
	}
	return now, nil
}

// Behind gives the number of the parked row that holds r up, 0 when none does: the first of its aggregate before it.
func (d *Desk) Behind(ctx context.Context, r *Row) (int64, error) {
	const query = `SELECT coalesce((SELECT id FROM tidegate.parked WHERE source = $1 AND state = 'parked' AND aggregate = $2 AND aggregate <> ''
   AND (ord, position) < ($3, $4) ORDER BY ord, position LIMIT 1), 0)`
	var id int64
	err := d.conn.QueryRow(ctx, query, d.source, notNil(r.Aggregate), r.Ord, r.Position).Scan(&id)
	return id, d.explain(ctx, "find what a row waits for", err)
}

// HeldBehind counts the rows of r's aggregate that wait behind it.
func (d *Desk) HeldBehind(ctx context.Context, r *Row) (int, error) {
	const query = `SELECT count(*)::int FROM tidegate.parked WHERE source = $1 AND state = 'held' AND aggregate = $2 AND aggregate <> ''
   AND (ord, position) > ($3, $4)`
	var n int
	err := d.conn.QueryRow(ctx, query, d.source, notNil(r.Aggregate), r.Ord, r.Position).Scan(&n)
	return n, d.explain(ctx, "count what waits behind a row", err)
}
