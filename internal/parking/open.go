package parking

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	schema = "tidegate"
	table  = schema + ".parked"

	undefinedTable        = "42P01"
	insufficientPrivilege = "42501"
)

// session is a connection on which the table is known to be there, and to be open to the role.
type session struct {
	conn   *pgx.Conn
	source string
	wants  string // the privileges that it needs: "SELECT, UPDATE"
	ascii  bool   // the database's encoding may not know a character of ours
}

func open(ctx context.Context, conn *pgx.Conn, source, wants string) (*session, error) {
	s := &session{conn: conn, source: source, wants: wants}
	var encoding string
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_encoding')").Scan(&encoding); err != nil {
		return nil, fmt.Errorf("open %s: %w", table, err)
	}
	s.ascii = encoding != "UTF8"
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// check asks the catalog, which any role may read, whatever it lacks: a name in a schema without USAGE is an error.
func (s *session) check(ctx context.Context) error {
	var (
		role, database string
		lacks          []string
	)
	const query = `
SELECT current_user::text, current_database()::text,
       array(SELECT 'USAGE' WHERE NOT has_schema_privilege(n.oid, 'USAGE')
             UNION ALL SELECT p FROM unnest($3::text[]) p WHERE NOT has_table_privilege(c.oid, p))
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')`
	_, name, _ := strings.Cut(table, ".")
	err := s.conn.QueryRow(ctx, query, schema, name, strings.Split(s.wants, ", ")).Scan(&role, &database, &lacks)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s.missing(ctx)
	case err != nil:
		return fmt.Errorf("open %s: %w", table, err)
	case len(lacks) > 0:
		return &PrivilegeError{Role: role, Lacks: lacks, wants: s.wants}
	}
	return nil
}

func (s *session) missing(ctx context.Context) error {
	var database string
	if err := s.conn.QueryRow(ctx, "SELECT current_database()").Scan(&database); err != nil {
		return fmt.Errorf("open %s: %w", table, err)
	}
	return &MissingError{Database: database}
}

// beginDurably does not leave it to the role's or the database's settings whether a commit is on disk, nor whether
// anything may be written.
const beginDurably = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = on"

// durably runs do as one transaction that is on disk when it returns without an error. With an error it may be so too.
func (s *session) durably(ctx context.Context, doing string, do func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, s.conn, pgx.TxOptions{BeginQuery: beginDurably}, do)
	return s.explain(ctx, doing, err)
}

// explain finds out why the server refused: a table dropped or a privilege revoked since it was looked for.
func (s *session) explain(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if state := sqlState(err); state == undefinedTable || state == insufficientPrivilege {
		if cause := s.check(ctx); cause != nil {
			return cause
		}
	}
	var (
		full    *FullError
		changed *ChangedError
	)
	if errors.As(err, &full) || errors.As(err, &changed) {
		return err
	}
	return fmt.Errorf("%s: %w", doing, err)
}
