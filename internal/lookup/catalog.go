package lookup

import (
	"context"
	"fmt"

	"github.com/tidegate-cdc/tidegate/internal/exit"
)

// describe finds out what the statements for t need, and says what of it is not there.
func (s *session) describe(ctx context.Context, t *Table) (catalog, error) {
	var c catalog
	var err error
	c.postgis, err = s.one(ctx, `SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension AS e
		JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'postgis'`)
	if err != nil {
		return c, err
	}
	if c.postgis == "" {
		return c, &exit.Error{
			Code: exit.Postgres,
			Err:  fmt.Errorf("look up %s: the database has no PostGIS", t.Table),
			Hint: "run in that database: CREATE EXTENSION postgis",
		}
	}
	for _, column := range []string{t.Geom, t.Version, t.ID} {
		if column == "" {
			continue
		}
		if c.keyType, err = s.columnType(ctx, t, column); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (s *session) columnType(ctx context.Context, t *Table, column string) (string, error) {
	kind, err := s.one(ctx, `SELECT pg_catalog.format_type(a.atttypid, -1) FROM pg_catalog.pg_attribute AS a
		WHERE a.attrelid = pg_catalog.to_regclass($1) AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped`,
		relation(t.Table), column)
	if err != nil {
		return "", err
	}
	if kind != "" {
		return kind, nil
	}
	table, err := s.one(ctx, "SELECT pg_catalog.to_regclass($1)::text", relation(t.Table))
	if err != nil {
		return "", err
	}
	drift := &exit.Error{Code: exit.Drift, Hint: "correct feature." +
		"table, .id, .version and .geometry of the outbox in the configuration, or restore the table"}
	if table == "" {
		drift.Err = fmt.Errorf("look up %s: the table does not exist", t.Table)
	} else {
		drift.Err = fmt.Errorf("look up %s: column %q does not exist", t.Table, column)
	}
	return "", drift
}

// whyInvisible says what is known of a commit that other sessions cannot see. Without pg_monitor a role reads null for
// what other roles' sessions wait for.
func (s *session) whyInvisible(ctx context.Context, xid uint32) string {
	cause := fmt.Sprintf("commit of xid %d is not visible yet", xid)
	wait, err := s.one(ctx, `SELECT a.wait_event FROM pg_catalog.pg_stat_activity AS a
		WHERE a.backend_xid::text = $1 AND a.wait_event IS NOT NULL`, fmt.Sprint(xid))
	switch {
	case err != nil:
		return cause
	case wait == "SyncRep":
		return fmt.Sprintf("commit of xid %d waits for a synchronous standby", xid)
	case wait != "":
		return cause + ": it waits for " + wait
	}
	names, err := s.one(ctx, "SELECT pg_catalog.current_setting('synchronous_standby_names')")
	if err != nil || names == "" {
		return cause
	}
	return cause + ": it may wait for a synchronous standby"
}
