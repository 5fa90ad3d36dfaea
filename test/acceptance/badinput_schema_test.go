package acceptance_test

import (
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// outboxes is the configuration's list as JSON.
func outboxes(text string) change { return change{"TIDEGATE_OUTBOXES": text} }

func TestTableThatIsNoOutboxIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	testkit.Exec(t, s.url, `CREATE VIEW outbox_view AS SELECT * FROM outbox; CREATE UNLOGGED TABLE outbox_unlogged (LIKE outbox)`)
	for name, tc := range map[string]struct {
		change change
		want   refusal
	}{
		"missing table": {
			outboxes(`[{"table": "public.outbx"}]`),
			refusal{exit.Postgres, []string{"public.outbx", "does not exist"}, "tidegate migrate up"},
		},
		"view": {
			outboxes(`[{"table": "public.outbox_view"}]`),
			refusal{exit.Postgres, []string{"public.outbox_view", "no table"}, "outboxes"},
		},
		"unlogged": {
			outboxes(`[{"table": "public.outbox_unlogged"}]`),
			refusal{exit.Postgres, []string{"public.outbox_unlogged", "unlogged"}, "SET LOGGED"},
		},
		"publication missing": {
			change{"TIDEGATE_SLOT_PUBLICATION": "nowhere"},
			refusal{exit.Drift, []string{"publication nowhere", "does not exist"}, `CREATE PUBLICATION "nowhere" FOR TABLE "public"."outbox"`},
		},
	} {
		t.Run(name, func(t *testing.T) { s.refuses(t, tc.change, tc.want) })
	}
	s.recovers(t, nil)
}

func TestMissingTableAtTheFirstStartIsRefused(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	for _, snapshot := range []string{"", "publish", "skip"} {
		c := outboxes(`[{"table": "public.outbx"}]`)
		c["TIDEGATE_SLOT_SNAPSHOT"] = snapshot
		s.refuses(t, c, refusal{exit.Postgres, []string{"public.outbx", "does not exist"}, "tidegate migrate up"})
	}
	s.begun(t)
	s.recovers(t, nil)
}

func TestColumnThatDoesNotFitStopsBeforeTheFirstRow(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	testkit.Exec(t, s.url, "ALTER TABLE outbox ADD COLUMN body text, ADD COLUMN score float8, ADD COLUMN data bytea")
	s.begun(t)
	before := s.messages(t)
	for name, tc := range map[string]struct {
		columns string
		says    []string
	}{
		"missing column":           {`{"payload": "boddy"}`, []string{"public.outbox", "column boddy", "columns.payload"}},
		"float as aggregate":       {`{"aggregate_id": "score"}`, []string{"public.outbox", "column score", "floating-point"}},
		"bytes as event type":      {`{"event_type": "data"}`, []string{"public.outbox", "column data", "bytea"}},
		"text as creation time":    {`{"created_at": "body"}`, []string{"public.outbox", "column body", "timestamptz"}},
		"timestamp as row headers": {`{"headers": "created_at"}`, []string{"public.outbox", "column created_at", "jsonb"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.refuses(t, outboxes(`[{"table": "public.outbox", "columns": `+tc.columns+`}]`), refusal{exit.Drift, tc.says, "outboxes[].columns"})
		})
	}
	if n := s.messages(t); n != before {
		t.Errorf("%d rows were published from a table that does not fit", n-before)
	}
	s.recovers(t, nil)
}

// TestChangedTableStopsBetweenTheShapes: every row of the old shape is published, none of the new shape is, whether the
// bridge watched the change or was away.
func TestChangedTableStopsBetweenTheShapes(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	drift := refusal{exit.Drift, []string{"public.outbox", "column payload", "committed at"}, "outboxes[].columns"}
	p := s.start(t)
	s.insert(t, 3)
	s.settled(t, 20*time.Second)
	const newShape = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, body) VALUES ('order', 'o1', 'placed', '{}')"
	testkit.Exec(t, s.url, "ALTER TABLE outbox RENAME COLUMN payload TO body")
	testkit.Exec(t, s.url, newShape)
	drift.check(t, p.Wait(t, 20*time.Second), p.Log())
	s.recovers(t, outboxes(`[{"table": "public.outbox", "columns": {"payload": "body"}}]`))

	testkit.Exec(t, s.url, newShape)
	testkit.Exec(t, s.url, newShape)
	testkit.Exec(t, s.url, "ALTER TABLE outbox RENAME COLUMN body TO payload")
	s.insert(t, 2)
	s.refuses(t, outboxes(`[{"table": "public.outbox", "columns": {"payload": "body"}}]`),
		refusal{exit.Drift, []string{"public.outbox", "column body", "committed at"}, "outboxes[].columns"})
	if rows, messages := s.rows(t), s.messages(t); messages != uint64(rows-2) {
		t.Errorf("of %d rows of the old shape %d are stored", rows-2, messages)
	}
	s.recovers(t, nil)
}

func TestPublicationWithoutTheTableIsDrift(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	testkit.Exec(t, s.url, "CREATE TABLE other (id int PRIMARY KEY)")
	testkit.Exec(t, s.url, "CREATE PUBLICATION p FOR TABLE other WITH (publish = 'insert', publish_via_partition_root = true)")
	wrong := change{"TIDEGATE_SLOT_PUBLICATION": "p"}
	s.refuses(t, wrong, refusal{exit.Drift, []string{"publication p", "public.outbox"}, `ALTER PUBLICATION "p" ADD TABLE "public"."outbox"`})
	if n := testkit.Value[int](t, s.url, "SELECT count(*)::int FROM pg_replication_slots WHERE slot_name = $1", s.slot(t)); n != 0 {
		t.Error("a slot was made for a publication that does not fit")
	}
	testkit.Exec(t, s.url, `ALTER PUBLICATION p ADD TABLE outbox`)
	p := s.startWith(t, wrong)
	s.insert(t, 3)
	s.settled(t, 20*time.Second)
	stop(t, p)
	testkit.Exec(t, s.url, "ALTER PUBLICATION p SET (publish = 'update')")
	s.refuses(t, wrong, refusal{exit.Drift, []string{"publication p", "inserts"}, "SET (publish = 'insert')"})
	testkit.Exec(t, s.url, "ALTER PUBLICATION p SET (publish = 'insert')")
	s.insert(t, 2)
	s.recovers(t, wrong)
}

func TestSlotOfAnotherIsRefused(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	other := s.pg.PlainDatabase(t)
	name := s.slot(t)
	testkit.Exec(t, other, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", name+"_elsewhere")
	testkit.Exec(t, s.url, "SELECT pg_create_logical_replication_slot($1, 'test_decoding')", name+"_decoding")
	testkit.Exec(t, s.url, "SELECT pg_create_physical_replication_slot($1)", name+"_physical")
	t.Cleanup(func() { dropSlot(s.pg.URL("postgres"), name+"_physical") })
	for slot, tc := range map[string]refusal{
		name + "_elsewhere": {exit.Postgres, []string{name + "_elsewhere", "belongs to database", name}, "slot.name"},
		name + "_decoding":  {exit.Postgres, []string{name + "_decoding", "test_decoding", "pgoutput"}, "pg_drop_replication_slot('" + name + "_decoding')"},
		name + "_physical":  {exit.Postgres, []string{name + "_physical", "physical"}, "slot.name"},
	} {
		t.Run(slot, func(t *testing.T) { s.refuses(t, change{"TIDEGATE_SLOT_NAME": slot}, tc) })
	}
	s.recovers(t, nil)
}
