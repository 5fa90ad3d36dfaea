// Package config reads the configuration from flags, environment, file and defaults, remembers where each value came
// from, and checks values and their relations. It reports every problem it finds, not only the first.
package config

import "time"

// Config is a whole configuration. One that Load returned without an error is complete (defaults filled in) and
// consistent. Sizes are in bytes.
type Config struct {
	Source    Source    `koanf:"source"`
	Postgres  Postgres  `koanf:"postgres"`
	Slot      Slot      `koanf:"slot"`
	Streams   []Stream  `koanf:"streams"`
	Outboxes  []Outbox  `koanf:"outboxes"`
	NATS      NATS      `koanf:"nats"`
	Publish   Publish   `koanf:"publish"`
	Park      Park      `koanf:"park"`
	Retention Retention `koanf:"retention"`
	Monitor   Monitor   `koanf:"monitor"`
	HTTP      HTTP      `koanf:"http"`
	Log       Log       `koanf:"log"`
}

// Source names the database whose outboxes are published. Load fills Name with the database's when it is not given.
type Source struct {
	Name string `koanf:"name"`
	Kind string `koanf:"kind"`
}

// Postgres says how the database is reached, in any form that pgx reads; empty URL: PG* variables and service file.
type Postgres struct {
	URL            string `koanf:"url"`
	ReplicationURL string `koanf:"replication_url"`
	LookupURL      string `koanf:"lookup_url"`
}

// Replication is the URL for the replication connection.
func (p Postgres) Replication() string { return or(p.ReplicationURL, p.URL) }

// Lookup is the URL from which geometry is read.
func (p Postgres) Lookup() string { return or(p.LookupURL, p.URL) }

// Slot is the replication slot and its publication.
type Slot struct {
	Name              string        `koanf:"name"`
	Publication       string        `koanf:"publication"`
	Create            bool          `koanf:"create"`
	Snapshot          string        `koanf:"snapshot"` // "", publish or skip
	Failover          string        `koanf:"failover"` // auto, on or off
	HeartbeatInterval time.Duration `koanf:"heartbeat_interval"`
	OnLost            string        `koanf:"on_lost"`
}

// Stream is a JetStream stream that outboxes are published to.
type Stream struct {
	Name            string        `koanf:"name"`
	Create          bool          `koanf:"create"`
	Replicas        int           `koanf:"replicas"`
	MaxAge          time.Duration `koanf:"max_age"` // 0: for ever
	DuplicateWindow time.Duration `koanf:"duplicate_window"`
}

// Outbox is an outbox table and where its rows go. Feature, Geometry and the H3 fields are for kind feature.
type Outbox struct {
	Table        string  `koanf:"table"` // schema.table
	Kind         string  `koanf:"kind"`  // event or feature
	Stream       string  `koanf:"stream"`
	Subject      string  `koanf:"subject"`
	Columns      Columns `koanf:"columns"`
	OrderBy      string  `koanf:"order_by"`
	Rows         string  `koanf:"rows"`
	Feature      Feature `koanf:"feature"`
	Geometry     string  `koanf:"geometry"`
	H3Resolution int     `koanf:"h3_resolution"`
	H3Point      string  `koanf:"h3_point"`
}

// Columns maps what an event is made of to column names; "" is not mapped. The zero value means that the
// configuration gave no columns: the table's own names then decide. It converts to event.Columns.
type Columns struct {
	ID          string `koanf:"id"`
	EventType   string `koanf:"event_type"`
	CreatedAt   string `koanf:"created_at"`
	Traceparent string `koanf:"traceparent"`

	AggregateType string `koanf:"aggregate_type"`
	AggregateID   string `koanf:"aggregate_id"`
	Payload       string `koanf:"payload"`
	Version       string `koanf:"version"`
	Headers       string `koanf:"headers"`

	FeatureID      string `koanf:"feature_id"`
	FeatureVersion string `koanf:"feature_version"`
	RoutingKey     string `koanf:"routing_key"`
	SchemaVersion  string `koanf:"schema_version"`
}

// Feature is the PostGIS table that the rows of a feature outbox refer to.
type Feature struct {
	Table      string `koanf:"table"` // schema.table
	Collection string `koanf:"collection"`
	ID         string `koanf:"id"`
	Version    string `koanf:"version"`
	Geometry   string `koanf:"geometry"`
	AssumeSRID int    `koanf:"assume_srid"`
}

// NATS says how the servers are reached. At most one way of authentication is given.
type NATS struct {
	URL             string `koanf:"url"` // comma-separated
	Context         string `koanf:"context"`
	CredsFile       string `koanf:"creds_file"`
	NKeyFile        string `koanf:"nkey_file"`
	User            string `koanf:"user"`
	Password        string `koanf:"password"`
	Token           string `koanf:"token"`
	TLS             TLS    `koanf:"tls"`
	InboxPrefix     string `koanf:"inbox_prefix"`
	JetStreamDomain string `koanf:"jetstream_domain"`
}

// TLS names the files of a TLS connection to NATS. First: the handshake comes before the server's greeting.
type TLS struct {
	CA    string `koanf:"ca"`
	Cert  string `koanf:"cert"`
	Key   string `koanf:"key"`
	First bool   `koanf:"first"`
}

// Publish bounds what is in flight.
type Publish struct {
	Mode             string        `koanf:"mode"`
	MaxInFlight      int           `koanf:"max_in_flight"`
	MaxInFlightBytes int64         `koanf:"max_in_flight_bytes"`
	AckTimeout       time.Duration `koanf:"ack_timeout"`
	MaxRow           int64         `koanf:"max_row"`
}

// Park says what becomes of rows that cannot be published.
type Park struct {
	Store   string `koanf:"store"`
	Order   string `koanf:"order"`
	MaxRows int    `koanf:"max_rows"`
}

// Retention deletes published rows once they are older than Keep; 0 deletes none.
type Retention struct {
	Keep  time.Duration `koanf:"keep"`
	Batch int           `koanf:"batch"`
}

// Monitor sets when the slot's state is a warning and when it is critical.
type Monitor struct {
	Interval time.Duration `koanf:"interval"`
	Warn     Warn          `koanf:"warn"`
	Critical Critical      `koanf:"critical"`
	WALLimit int64         `koanf:"wal_limit"` // 0: not given
}

// Warn is the first level. Used is a share from 0 to 1.
type Warn struct {
	Used float64       `koanf:"used"`
	ETA  time.Duration `koanf:"eta"`
	Age  time.Duration `koanf:"age"`
}

// Critical is the second level. Used is a share from 0 to 1.
type Critical struct {
	Used     float64       `koanf:"used"`
	ETA      time.Duration `koanf:"eta"`
	Age      time.Duration `koanf:"age"`
	Inactive time.Duration `koanf:"inactive"`
}

// HTTP is the listener for metrics and probes.
type HTTP struct {
	Listen     string        `koanf:"listen"`
	ReadyGrace time.Duration `koanf:"ready_grace"`
}

// Log says what is logged and how: auto is text on a terminal and JSON elsewhere.
type Log struct {
	Level  string `koanf:"level"`
	Format string `koanf:"format"`
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
