package acceptance_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// checkpoints is the bucket of the checkpoints.
func (s *scene) checkpoints(t *testing.T) jetstream.KeyValue {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	kv, err := s.js.KeyValue(ctx, "tidegate")
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

func (s *scene) checkpoint(t *testing.T) []byte {
	t.Helper()
	entry, err := s.checkpoints(t).Get(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	return entry.Value()
}

func (s *scene) putCheckpoint(t *testing.T, value []byte) {
	t.Helper()
	if _, err := s.checkpoints(t).Put(t.Context(), "app", value); err != nil {
		t.Fatal(err)
	}
}

// anew begins the source again in the way that the advice names: every row of the table is published once more.
func (s *scene) anew(t *testing.T) {
	t.Helper()
	testkit.Exec(t, s.url, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = current_database()")
	if err := s.checkpoints(t).Delete(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	before := s.messages(t)
	p := s.startWith(t, publishOlder)
	testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) >= before+uint64(s.rows(t)) }, "not every row is published again")
	stop(t, p)
	if report := s.compare(t); report.Missing+report.Extra+report.OutOfOrder != 0 {
		t.Fatal(report)
	}
}

// TestDroppedSlotIsAGapAndNotANewBeginning: the rows of the gap are still in the table.
func TestDroppedSlotIsAGapAndNotANewBeginning(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	confirmed := s.confirmedSlot(t)
	testkit.Exec(t, s.url, "SELECT pg_drop_replication_slot(current_database())")
	want := refusal{exit.SlotLost, []string{"slot " + s.slot(t), "does not exist any more", "after " + confirmed.String()}, "tidegate accept"}
	s.refuses(t, nil, want)
	s.refuses(t, publishOlder, want) // not even with leave to publish older rows
	pause(2500 * time.Millisecond)   // the stream still knows the ids of what was published
	s.anew(t)
}

// TestSlotDroppedUnderARunningBridgeEndsIt: the walsender is ended first, as PostgreSQL wants it.
func TestSlotDroppedUnderARunningBridgeEndsIt(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	p := s.start(t)
	s.insert(t, 2)
	s.settled(t, 20*time.Second)
	testkit.Eventually(t, 20*time.Second, func() bool {
		testkit.Column[bool](t, s.url, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = current_database() AND active_pid IS NOT NULL")
		testkit.Exec(t, s.url, `DO $$ BEGIN PERFORM pg_drop_replication_slot(current_database()); EXCEPTION WHEN object_in_use OR undefined_object THEN NULL; END $$`)
		return testkit.Value[int](t, s.url, "SELECT count(*)::int FROM pg_replication_slots WHERE slot_name = current_database()") == 0
	}, "the slot cannot be dropped")
	code := p.Wait(t, 20*time.Second)
	refusal{exit.SlotLost, []string{"slot " + s.slot(t), "does not exist"}, "outbox table"}.check(t, code, p.Log())
}

// TestCloneDoesNotPublishAsItsOriginal: a copy of the database with the same configuration, with or without a slot.
func TestCloneDoesNotPublishAsItsOriginal(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	before := s.messages(t)
	clone := s.pg.PlainDatabase(t)
	testkit.Exec(t, clone, outboxTable)
	testkit.Exec(t, clone, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ('order', 'clone', 'placed'); CREATE PUBLICATION clone FOR TABLE outbox WITH (publish = 'insert', publish_via_partition_root = true)")
	name := testkit.Value[string](t, clone, "SELECT current_database()::text")
	asClone := change{"TIDEGATE_POSTGRES_URL": clone, "TIDEGATE_SLOT_NAME": name, "TIDEGATE_SLOT_PUBLICATION": "clone"}
	want := refusal{exit.Drift, []string{`source "app"`, "database " + s.slot(t), "database " + name}, "source.name"}
	t.Run("without a slot", func(t *testing.T) { s.refuses(t, asClone, want) })
	testkit.Exec(t, clone, "SELECT pg_create_logical_replication_slot(current_database(), 'pgoutput')")
	t.Run("with a slot", func(t *testing.T) { s.refuses(t, asClone, want) })
	if n := s.messages(t); n != before {
		t.Errorf("the clone has published %d messages", n-before)
	}
	s.recovers(t, nil)
}

// TestCheckpointBehindTheSlotIsLostMemory: NATS was restored from a backup, say.
func TestCheckpointBehindTheSlotIsLostMemory(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	old, from := s.checkpoint(t), s.confirmedSlot(t)
	s.recovers(t, nil)
	newer, to := s.checkpoint(t), s.confirmedSlot(t)
	if from == to || string(old) == string(newer) {
		t.Fatal("nothing was confirmed in between: the test has shown nothing")
	}
	s.insert(t, 2)
	s.putCheckpoint(t, old)
	s.refuses(t, nil, refusal{exit.NATS, []string{`source "app"`, "ends at " + from.String(), "confirmed up to " + to.String(), "lost"}, "backup"})
	s.putCheckpoint(t, newer)
	s.recovers(t, nil)
}

func TestUnreadableCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	good := s.checkpoint(t)
	for name, text := range map[string]string{
		"no JSON":         "{",
		"of the future":   strings.Replace(string(good), `"version":1`, `"version":2`, 1),
		"without an LSN":  `{"version":1,"source":"app","confirmable":"x"}`,
		"another shape":   `[]`,
		"empty":           "",
		"of other source": strings.Replace(string(good), `"source":"app"`, `"source":"other"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			s.putCheckpoint(t, []byte(text))
			s.refuses(t, nil, refusal{exit.NATS, []string{`checkpoint of source "app"`}, "key app of KV bucket tidegate"})
		})
	}
	s.putCheckpoint(t, good)
	s.recovers(t, nil)
}

// TestDeletedStreamIsNotMadeAgain: nor is one that was made again, or emptied, taken for the old one.
func TestDeletedStreamIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	if err := s.js.DeleteStream(t.Context(), "OUTBOX"); err != nil {
		t.Fatal(err)
	}
	s.refuses(t, nil, refusal{exit.NATS, []string{"stream OUTBOX", "does not exist any more", "sequences 1 to 2"}, "restore the stream"})
	if s.messages(t) != 0 {
		t.Fatal("the stream was made again")
	}
	s.nats.Stream(t, jetstream.StreamConfig{Name: "OUTBOX", Subjects: []string{"outbox.*.*"}})
	s.refuses(t, nil, refusal{exit.NATS, []string{"stream OUTBOX", "last sequence is 0", "sequences 1 to 2"}, "restore the stream"})
	for range 3 {
		if _, err := s.js.Publish(t.Context(), "outbox.x.y", nil); err != nil {
			t.Fatal(err)
		}
	}
	s.refuses(t, nil, refusal{exit.NATS, []string{"stream OUTBOX", "sequence 2 holds", "sequences 1 to 2"}, "restore the stream"})
	if err := s.js.DeleteStream(t.Context(), "OUTBOX"); err != nil {
		t.Fatal(err)
	}
	s.anew(t)
	s.judge(t)
}
