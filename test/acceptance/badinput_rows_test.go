package acceptance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

const (
	rollupID = "11111111-1111-4111-8111-111111111111"
	goodRow  = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', 'o1', 'placed', '{}')"
)

// TestRowThatCannotBePublishedStopsTheBridge: everything before the row is stored and confirmed, nothing behind it is,
// and once the cause is mended the row and all behind it follow.
func TestRowThatCannotBePublishedStopsTheBridge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		insert string // of a row with the id $1
		change change // under which it is poison
		says   []string
		todo   string
		mend   change // under which it is not
		nats   []testkit.NATSOption
	}{
		"above max_payload": {
			insert: "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) VALUES ($1, 'order', 'big', 'placed', to_jsonb(repeat('x', 1100000)))",
			says:   []string{"headers and body has 1100", "1048576", "max_payload"}, todo: "raise the limit",
			nats: []testkit.NATSOption{testkit.NATSMaxPayload(4 << 20)},
		},
		"above publish.max_row": {
			insert: "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) VALUES ($1, 'order', 'big', 'placed', to_jsonb(repeat('x', 100000)))",
			change: change{"TIDEGATE_PUBLISH_MAX_ROW": "64KiB"},
			says:   []string{"100", "65536", "max_row"}, todo: "raise publish.max_row",
		},
		"a header that would purge the stream": {
			insert: `INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, headers) VALUES ($1, 'order', 'o1', 'placed', '{"Nats-Rollup": "all"}')`,
			change: outboxes(`[{"table": "public.outbox", "columns": {"headers": "headers"}}]`),
			says:   []string{"column headers", `"Nats-Rollup"`}, todo: "outboxes[].columns",
		},
		"headers that are no object of strings": {
			insert: `INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, headers) VALUES ($1, 'order', 'o1', 'placed', '{"a": 1}')`,
			change: outboxes(`[{"table": "public.outbox", "columns": {"headers": "headers"}}]`),
			says:   []string{"column headers", `"a"`}, todo: "outboxes[].columns",
		},
		"an aggregate id of 10 kB": {
			insert: "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type) VALUES ($1, 'order', repeat('a', 10000), 'placed')",
			says:   []string{"subject has 100"}, todo: "outboxes[].subject",
			mend: outboxes(`[{"table": "public.outbox", "subject": "outbox.{aggregate_type}.{partition:8}"}]`),
		},
		"a required column that is null": {
			insert: "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, kind) VALUES ($1, 'order', 'o1', 'placed', NULL)",
			change: outboxes(`[{"table": "public.outbox", "columns": {"event_type": "kind"}}]`),
			says:   []string{"column kind", "null"}, todo: "outboxes[].columns",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sharedScene(t)
			testkit.Exec(t, s.url, "ALTER TABLE outbox ADD COLUMN headers jsonb, ADD COLUMN kind text DEFAULT 'placed'")
			s.begun(t)
			before := s.wal(t)
			testkit.Exec(t, s.url, goodRow)
			stored := s.rows(t)
			testkit.Exec(t, s.url, tc.insert, rollupID)
			after := s.wal(t)
			testkit.Exec(t, s.url, goodRow)
			s.refuses(t, tc.change, refusal{exit.Unexpected, append(tc.says, "public.outbox", rollupID, "committed at "), tc.todo})
			if n := s.messages(t); n != uint64(stored) {
				t.Errorf("%d messages are stored, %d rows are in front of the one that cannot be published", n, stored)
			}
			if confirmed := s.confirmedSlot(t); confirmed <= before || confirmed >= after {
				t.Errorf("confirmed up to %s: the row before was committed after %s, the one that cannot be published before %s", confirmed, before, after)
			}
			if tc.nats != nil {
				s.nats.Reconfigure(t, tc.nats...)
			}
			s.recovers(t, tc.mend)
		})
	}
}

// wal is where the server writes now.
func (s *scene) wal(t *testing.T) decoder.LSN {
	t.Helper()
	return parseLSN(t, testkit.Value[string](t, s.url, "SELECT pg_current_wal_insert_lsn()::text"))
}

// confirmedSlot is confirmed for a shared scene.
func (s *scene) confirmedSlot(t *testing.T) decoder.LSN {
	t.Helper()
	return parseLSN(t, testkit.Value[string](t, s.url, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = current_database()"))
}

func parseLSN(t *testing.T, text string) decoder.LSN {
	t.Helper()
	l, err := decoder.ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestOddIdsBecomeOneTokenAndComeBack: whatever an aggregate is called, its subject has three tokens from which the id
// can be read again, and so can the header.
func TestOddIdsBecomeOneTokenAndComeBack(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	p := s.start(t)
	ids := []string{"a b", " edge ", "a.b", ".", "*", ">", "a.*.>", "$SYS", "$", "", "%", "%20", "ünï", "日本", "a\tb\nc", "a\x7f", strings.Repeat("x", 200), "-", "_INBOX"}
	for _, id := range ids {
		testkit.Exec(t, s.url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ('order', $1, $1)", id)
		testkit.Exec(t, s.url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ($1, 'o', 'placed')", id)
	}
	s.settled(t, 20*time.Second)
	stop(t, p)
	s.judge(t)
	stored := s.read(t, "OUTBOX")
	for i, id := range ids {
		byID, byType := stored[2*i], stored[2*i+1]
		wantToken(t, byID.Subject, 2, id)
		wantToken(t, byType.Subject, 1, id)
		wantHeader(t, byID, "Tidegate-Aggregate-Id", id)
		wantHeader(t, byID, "Tidegate-Event-Type", id)
		wantHeader(t, byType, "Tidegate-Aggregate-Type", id)
	}
}

// TestPayloadBytesAreUntouched: numbers keep their digits, JSON scalars and SQL NULL stay what they are.
func TestPayloadBytesAreUntouched(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	testkit.Exec(t, s.url, `ALTER TABLE outbox DROP COLUMN payload;
		CREATE TABLE outbox_text (LIKE outbox INCLUDING ALL); CREATE TABLE outbox_bytes (LIKE outbox INCLUDING ALL);
		ALTER TABLE outbox ADD COLUMN payload json; ALTER TABLE outbox_text ADD COLUMN payload text; ALTER TABLE outbox_bytes ADD COLUMN payload bytea;
		CREATE TABLE outbox_jsonb (LIKE outbox_text INCLUDING ALL); ALTER TABLE outbox_jsonb ALTER COLUMN payload TYPE jsonb USING payload::jsonb`)
	c := outboxes(`[{"table": "public.outbox", "subject": "t.json.{aggregate_id}"}, {"table": "public.outbox_jsonb", "subject": "t.jsonb.{aggregate_id}"},
		{"table": "public.outbox_text", "subject": "t.text.{aggregate_id}"}, {"table": "public.outbox_bytes", "subject": "t.bytes.{aggregate_id}"}]`)
	p := s.startWith(t, c)
	const number = "1234567890123456789012345678901234567890"
	values := map[string][]string{
		"outbox":       {"1", "true", "null", `"text"`, `{ "b" : 1,  "a": 1.10,  "a": 2 }`, number, number + ".50", "-0", "1e400", `"\u00fc\n"`, "[]"},
		"outbox_jsonb": {"1", "true", "null", `"text"`, `{"b": 1, "a": 1.10}`, number, number + ".50", `"ü\n"`, "[]"},
		"outbox_text":  {"", " ", "null", "not json\n", "ü"},
		"outbox_bytes": {`\x`, `\x00ff0a`, `\x` + strings.Repeat("ab", 1000)},
	}
	rows := 0
	for table, list := range values {
		for _, v := range list {
			testkit.Exec(t, s.url, "INSERT INTO "+table+" (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', 'o', 'placed', '"+v+"')")
		}
		testkit.Exec(t, s.url, "INSERT INTO "+table+" (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', 'o', 'placed', NULL)")
		rows += len(list) + 1
	}
	testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) >= uint64(rows) }, "not every row is stored")
	stop(t, p)
	byID := map[string]message{}
	for _, m := range s.read(t, "OUTBOX") {
		byID[m.header("Nats-Msg-Id")] = m
	}
	for table := range values {
		text := "payload::text"
		if table == "outbox_bytes" {
			text = "encode(payload, 'escape')"
		}
		for _, row := range s.query(t, "SELECT id::text, coalesce("+text+", ''), (payload IS NULL)::text FROM "+table) {
			m, ok := byID["app/public."+table+"/"+row[0]]
			body := string(m.Data)
			if table == "outbox_bytes" {
				body = escaped(m.Data)
			}
			if !ok || body != row[1] || (m.header("Tidegate-Null") == "1") != (row[2] == "true") {
				t.Errorf("%s: the message holds %.60q (null %q), the row %.60q (null %s)", table, body, m.header("Tidegate-Null"), row[1], row[2])
			}
		}
	}
}

// TestSameIdInTwoOutboxesIsTwoMessages: ids of two bigserials collide, their messages do not.
func TestSameIdInTwoOutboxesIsTwoMessages(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	testkit.Exec(t, s.url, "CREATE TABLE outbox2 (LIKE outbox INCLUDING ALL)")
	p := s.startWith(t, outboxes(`[{"table": "public.outbox"}, {"table": "public.outbox2"}]`))
	for _, table := range []string{"outbox", "outbox2"} {
		testkit.Exec(t, s.url, "INSERT INTO "+table+" (id, aggregate_type, aggregate_id, event_type, payload) VALUES ($1, 'order', 'o', 'placed', to_jsonb($2::text))", rollupID, table)
	}
	testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) >= 2 }, "the second row is not stored")
	stop(t, p)
	stored := s.read(t, "OUTBOX")
	for i, table := range []string{"outbox", "outbox2"} {
		if id := stored[i].header("Nats-Msg-Id"); id != "app/public."+table+"/"+rollupID || string(stored[i].Data) != `"`+table+`"` {
			t.Errorf("message %d is %s with %s", i+1, id, stored[i].Data)
		}
	}
}
