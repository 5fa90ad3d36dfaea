package acceptance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/migrations"
)

// TestOperatorResolvesParkedRows goes the whole way with the commands: a row with a forbidden header and what waits
// behind it, one given up, one tried in vain, and one published once the mapping that was wrong is mended.
func TestOperatorResolvesParkedRows(t *testing.T) {
	s := newScene(t, testkit.Binary(t))
	if _, err := migrations.Up(t.Context(), s.url, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, s.url, "ALTER TABLE outbox ADD COLUMN headers jsonb")
	plain := strings.Replace(s.config, "park: {store: off}", "", 1)
	mapped := strings.Replace(plain, "stream: OUTBOX}", "stream: OUTBOX, columns: {headers: headers}}", 1)
	if plain == s.config || mapped == plain {
		t.Fatal("the configuration is not what this test changes")
	}
	s.config = mapped
	bridge := s.start(t)
	insert := "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, headers) VALUES "
	testkit.Exec(t, s.url, insert+`('order', '1', 'a', '{}', '{"Nats-Rollup": "all"}'), ('order', '1', 'b', '{}', NULL), ('order', '2', 'a', '{}', '{"Nats-Rollup": "all"}'),
		('order', '2', 'b', '{}', NULL), ('order', '3', 'a', '{}', NULL)`)
	command := func(want int, contains string, args ...string) {
		t.Helper()
		code, out := s.bin.Run(t, 60*time.Second, testkit.Call{Args: append([]string{"parked"}, args...), Config: s.config})
		if code != want || !strings.Contains(out, contains) {
			t.Fatalf("parked %v: code %d, want %d with %q:\n%s", args, code, want, contains, out)
		}
	}
	testkit.Eventually(t, 30*time.Second, func() bool {
		return s.messages(t) == 1 && testkit.Value[int](t, s.url, "SELECT count(*)::int FROM tidegate.parked") == 4
	}, "only order 3 goes on, the others are put aside")
	command(0, "order/1", "list")
	command(3, "parked again: ", "retry", "--aggregate", "order/1")
	command(3, "waits behind parked row", "retry", testkit.Value[string](t, s.url, "SELECT id::text FROM tidegate.parked WHERE state IN ('held', 'releasing') LIMIT 1"))
	command(0, "given up", "discard", testkit.Value[string](t, s.url, "SELECT min(id)::text FROM tidegate.parked WHERE state = 'parked' AND aggregate_id = '2'"), "--yes")
	testkit.Eventually(t, 30*time.Second, func() bool { return s.messages(t) == 2 }, "what waited behind the row that was given up follows")
	stop(t, bridge)

	s.config = plain
	command(0, "no bridge holds the slot tidegate", "retry", "--aggregate", "order/1")
	bridge = s.start(t)
	testkit.Eventually(t, 30*time.Second, func() bool { return s.messages(t) == 4 }, "what was noted is done by the next bridge")
	command(0, "no such rows", "list")
	stop(t, bridge)
	if report := s.compare(t); report.Missing != 1 || report.Duplicate != 0 || report.OutOfOrder != 0 {
		t.Errorf("only the row that was given up is missing: %v", report)
	}
}
