package slot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// Catalog is what PostgreSQL's catalog said, at one moment, of a publication and of the tables that it is to yield.
// Rows are known by their oid and xmin: what was altered and altered back is not what it was.
type Catalog struct {
	// LSN and At are the moment before the catalog was read, by the server's clock: whatever was altered by a commit
	// before LSN is seen here, unless Open says otherwise.
	LSN decoder.LSN
	At  time.Time

	publication catalogRow
	tables      map[string]*catalogTable
	open        bool
	ended       []string // versions of rows that a transaction ended which is not running any more
}

// catalogRow is one version of a row; its oid is 0 where there is none.
type catalogRow struct {
	oid  uint32
	xmin string
}

type catalogTable struct {
	oid         uint32
	persistence string                // and that of its partitions
	covers      map[uint32]catalogRow // what makes the publication hold it: rows that name it, its root, its schema
}

// Open reports whether a transaction that alters one of the rows is running still, or was when the catalog was read. It
// may have its commit in the WAL already, in front of LSN, and be unseen because it waits for a disk or a standby. before
// is an earlier Catalog of the same server, or nil: what had ended by then and left no trace was not an alteration.
func (c *Catalog) Open(before *Catalog) bool {
	if c.open {
		return true
	}
	return slices.ContainsFunc(c.ended, func(e string) bool { return before == nil || !slices.Contains(before.ended, e) })
}

// Equal reports whether nothing that Compare looks at has changed.
func (c *Catalog) Equal(o *Catalog) bool {
	if c.publication != o.publication || len(c.tables) != len(o.tables) {
		return false
	}
	for name, t := range c.tables {
		other := o.tables[name]
		if other == nil || t.oid != other.oid || t.persistence != other.persistence || len(t.covers) != len(other.covers) {
			return false
		}
		for oid, cover := range t.covers {
			if other.covers[oid] != cover {
				return false
			}
		}
	}
	return true
}

// Compare gives a *DriftError when rows may have been left out of the stream between c and now, although EnsurePublication
// finds nothing to mend. Other tables that come and go are no drift, nor is what does not touch the publication: indexes,
// statistics, vacuum, privileges, columns.
func (c *Catalog) Compare(now *Catalog, publication string) error {
	drift := func(table, seen string) error {
		object := "publication " + publication
		if table != "" {
			object = "table " + table
		}
		return &DriftError{Object: object, Seen: seen, Fix: "nothing is left to mend there", Tables: c.names(table)}
	}
	switch {
	case now.publication.oid != c.publication.oid:
		return drift("", "it was dropped and made again")
	case now.publication != c.publication:
		return drift("", "it was altered; it yields every row now, but may have left rows out before (who altered it last may have changed no more than its owner)")
	}
	for _, name := range c.names("") {
		was, is := c.tables[name], now.tables[name]
		switch {
		case is == nil || is.oid != was.oid:
			return drift(name, "it is another table than when the session began: it was dropped or renamed, and made again")
		case is.persistence != was.persistence:
			return drift(name, "it, or a partition of it, is unlogged, or was for a time")
		case len(was.covers) > 0 && !is.keeps(was):
			return drift(name, "publication "+publication+" was altered: the table was taken out and put back, or its row filter or column list changed")
		}
	}
	return nil
}

// keeps reports whether something that made the publication hold the table has done so without a break.
func (t *catalogTable) keeps(was *catalogTable) bool {
	for oid, cover := range was.covers {
		if t.covers[oid] == cover {
			return true
		}
	}
	return false
}

// names gives the tables in order, or the one that is meant.
func (c *Catalog) names(only string) []string {
	if only != "" {
		return []string{only}
	}
	names := make([]string, 0, len(c.tables))
	for name := range c.tables {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ReadCatalog reads the catalog. The position in the WAL is read first, by a statement of its own, and the rows then in
// one snapshot: so a change whose commit lies before LSN is seen, or the row that it ends bears its transaction's id.
// Any role may do it.
func ReadCatalog(ctx context.Context, conn *pgx.Conn, publication string, tables []string) (*Catalog, error) {
	c, err := readCatalog(ctx, conn, publication, tables)
	if err != nil {
		return nil, named("read the catalog of publication "+publication, classify(err, Config{Publication: publication}))
	}
	return c, nil
}

func readCatalog(ctx context.Context, conn *pgx.Conn, publication string, tables []string) (*Catalog, error) {
	c := &Catalog{tables: map[string]*catalogTable{}}
	var batch pgx.Batch
	batch.Queue(`SELECT pg_current_wal_insert_lsn()::text, clock_timestamp()`).QueryRow(func(row pgx.Row) error {
		var lsn string
		err := row.Scan(&lsn, &c.At)
		if err == nil {
			c.LSN, err = decoder.ParseLSN(lsn)
		}
		return err
	})
	schemas, names := make([]string, len(tables)), make([]string, len(tables))
	for i, table := range tables {
		schemas[i], names[i], _ = strings.Cut(table, ".")
	}
	batch.Queue(catalogSQL(conn), publication, schemas, names).Query(c.take)
	return c, conn.SendBatch(ctx, &batch).Close()
}

// catalogSQL is the query for the connection's server: schemas are in publications from PostgreSQL 15 on.
func catalogSQL(conn *pgx.Conn) string {
	var major int
	if _, err := fmt.Sscanf(conn.PgConn().ParameterStatus("server_version"), "%d", &major); err == nil && major < 15 {
		return fmt.Sprintf(catalogQuery, "")
	}
	return fmt.Sprintf(catalogQuery, catalogSchemas)
}

// catalogQuery gives the rows with their versions. A row that a transaction has ended, or tried to, bears that one's id
// in xmax; what became of it is asked of the server, for the id may be a subtransaction's.
const catalogQuery = `
WITH RECURSIVE pub AS (
	SELECT oid, xmin, xmax FROM pg_publication WHERE pubname = $1
), wanted AS (
	SELECT w.schema || '.' || w.name AS name, c.oid, c.xmax, c.relpersistence, c.relnamespace
	  FROM unnest($2::text[], $3::text[]) AS w(schema, name)
	  JOIN pg_namespace n ON n.nspname = w.schema
	  JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
), roots AS (
	SELECT name, oid, relnamespace FROM wanted
	UNION
	SELECT r.name, c.oid, c.relnamespace
	  FROM roots r JOIN pg_inherits i ON i.inhrelid = r.oid JOIN pg_class c ON c.oid = i.inhparent AND c.relkind = 'p'
), parts AS (
	SELECT w.name, w.oid FROM wanted w JOIN pg_class c ON c.oid = w.oid AND c.relkind = 'p'
	UNION
	SELECT p.name, i.inhrelid FROM parts p JOIN pg_inherits i ON i.inhparent = p.oid
), seen AS (
	SELECT 'publication' AS kind, '' AS name, oid, xmin, xmax, '' AS persistence FROM pub
	UNION ALL
	SELECT 'table', name, oid, '0', xmax, relpersistence::text FROM wanted
	UNION ALL
	SELECT 'part', p.name, c.oid, '0', '0', c.relpersistence::text FROM parts p JOIN pg_class c USING (oid) WHERE c.relpersistence <> 'p'
	UNION ALL
	SELECT 'cover', r.name, pr.oid, pr.xmin, pr.xmax, ''
	  FROM roots r JOIN pg_publication_rel pr ON pr.prrelid = r.oid JOIN pub ON pub.oid = pr.prpubid %s
)
SELECT kind, name, oid, xmin::text, xmax::text, persistence,
       CASE WHEN xmax::text = '0' THEN '' ELSE coalesce(pg_xact_status((base - ((base - xmax::text::bigint) & 4294967295))::text::xid8), '') END
  FROM seen, (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 2147483647 AS base) AS horizon
 ORDER BY kind, name, oid`

const catalogSchemas = `
	UNION ALL
	SELECT 'cover', r.name, pn.oid, pn.xmin, pn.xmax, ''
	  FROM roots r JOIN pg_publication_namespace pn ON pn.pnnspid = r.relnamespace JOIN pub ON pub.oid = pn.pnpubid`

// take reads the query's rows.
func (c *Catalog) take(rows pgx.Rows) error {
	var (
		kind, name, xmin, xmax, persistence, status string
		oid                                         uint32
	)
	_, err := pgx.ForEachRow(rows, []any{&kind, &name, &oid, &xmin, &xmax, &persistence, &status}, func() error {
		t := c.tables[name]
		if t == nil && kind != "publication" {
			t = &catalogTable{covers: map[uint32]catalogRow{}}
			c.tables[name] = t
		}
		switch kind {
		case "publication":
			c.publication = catalogRow{oid, xmin}
		case "table":
			t.oid, t.persistence = oid, t.persistence+persistence
		case "part":
			t.persistence += fmt.Sprintf(" %d:%s", oid, persistence)
		case "cover":
			t.covers[oid] = catalogRow{oid, xmin}
		}
		switch status {
		case "in progress":
			c.open = true
		case "committed": // a lock, as the row is there still; or a change that ended behind our snapshot
			c.ended = append(c.ended, fmt.Sprintf("%s %d %s", kind, oid, xmax))
		}
		return nil
	})
	return err
}
