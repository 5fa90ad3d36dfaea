package config

import "strings"

// Key describes one configuration key: what it means, its default and what it may be. The documentation is generated
// from it, and Load takes defaults and allowed values from it.
type Key struct {
	Path    string   // "slot.name"; inside lists "streams[].name"
	Default string   // as it would be written in YAML
	Values  []string // the only values allowed, when there are such
	Later   []string // values that are known but not in this version; "*": any value but the default
	Secret  bool     // never printed; also given as a file by the key <Path>_file
	Flag    string   // the command-line flag, when there is one
	Doc     string
}

// Env is the environment variable of the key; a key inside a list has none, the whole list is given as JSON.
func (k Key) Env() string {
	if strings.Contains(k.Path, "[]") {
		return ""
	}
	return envName(k.Path)
}

func envName(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

const (
	envPrefix  = "TIDEGATE_"
	fileSuffix = "_file" // of a key that names the file a secret is read from
	anyOther   = "*"     // in Key.Later
)

// Keys lists every key in the order of the documentation.
func Keys() []Key {
	var keys []Key
	for _, group := range [][]Key{
		sourceKeys(), slotKeys(), streamKeys(), outboxKeys(), columnKeys(), featureKeys(), natsKeys(), publishKeys(), serviceKeys(),
	} {
		keys = append(keys, group...)
	}
	return keys
}

func sourceKeys() []Key {
	return []Key{
		{Path: "source.name", Doc: "Names the source in message ids, positions and the checkpoint: letters, digits, `_` and `-`. " +
			"Two sources that publish into one NATS need two names. Default: the name of the database."},
		{
			Path: "source.kind", Default: "wal", Values: []string{"wal"}, Later: []string{"poll"},
			Doc: "Where rows come from: `wal`, a logical replication slot.",
		},
		{
			Path: "postgres.url", Secret: true, Flag: "postgres-url",
			Doc: "The database, as URL or as `host=… dbname=…`. Parts that are missing come from the `PG*` variables, the password file " +
				"and the service file. Several hosts may be given: the one that accepts writes is used.",
		},
		{Path: "postgres.replication_url", Secret: true, Doc: "For the replication connection, where `postgres.url` leads through a pooler. Default: `postgres.url`."},
		{Path: "postgres.lookup_url", Secret: true, Doc: "Where geometry is read. Default: `postgres.url`."},
	}
}

func slotKeys() []Key {
	return []Key{
		{Path: "slot.name", Default: "tidegate", Flag: "slot", Doc: "The replication slot: lower-case letters, digits and `_`, at most 63."},
		{Path: "slot.publication", Default: "tidegate", Doc: "The publication that the slot is read through."},
		{Path: "slot.create", Default: "true", Doc: "Create publication and slot when they are missing and no checkpoint of this source exists."},
		{
			Path: "slot.snapshot", Values: []string{"", "publish", "skip"},
			Doc: "What becomes of rows that are older than the slot, at the first start: `publish` or `skip` them. " +
				"Empty: the first start is refused while there are such rows.",
		},
		{
			Path: "slot.failover", Default: "auto", Values: []string{"auto", "on", "off"},
			Doc: "Create the slot with FAILOVER (PostgreSQL 17 and later): `auto` where the server allows it.",
		},
		{
			Path: "slot.heartbeat_interval", Default: "0", Later: []string{anyOther},
			Doc: "How often a logical message is written to prove that the slot moves. 0: never. The slot moves on a quiet database without it.",
		},
		{
			Path: "slot.on_lost", Default: "stop", Values: []string{"stop"}, Later: []string{"replay"},
			Doc: "What to do when the server has invalidated the slot: `stop` with exit code 4.",
		},
	}
}

func streamKeys() []Key {
	return []Key{
		{Path: "streams[].name", Doc: "The JetStream stream. Required."},
		{Path: "streams[].create", Default: "true", Doc: "Create the stream, or widen its subjects, when it does not cover what is published. It is never narrowed or deleted."},
		{Path: "streams[].replicas", Default: "1", Doc: "Replicas of a stream that is created: 1 to 5."},
		{Path: "streams[].max_age", Default: "168h", Doc: "How long a stream that is created keeps messages. 0: for ever."},
		{Path: "streams[].duplicate_window", Default: "2m", Doc: "How long a stream that is created remembers message ids; at most `max_age`."},
	}
}

func outboxKeys() []Key {
	return []Key{
		{Path: "outboxes[].table", Doc: "The outbox table as `schema.table`, without quotes. Required."},
		{
			Path: "outboxes[].kind", Default: "event", Values: []string{"event", "feature"},
			Doc: "The shape of the table: `event` carries its payload, `feature` refers to a PostGIS row by id and version.",
		},
		{Path: "outboxes[].stream", Doc: "The stream its rows go to. Default: the stream, when there is only one."},
		{Path: "outboxes[].subject", Doc: "The subject template. Default: `" + eventSubject + "`, for kind feature `" + featureSubject + "`."},
		{Path: "outboxes[].order_by", Doc: "The column whose order is insert order, for reads of the table. Default: `seq`, or an integer `id`."},
		{
			Path: "outboxes[].rows", Default: "kept", Values: []string{"kept", "deleted"},
			Doc: "Whether the application leaves rows in the table (`kept`) or deletes them at once (`deleted`).",
		},
		{
			Path: "outboxes[].geometry", Default: "lookup", Values: []string{"lookup", "none"}, Later: []string{"wal"},
			Doc: "Kind feature: where the geometry comes from; `none` publishes without.",
		},
		{Path: "outboxes[].h3_resolution", Default: "8", Doc: "Kind feature: the resolution of `{h3}`, 0 to 15."},
		{
			Path: "outboxes[].h3_point", Default: "surface", Values: []string{"surface", "centroid"},
			Doc: "Kind feature: the point whose cell is `{h3}`: `surface` always lies on the geometry.",
		},
	}
}

func columnKeys() []Key {
	column := func(name, doc string) Key { return Key{Path: "outboxes[].columns." + name, Doc: doc} }
	return []Key{
		column("id", "The row's id. When `columns` is not given at all, Debezium's column names are recognised too."),
		column("aggregate_type", "Kind event."),
		column("aggregate_id", "Kind event: rows of one aggregate are published in order."),
		column("event_type", "What happened."),
		column("payload", "Kind event: the body of the message."),
		column("created_at", "When the row was written."),
		column("version", "Kind event: the aggregate's version, for the header `Tidegate-Version`."),
		column("headers", "Kind event: a JSON object of strings that become headers."),
		column("traceparent", "W3C trace context."),
		column("feature_id", "Kind feature: the feature's id."),
		column("feature_version", "Kind feature: the version that the event describes."),
		column("routing_key", "Kind feature: the H3 cell; computed from the geometry where it is null."),
		column("schema_version", "Kind feature: copied into the message."),
	}
}

func featureKeys() []Key {
	return []Key{
		{Path: "outboxes[].feature.table", Doc: "Kind feature: the table of the features as `schema.table`. Required."},
		{Path: "outboxes[].feature.collection", Doc: "The aggregate type. Default: the table's name without its schema."},
		{Path: "outboxes[].feature.id", Default: "id", Doc: "The feature's id column."},
		{Path: "outboxes[].feature.version", Default: "version", Doc: "The feature's version column."},
		{Path: "outboxes[].feature.geometry", Default: "geom", Doc: "The feature's geometry column."},
		{Path: "outboxes[].feature.assume_srid", Default: "4326", Doc: "The SRID of geometries that have none."},
	}
}

func natsKeys() []Key {
	return []Key{
		{Path: "nats.url", Default: "nats://localhost:4222", Secret: true, Flag: "nats-url", Doc: "The servers, separated by commas."},
		{Path: "nats.context", Doc: "A context of the `nats` command-line tool, by name: its servers and credentials are used."},
		{Path: "nats.creds_file", Doc: "A credentials file (JWT and seed)."},
		{Path: "nats.nkey_file", Doc: "A file that holds an NKey seed."},
		{Path: "nats.user", Doc: "User name."},
		{Path: "nats.password", Secret: true, Doc: "The user's password."},
		{Path: "nats.token", Secret: true, Doc: "Token."},
		{Path: "nats.tls.ca", Doc: "File of the CA certificates to trust instead of the system's."},
		{Path: "nats.tls.cert", Doc: "File of the client certificate."},
		{Path: "nats.tls.key", Doc: "File of the client certificate's key."},
		{Path: "nats.tls.first", Default: "false", Doc: "TLS handshake before the server's greeting; the server must be set the same way."},
		{Path: "nats.inbox_prefix", Doc: "Prefix of reply subjects instead of `_INBOX`, where permissions ask for it."},
		{Path: "nats.jetstream_domain", Doc: "The JetStream domain, where it is not the connection's own."},
	}
}

func publishKeys() []Key {
	return []Key{
		{
			Path: "publish.mode", Default: "lanes", Values: []string{"lanes"}, Later: []string{"fast-ingest"},
			Doc: "How order is kept: `lanes`, one message in flight an aggregate.",
		},
		{Path: "publish.max_in_flight", Default: "4096", Doc: "Messages sent and not yet acknowledged, at most."},
		{Path: "publish.max_in_flight_bytes", Default: "64MiB", Doc: "The memory budget for rows between the database and their acknowledgement."},
		{Path: "publish.ack_timeout", Default: "5s", Doc: "How long an acknowledgement is awaited before the outcome counts as unknown and is looked up."},
		{Path: "publish.max_row", Default: "16MiB", Doc: "The largest row; at most `publish.max_in_flight_bytes`."},
		{
			Path: "park.store", Default: "postgres", Values: []string{"postgres", "off"},
			Doc: "Where rows that cannot be published are put aside: `postgres`, in the table `tidegate.parked` of the source database, which " +
				"`tidegate migrate up` makes; `off` stops at the first, naming it.",
		},
		{
			Path: "park.order", Default: "hold", Values: []string{"hold", "skip"},
			Doc: "What later events of an aggregate do behind a parked row: `hold` puts them aside too until it is published or given up, " +
				"`skip` publishes them.",
		},
		{Path: "park.max_rows", Default: "10000", Doc: "Parked and held rows, at most: beyond them the bridge stops advancing. At least 1."},
		{
			Path: "retention.keep", Default: "0", Later: []string{anyOther},
			Doc: "How long published rows stay in the table; at least the stream's `max_age` plus 24h. 0: they are never deleted.",
		},
		{Path: "retention.batch", Default: "2000", Later: []string{anyOther}, Doc: "Rows deleted at once."},
	}
}

func serviceKeys() []Key {
	later := []string{anyOther}
	return []Key{
		{Path: "monitor.interval", Default: "10s", Doc: "How often the slot is looked at."},
		{Path: "monitor.warn.used", Default: "50%", Later: later, Doc: "Warn when this share of the WAL limit is used."},
		{Path: "monitor.warn.eta", Default: "24h", Later: later, Doc: "Warn when the limit would be reached within this time."},
		{Path: "monitor.warn.age", Default: "1m", Later: later, Doc: "Warn when the oldest unpublished row is older."},
		{Path: "monitor.critical.used", Default: "80%", Later: later, Doc: "Critical when this share of the WAL limit is used."},
		{Path: "monitor.critical.eta", Default: "4h", Later: later, Doc: "Critical when the limit would be reached within this time."},
		{Path: "monitor.critical.age", Default: "15m", Later: later, Doc: "Critical when the oldest unpublished row is older."},
		{Path: "monitor.critical.inactive", Default: "5m", Later: later, Doc: "Critical when nobody has read the slot for this long."},
		{Path: "monitor.wal_limit", Later: later, Doc: "The disk to budget for WAL where the server sets no `max_slot_wal_keep_size`."},
		{Path: "http.listen", Default: "127.0.0.1:9464", Flag: "listen", Doc: "Address of `/metrics`, `/livez` and `/readyz`."},
		{Path: "http.ready_grace", Default: "30s", Doc: "How long a fault may last before readiness fails."},
		{Path: "log.level", Default: "info", Values: []string{"debug", "info", "warn", "error"}, Flag: "log-level", Doc: "The least level that is logged."},
		{
			Path: "log.format", Default: "auto", Values: []string{"auto", "text", "json"}, Flag: "log-format",
			Doc: "`text` or `json`; `auto` is text on a terminal.",
		},
	}
}

const (
	eventSubject   = "outbox.{aggregate_type}.{aggregate_id}"
	featureSubject = "geo.{collection}.{event_type}.{h3}"
)
