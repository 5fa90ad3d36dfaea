package slot

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// hinted is an error that carries its fix.
type hinted interface {
	error
	Hint() string
}

// Explain gives the fix for an error of this package or of PostgreSQL: a command, a setting, SQL. It is "" for what
// nobody needs to mend.
func Explain(err error) string {
	var (
		typed hinted
		pe    *pgconn.PgError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &typed):
		return typed.Hint()
	case errors.As(err, &pe):
		return hintServer(pe)
	case tlsTrouble(err):
		return hintTLS(err)
	}
	return ""
}

func hintTLS(err error) string {
	if strings.Contains(err.Error(), refusedTLS) {
		return "the server has no TLS: set ssl = on there, or sslmode=prefer (or disable) in postgres.url"
	}
	if strings.Contains(err.Error(), "remote error") {
		return "the server ended the TLS handshake: set sslcert and sslkey in postgres.url to a certificate that its authority signed"
	}
	return "set sslrootcert in postgres.url to the authority that signed the server's certificate, and use the host name that the certificate names (sslmode=verify-full)"
}

// serverHint is a fix for the errors of one SQLSTATE whose text contains a part; "" is any text. Texts differ between
// versions and may be translated, so the last line of a SQLSTATE is its general one.
type serverHint struct{ code, text, fix string }

func hintServer(pe *pgconn.PgError) string {
	for _, h := range serverHints {
		if h.code == pe.Code && strings.Contains(pe.Message, h.text) {
			return h.fix
		}
	}
	return ""
}

const (
	fixReplication = "ALTER ROLE <role> REPLICATION; on RDS and Aurora: GRANT rds_replication TO <role>"
	fixDirect      = "a pooler or proxy is in between: set postgres.replication_url to the server's direct endpoint"
)

var serverHints = []serverHint{
	{"55000", "wal_level", "ALTER SYSTEM SET wal_level = logical, then restart PostgreSQL (managed services have a switch of their own, such as rds.logical_replication = 1)"},
	{"55000", "was not created in this database", "the slot belongs to another database: set slot.name to an own name, or the database in postgres.url to the slot's"},
	{"55000", "requires a database connection", fixDirect},
	{"55000", "recovery is in progress", "this server is a standby: list the primary in postgres.url"},
	{"55000", "synchronized", "this server is a standby whose slot is synchronized from the primary: list the primary in postgres.url"},
	{"0A000", "", "this server is a standby: list the primary in postgres.url"},
	{"42501", "output plugin", "output_plugin_libraries forbids the plug-in: add pgoutput to it (its default holds it)"},
	{"42501", "permission denied for database", "GRANT CONNECT ON DATABASE <database> TO <role>; making a publication also wants GRANT CREATE"},
	{"42501", "must be owner of table", "let the table's owner run CREATE PUBLICATION, or grant its role to this one"},
	{"42501", "row-level security", "ALTER ROLE <role> BYPASSRLS, or a policy that shows the role every row"},
	{"42501", "walsender", fixReplication},
	{"42501", "WAL sender", fixReplication},
	{"42501", "replication slots", fixReplication},
	{"42501", "", "the role lacks a privilege; it needs LOGIN, REPLICATION and CONNECT, and SELECT on what it reads: features, and outboxes for slot.snapshot: publish"},
	{"53400", "", "raise max_replication_slots, or drop a slot that nobody uses (SELECT slot_name FROM pg_replication_slots WHERE NOT active)"},
	{"53300", "max_wal_senders", "raise max_wal_senders, or end replication clients that nobody needs"},
	{"53300", "", "raise max_connections, or the role's CONNECTION LIMIT"},
	{"42602", "", "use only a-z, 0-9 and _ in slot.name"},
	{"42710", "replication slot", "the name is taken: use another slot.name, or SELECT pg_drop_replication_slot('<slot>')"},
	{"28000", "no encryption", "the server takes nobody from this host without TLS: set sslmode=require (or verify-full) in postgres.url; or add a pg_hba.conf line"},
	{"28000", "client certificate", "set sslcert and sslkey in postgres.url to a certificate that the server's authority signed"},
	{"28000", "pg_hba", "add a pg_hba.conf line for this host, role and database (lines for \"replication\" do not match logical replication), then SELECT pg_reload_conf()"},
	{"28000", "", "check the role in postgres.url: CREATE ROLE <role> LOGIN REPLICATION"},
	{"28P01", "", "check user and password in postgres.url (or PGPASSWORD, the passfile, postgres.url_file)"},
	{"3D000", "", "check the database name in postgres.url"},
	{"08P01", "", fixDirect},
	{"22023", "", "the table cannot be published: ALTER TABLE <table> SET LOGGED if it is unlogged; temporary tables and views cannot be"},
	{"25001", "", "the slot must be made outside of a transaction that has written"},
	{"42P01", "", "create the table (tidegate migrate up), or correct its name in the configuration"},
}
