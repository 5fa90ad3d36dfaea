package config_test

import (
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/exit"
)

func TestProblemsNameKeyValueOriginAndMend(t *testing.T) {
	const two = "streams: [{name: A}, {name: B}]\n"
	const outboxes = "outboxes: [{table: public.a, stream: A}, {table: public.b, stream: B}]\n"
	tests := []struct {
		name, yaml string
		environ    []string
		want       []string // "problem -> mend", each in order
	}{
		{"unknown key", "slot:\n  nmae: x\n", nil, []string{"slot.nmae (tidegate.yaml:2): is not a key of this program -> did you mean slot.name?"}},
		{"key in the wrong group", "\nheartbeat_interval: 5s\n", nil, []string{"heartbeat_interval (tidegate.yaml:2): is not a key of this program -> did you mean slot.heartbeat_interval?"}},
		{"group misspelt", "postgre: {url: ''}", nil, []string{"postgre (tidegate.yaml:1): is not a key of this program -> did you mean postgres?"}},
		{"unknown key in a list", "outboxes:\n- tabel: public.outbox\n  table: public.outbox", nil, []string{"outboxes[0].tabel (tidegate.yaml:2): is not a key of this program -> did you mean outboxes[].table?"}},
		{"far from every key", "colour: blue", nil, []string{"colour (tidegate.yaml:1): is not a key of this program -> remove it; docs/configuration.md lists every key"}},
		{"unknown variable", "", []string{"TIDEGATE_SLOT_NAM=x"}, []string{"TIDEGATE_SLOT_NAM (environment): is not a key of this program -> did you mean TIDEGATE_SLOT_NAME?"}},
		{"list variable", "", []string{"TIDEGATE_STREAMS=OUTBOX"}, []string{`streams = OUTBOX (environment TIDEGATE_STREAMS): is not a JSON list -> write it like [{"name": "OUTBOX"}]`}},
		{"value for keys", "slot: tidegate", nil, []string{"slot = tidegate (tidegate.yaml:1): is a value where keys are expected -> write keys below it, such as create"}},
		{"keys for a value", "log: {level: {a: b}}", nil, []string{"log.level = map[a:b] (tidegate.yaml:1): takes one value -> write the value behind the key"}},
		{"no list", "streams: {name: A}", nil, []string{"streams = map[name:A] (tidegate.yaml:1): is not a list -> write one item a line, each behind a dash"}},
		{"syntax", "slot:\n\tname: x", nil, []string{"(tidegate.yaml): line 2: found character that cannot start any token -> mend the YAML there; docs/configuration.md shows the form"}},
		{"key twice", "slot: {name: a}\nslot: {name: b}", nil, []string{"already defined at line 1"}},
		{"two documents", "slot: {name: a}\n---\nslot: {name: b}", nil, []string{"holds more than one YAML document"}},
		{"list at the top", "- slot", nil, []string{"holds no keys at its top"}},

		{"duration", "publish: {ack_timeout: 5}", nil, []string{"publish.ack_timeout = 5 (tidegate.yaml:1): is not a duration -> write it like 500ms, 10s, 5m or 168h"}},
		{"size", "publish: {max_row: 16 megs}", nil, []string{"publish.max_row = 16 megs (tidegate.yaml:1): is not a size -> write it like 512KiB, 64MiB or 2GiB"}},
		{"size beyond 64 bits", "publish: {max_in_flight_bytes: 9223372036854775807TiB}", nil, []string{"is too large a size"}},
		{"number", "publish: {max_in_flight: many}", nil, []string{"is not a whole number"}},
		{"truth", "slot: {create: maybe}", nil, []string{"slot.create = maybe (tidegate.yaml:1): is neither true nor false -> write true or false"}},
		{"number for text", "nats: {user: 0123}", nil, []string{"nats.user = 83 (tidegate.yaml:1): is not text -> put it in quotes"}},
		{"choice", "log: {level: wran}", nil, []string{"log.level = wran (tidegate.yaml:1): is not allowed -> write debug, info, warn or error; did you mean warn?"}},
		{"choice with nothing", "slot: {snapshot: all}", nil, []string{`slot.snapshot = all (tidegate.yaml:1): is not allowed -> write "", publish or skip`}},

		{"later: polling", "source: {kind: poll}", nil, []string{"source.kind = poll (tidegate.yaml:1): is not in this version -> remove it, or write wal"}},
		{"later: wal geometry", "outboxes: [{table: public.f, kind: feature, geometry: wal, feature: {table: public.features}}]", nil, []string{"outboxes[0].geometry = wal (tidegate.yaml:1): is not in this version -> remove it, or write lookup"}},
		{"later: fast-ingest", "publish: {mode: fast-ingest}", nil, []string{"publish.mode = fast-ingest (tidegate.yaml:1): is not in this version -> remove it, or write lanes"}},
		{"later: replay", "slot: {on_lost: replay}", nil, []string{"slot.on_lost = replay (tidegate.yaml:1): is not in this version -> remove it, or write stop"}},
		{"later: monitor", "monitor: {warn: {used: 40%}}", nil, []string{"monitor.warn.used = 40% (tidegate.yaml:1): is not in this version -> remove it, or write 50%"}},
		{"later: a whole group", "poll: {order: none}", nil, []string{"poll (tidegate.yaml:1): is not in this version -> remove it"}},

		{"retention under the stream's age", "retention: {keep: 24h}", nil, []string{
			"retention.keep = 24h (tidegate.yaml:1): is not in this version -> remove it, or write 0",
			"retention.keep = 24h (tidegate.yaml:1): is less than streams[0].max_age (168h) plus 24h -> write at least 192h, or lower streams[0].max_age",
		}},
		{"duplicate window over the age", "streams:\n- name: OUTBOX\n  max_age: 1m\n", nil, []string{
			"streams[0].duplicate_window = 2m (default): is more than streams[0].max_age (1m) -> raise streams[0].max_age, or lower streams[0].duplicate_window",
		}},
		{"row over the budget", "publish: {max_row: 65MiB}", nil, []string{
			"publish.max_row = 65MiB (tidegate.yaml:1): is more than publish.max_in_flight_bytes (64MiB) -> raise publish.max_in_flight_bytes, or lower publish.max_row",
		}},
		{"no such stream", "outboxes: [{table: public.a, stream: OUTBOXX}]", nil, []string{
			"streams[0].name = OUTBOX (default): is named by no outbox -> remove the stream, or name it in the outbox that publishes to it",
			"outboxes[0].stream = OUTBOXX (tidegate.yaml:1): is not the name of a stream under streams -> write the name of a stream that is listed under streams; did you mean OUTBOX?",
		}},
		{"which of the streams", two + "outboxes: [{table: public.a, stream: A}, {table: public.b}, {table: public.c, stream: B}]", nil, []string{"outboxes[1].stream (default): is missing, and there are several streams"}},
		{"stream twice", "streams: [{name: A}, {name: A}]\noutboxes: [{table: public.a, stream: A}]", nil, []string{"streams[1].name = A (tidegate.yaml:1): is also the name of streams[0] -> give every stream a name of its own"}},
		{"stream name", "streams: [{name: a.b}]", nil, []string{"streams[0].name = a.b (tidegate.yaml:1): holds a character that JetStream does not take in a stream's name -> use letters, digits, _ and -"}},
		{"replicas", two + "streams: [{name: A, replicas: 6}]", nil, []string{"already defined"}},
		{"no streams", "streams: []", nil, []string{"streams (tidegate.yaml:1): is an empty list -> write a stream"}},
		{"no outboxes", "outboxes: []", nil, []string{"outboxes (tidegate.yaml:1): is an empty list -> write an outbox"}},
		{"table twice", "outboxes: [{table: public.a}, {table: public.a}]", nil, []string{"outboxes[1].table = public.a (tidegate.yaml:1): is also the table of outboxes[0] -> keep one outbox of a table"}},
		{"table without schema", "outboxes: [{table: outbox}]", nil, []string{"outboxes[0].table = outbox (tidegate.yaml:1): names no schema -> write public.outbox, or the schema it lies in"}},
		{"table with quotes", `outboxes: [{table: 'public."Outbox"'}]`, nil, []string{"holds quotes -> write the names as they are stored, without quotes"}},
		{"table missing", "outboxes: [{kind: event}]", nil, []string{"outboxes[0].table (default): is missing -> write it as schema.table"}},
		{"feature table missing", "outboxes:\n- table: public.f\n  kind: feature\n", nil, []string{"outboxes[0].feature.table (default): is missing, and outboxes[0].kind is feature -> write the features' table as schema.table, such as public.features"}},
		{"feature keys of an event", "outboxes: [{table: public.a, h3_resolution: 9}]", nil, []string{"outboxes[0].h3_resolution = 9 (tidegate.yaml:1): is for kind feature, and this outbox is of kind event -> remove it, or write outboxes[0].kind: feature"}},
		{"h3 resolution", "outboxes: [{table: public.f, kind: feature, h3_resolution: 16, feature: {table: public.features}}]", nil, []string{"outboxes[0].h3_resolution = 16 (tidegate.yaml:1): is not between 0 and 15"}},
		{"columns of the other kind", "outboxes: [{table: public.a, columns: {feature_id: f}}]", nil, []string{"outboxes[0].columns.feature_id = f (tidegate.yaml:1): is not for kind event -> remove it"}},
		{"required column unmapped", `outboxes: [{table: public.a, columns: {aggregate_id: ""}}]`, nil, []string{"outboxes[0].columns.aggregate_id (tidegate.yaml:1): is unmapped, and an event of kind event needs it -> write the column's name, or remove the key for aggregate_id"}},
		{"subject", "outboxes: [{table: public.a, subject: 'a..b'}]", nil, []string{"outboxes[0].subject = a..b (tidegate.yaml:1): cannot be a subject: a dot has no token at one of its sides -> mend the template, or remove the key for the default"}},
		{"subject token", "outboxes: [{table: public.a, subject: 'a.{agregate_id}'}]", nil, []string{"did you mean {aggregate_id}?"}},
		{"subject token of the other kind", "outboxes: [{table: public.a, subject: 'a.{h3}'}]", nil, []string{"token {h3} is only for an outbox of kind feature"}},
		{"subject empty", "outboxes: [{table: public.a, subject: ''}]", nil, []string{"cannot be a subject: it is empty"}},

		{"slot name", "slot: {name: My-Slot}", nil, []string{"slot.name = My-Slot (tidegate.yaml:1): is not a name of lower-case letters, digits and _, at most 63 -> write one such as my_slot"}},
		{"slot name too long", "slot: {name: " + strings.Repeat("s", 64) + "}", nil, []string{"is not a name of lower-case letters"}},
		{"source name", "source: {name: a/b}", nil, []string{"source.name = a/b (tidegate.yaml:1): is not a name of letters, digits, _ and -, at most 64"}},
		{"database that is no source name", "postgres: {url: 'postgres://u@h/my%20app'}", nil, []string{"source.name = my app (default, the database's name): is not a name of letters"}},
		{"monitor interval", "monitor: {interval: 0s}", nil, []string{"monitor.interval = 0s (tidegate.yaml:1): is shorter than 1s"}},
		{"parked rows", "park: {max_rows: 0, order: keep}", nil, []string{
			"park.order = keep (tidegate.yaml:1): is not allowed -> write hold or skip",
			"park.max_rows = 0 (tidegate.yaml:1): is less than 1 -> write at least 1, or park.store: off to park none",
		}},
		{"heartbeat", "slot: {heartbeat_interval: 10s}", nil, []string{"slot.heartbeat_interval = 10s (tidegate.yaml:1): is not in this version"}},
		{"two ways to log in", "nats: {user: u, password: p, token: t}", nil, []string{"nats.user = u (tidegate.yaml:1): is given together with nats.token: several ways to log in -> keep one of nats.user, nats.token"}},
		{"login in the address too", "nats: {url: 'nats://a:b@h', token: t}", nil, []string{"nats.token = ***** (tidegate.yaml:1): is given together with nats.url: several ways to log in"}},
		{"context and address", "nats: {url: 'nats://h', context: prod}", nil, []string{"nats.url = nats://h (tidegate.yaml:1): is given together with nats.context"}},
		{"credentials file", "nats: {creds_file: /nonexistent/creds}", nil, []string{"nats.creds_file = /nonexistent/creds (tidegate.yaml:1): cannot be opened: no such file or directory"}},
		{"certificate without key", "nats: {tls: {cert: /dev/null}}", nil, []string{"nats.tls.key (default): is missing beside nats.tls.cert"}},
		{"nats scheme", "nats: {url: 'http://h'}", nil, []string{"nats.url = http://h (tidegate.yaml:1): has the scheme http, which NATS does not know"}},
		{"postgres url", "postgres: {url: 'postgres://u:hunter2@h:port/db'}", nil, []string{"postgres.url = ***** (tidegate.yaml:1): cannot be read: "}},
		{"postgres sslmode", "postgres: {url: 'postgres://u:hunter2@h/db?sslmode=maybe'}", nil, []string{"postgres.url = postgres://u:*****@h/db?sslmode=maybe (tidegate.yaml:1): cannot be read: "}},
		{"listen", "http: {listen: localhost}", nil, []string{"http.listen = localhost (tidegate.yaml:1): is not an address with a port"}},
		{"used", two + outboxes + "monitor: {warn: {used: 90%}}", nil, []string{"is not in this version"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ps := problems(t, tt.yaml, tt.environ...)
			if len(ps) != len(tt.want) {
				t.Fatalf("%d problems, want %d:\n%v", len(ps), len(tt.want), ps)
			}
			for i, p := range ps {
				if got := p.String() + " -> " + p.Mend; !strings.Contains(got, tt.want[i]) {
					t.Errorf("got  %s\nwant %s", got, tt.want[i])
				}
				if strings.Contains(ps.Error(), "hunter2") {
					t.Errorf("secret in %q", ps.Error())
				}
			}
		})
	}
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	ps := problems(t, "slot: {name: A, nmae: b}\nlog: {level: loud}\npublish: {max_row: x}\n", "TIDEGATE_HTTP_LISTEN=nowhere")
	var keys []string
	for _, p := range ps {
		keys = append(keys, p.Key)
	}
	if got := strings.Join(keys, " "); got != "slot.nmae slot.name publish.max_row http.listen log.level" {
		t.Errorf("keys %q", got)
	}
	if exit.Code(ps) != exit.Usage {
		t.Errorf("exit code %d", exit.Code(ps))
	}
}
