// Package slot owns the PostgreSQL side of a stream: it verifies or makes the publication and the logical replication
// slot, holds the replication connection, and says what may be confirmed on it.
//
// The order of a session is Inspect, Server.Check, Connect, Start, Run, Finish. Nothing here publishes anything: the
// caller tells by Confirm what is durable, and never more than that is reported to the server.
package slot

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Defaults of Config's zero values.
const (
	DefaultMaxRow        = 16 << 20
	DefaultCreateTimeout = time.Minute
	connectTimeout       = 10 * time.Second
)

// Plugin is the only output plug-in that the stream can read.
const Plugin = "pgoutput"

// maxName is the longest identifier or application_name that PostgreSQL keeps.
const maxName = 63

// Config says which slot is read, and how its server is reached. It is never changed by this package.
type Config struct {
	// URL is the connection string for SQL. PG* variables and the service file complete it.
	URL string
	// ReplicationURL is used for replication connections; empty means URL. It must reach the same server directly.
	ReplicationURL string

	Slot        string
	Publication string
	// Tables are the published tables, each "schema.table" as PostgreSQL stores the names, without quotes.
	Tables []string

	// MaxRow is the most bytes of one pgoutput message that are buffered. A bytea counts as its hexadecimal text.
	MaxRow int
	// CreateTimeout bounds how long CreateSlot waits for the transactions that are open.
	CreateTimeout time.Duration
	// Failover is "auto" or "on" (FAILOVER from PostgreSQL 17), or "off".
	Failover string

	// Logger may be nil.
	Logger *slog.Logger
}

// AppName is the application_name of the slot's replication connections, cut as PostgreSQL cuts it.
func AppName(slot string) string { return cutName("tidegate_" + slot) }

func cutName(s string) string {
	if len(s) > maxName {
		return s[:maxName]
	}
	return s
}

func (c Config) maxRow() int {
	if c.MaxRow <= 0 {
		return DefaultMaxRow
	}
	return c.MaxRow
}

func (c Config) createTimeout() time.Duration {
	if c.CreateTimeout <= 0 {
		return DefaultCreateTimeout
	}
	return c.CreateTimeout
}

func (c Config) logger() *slog.Logger {
	log := c.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return log.With(slog.String("slot", c.Slot))
}

// validate refuses names that could not be a slot or publication.
func (c Config) validate() error {
	if err := ValidName(c.Slot); err != nil {
		return err
	}
	if c.Publication == "" {
		return &RefusedError{Check: "publication name", Seen: "it is empty", Fix: "set slot.publication"}
	}
	return nil
}

// ValidName reports whether name can be a replication slot's: 1 to 63 of a-z, 0-9 and _.
func ValidName(name string) error {
	bad := name == "" || len(name) > maxName
	for _, r := range name {
		bad = bad || (r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z'))
	}
	if !bad {
		return nil
	}
	return &RefusedError{
		Check: "slot name", Seen: fmt.Sprintf("%q", name),
		Fix: "use 1 to 63 of the characters a-z, 0-9 and _ in slot.name",
	}
}

// sqlConfig is the configuration of an ordinary connection, known to the server by app.
func (c Config) sqlConfig(app string) (*pgx.ConnConfig, error) {
	pc, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return nil, &RefusedError{Check: "postgres.url", Seen: err.Error(), Fix: "see docs/configuration.md, postgres.url", Err: err}
	}
	prepare(&pc.Config, app)
	return pc, nil
}

// replicationConfig is the configuration of a walsender connection to the slot's database.
func (c Config) replicationConfig() (*pgconn.Config, error) {
	url, key := c.ReplicationURL, "postgres.replication_url"
	if url == "" {
		url, key = c.URL, "postgres.url"
	}
	pc, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, &RefusedError{Check: key, Seen: err.Error(), Fix: "see docs/configuration.md, " + key, Err: err}
	}
	prepare(pc, AppName(c.Slot))
	for k, v := range map[string]string{
		"replication":                         "database",
		"datestyle":                           "ISO",
		"timezone":                            "UTC",
		"intervalstyle":                       "postgres",
		"extra_float_digits":                  "3",
		"bytea_output":                        "hex",
		"client_encoding":                     "UTF8",
		"statement_timeout":                   "0",
		"idle_in_transaction_session_timeout": "0",
	} {
		pc.RuntimeParams[k] = v
	}
	return pc, nil
}

// prepare gives a parsed configuration its name, a bound on connecting, and, when it lists several hosts, the wish
// for the one that can be written to.
func prepare(pc *pgconn.Config, app string) {
	pc.RuntimeParams["application_name"] = app
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}
	pc.DialFunc = dialer.DialContext // a peer that is gone without a word is known before a query's own bound
	if pc.ConnectTimeout == 0 || pc.ConnectTimeout > connectTimeout {
		pc.ConnectTimeout = connectTimeout
	}
	for _, f := range pc.Fallbacks {
		if (f.Host != pc.Host || f.Port != pc.Port) && pc.ValidateConnect == nil {
			pc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		}
	}
}
