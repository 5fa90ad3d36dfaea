package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// EnsurePublication checks that the publication yields every insert into the tables, under the tables' own names.
// What it does not yield is a *DriftError with the SQL that mends it; a table that cannot be published at all is a
// *RefusedError. Somebody's publication is never altered.
//
// With create a publication that is missing is made. Then no slot may exist yet: a slot cannot decode with a
// publication that is younger than its position, and PostgreSQL 18 would drop the rows in between without an error.
func EnsurePublication(ctx context.Context, conn *pgx.Conn, name string, tables []string, create bool) (created bool, err error) {
	c := Config{Publication: name}
	for _, table := range tables {
		if err := checkTable(ctx, conn, table); err != nil {
			return false, named("check table "+table, classify(err, c))
		}
	}
	err = checkPublication(ctx, conn, name, tables)
	if create && errors.Is(err, errNoPublication) {
		created, err = createPublication(ctx, conn, name, tables)
		if err == nil {
			err = checkPublication(ctx, conn, name, tables)
		}
	}
	if err != nil {
		return created, named("check publication "+name, classify(err, c))
	}
	return created, nil
}

// named says what was being done, unless the error says so itself.
func named(doing string, err error) error {
	var typed hinted
	if errors.As(err, &typed) {
		return err
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// errNoPublication is within the DriftError of a publication that is missing.
var errNoPublication = errors.New("no such publication")

// CreatePublicationSQL is the statement that makes the publication as this package wants it: inserts only, so that
// the application's own updates and deletes need no replica identity; partitions under their root's name.
func CreatePublicationSQL(name string, tables []string) string {
	quoted := make([]string, len(tables))
	for i, table := range tables {
		quoted[i] = quoteTable(table)
	}
	return fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s WITH (publish = 'insert', publish_via_partition_root = true)",
		quoteIdent(name), strings.Join(quoted, ", "))
}

func quoteTable(table string) string {
	schema, name, _ := strings.Cut(table, ".")
	return quoteIdent(schema) + "." + quoteIdent(name)
}

func createPublication(ctx context.Context, conn *pgx.Conn, name string, tables []string) (created bool, err error) {
	sql := CreatePublicationSQL(name, tables)
	_, err = conn.Exec(ctx, sql)
	var pe *pgconn.PgError
	switch {
	case err == nil:
		return true, nil
	case !errors.As(err, &pe):
		return false, err
	case pe.Code == "42710" || pe.Code == "23505": // another instance was faster
		return false, nil
	case pe.Code == "42501":
		return false, &RefusedError{
			Check: "publication " + name, Seen: pe.Message,
			Fix: "let the owner of the tables run: " + sql, Err: err,
		}
	}
	return false, err
}

// checkTable refuses what no publication can hold.
func checkTable(ctx context.Context, conn *pgx.Conn, table string) error {
	schema, name, _ := strings.Cut(table, ".")
	const query = `SELECT c.relkind::text, c.relpersistence::text FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2`
	var kind, persistence string
	err := conn.QueryRow(ctx, query, schema, name).Scan(&kind, &persistence)
	refuse := func(seen, fix string) error {
		return &RefusedError{Check: "table " + table, Seen: seen, Fix: fix}
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return refuse("it does not exist", "create it (tidegate migrate up), or correct its name in outboxes")
	case err != nil:
		return err
	case kind != "r" && kind != "p":
		return refuse("it is no table", "name the table itself in outboxes")
	case persistence == "u":
		return refuse("it is unlogged: its rows never reach the WAL", "ALTER TABLE "+quoteTable(table)+" SET LOGGED")
	case persistence != "p":
		return refuse("it is temporary", "name a permanent table in outboxes")
	case kind == "p":
		return checkPartitions(ctx, conn, table)
	}
	return nil
}

func checkPartitions(ctx context.Context, conn *pgx.Conn, table string) error {
	const query = `SELECT n.nspname || '.' || c.relname FROM pg_partition_tree($1::text::regclass) t
		JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relpersistence <> 'p' ORDER BY 1 LIMIT 1`
	var partition string
	err := conn.QueryRow(ctx, query, quoteTable(table)).Scan(&partition)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return &RefusedError{
		Check: "table " + table, Seen: "its partition " + partition + " is unlogged: rows in it never reach the WAL",
		Fix: "ALTER TABLE " + quoteTable(partition) + " SET LOGGED",
	}
}

func checkPublication(ctx context.Context, conn *pgx.Conn, name string, tables []string) error {
	drift := func(seen, fix string, err error) error {
		return &DriftError{Object: "publication " + name, Seen: seen, Fix: fix, Err: err}
	}
	var inserts, root bool
	err := conn.QueryRow(ctx, `SELECT pubinsert, pubviaroot FROM pg_publication WHERE pubname = $1`, name).Scan(&inserts, &root)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return drift("it does not exist", CreatePublicationSQL(name, tables)+
			"; a slot that is older than the publication must be made again", errNoPublication)
	case err != nil:
		return err
	case !inserts:
		return drift("it does not publish inserts", "ALTER PUBLICATION "+quoteIdent(name)+" SET (publish = 'insert')", nil)
	}
	published, err := publishedTables(ctx, conn, name)
	if err != nil {
		return err
	}
	for _, table := range tables {
		filter, ok := published[table]
		switch {
		case !ok:
			seen, fix, err := notPublished(ctx, conn, name, table, root)
			if err != nil {
				return err
			}
			return drift(seen, fix, nil)
		case filter != "":
			return drift("it publishes only the rows of "+table+" with "+filter, fmt.Sprintf(
				"ALTER PUBLICATION %s DROP TABLE %s; ALTER PUBLICATION %[1]s ADD TABLE %[2]s", quoteIdent(name), quoteTable(table)), nil)
		}
	}
	return nil
}

// notPublished says what a publication lacks that does not yield a table under its name.
func notPublished(ctx context.Context, conn *pgx.Conn, name, table string, root bool) (seen, fix string, err error) {
	const query = `SELECT c.relkind = 'p', EXISTS (SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
		WHERE p.pubname = $1 AND r.prrelid = c.oid) FROM pg_class c WHERE c.oid = $2::text::regclass`
	var partitioned, held bool
	if err := conn.QueryRow(ctx, query, name, quoteTable(table)).Scan(&partitioned, &held); err != nil {
		return "", "", err
	}
	seen = "it does not publish " + table
	var fixes []string
	if !held {
		fixes = append(fixes, fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s", quoteIdent(name), quoteTable(table)))
	}
	if partitioned && !root {
		seen += " under that name"
		fixes = append(fixes, fmt.Sprintf("ALTER PUBLICATION %s SET (publish_via_partition_root = true)", quoteIdent(name)))
	}
	if len(fixes) == 0 {
		return seen + " under that name", fmt.Sprintf("take what it is a partition of out of the publication: ALTER PUBLICATION %s DROP TABLE …", quoteIdent(name)), nil
	}
	return seen, strings.Join(fixes, "; "), nil
}

// publishedTables gives the tables under the names that the stream uses, each with its row filter.
func publishedTables(ctx context.Context, conn *pgx.Conn, name string) (map[string]string, error) {
	const query = `SELECT schemaname || '.' || tablename, coalesce(to_jsonb(t) ->> 'rowfilter', '')
		FROM pg_publication_tables t WHERE pubname = $1`
	rows, err := conn.Query(ctx, query, name)
	if err != nil {
		return nil, err
	}
	published := map[string]string{}
	var table, filter string
	_, err = pgx.ForEachRow(rows, []any{&table, &filter}, func() error {
		published[table] = filter
		return nil
	})
	return published, err
}
