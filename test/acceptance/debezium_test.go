package acceptance_test

import (
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// A table made for Debezium's outbox event router has no column that tells an order: its rows can be streamed, and only
// what is older than the slot cannot be read.
func TestDebeziumOutboxWorksUnchanged(t *testing.T) {
	s := newScene(t, testkit.Binary(t))
	testkit.Exec(t, s.url, `DROP TABLE outbox; CREATE TABLE outbox (
		id uuid PRIMARY KEY, aggregatetype varchar(255) NOT NULL, aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb)`)
	p := s.start(t)
	testkit.Exec(t, s.url, `INSERT INTO outbox SELECT gen_random_uuid(), 'order', 'o' || i, 'placed', '{"n": 1}' FROM generate_series(1, 100) i`)
	testkit.Eventually(t, 20*time.Second, func() bool { return s.messages(t) == 100 }, "the rows do not arrive")
	stop(t, p)

	code, out := s.bin.Run(t, 20*time.Second, testkit.Call{Args: []string{"run"}, Config: s.config, Env: map[string]string{
		"TIDEGATE_SOURCE_NAME": "again", "TIDEGATE_SLOT_NAME": "again", "TIDEGATE_SLOT_SNAPSHOT": "publish",
	}})
	if code != 2 || !contains(out, "public.outbox") || !contains(out, "order_by") {
		t.Fatalf("rows without an order: exit %d: %s", code, out)
	}
}
