package oracle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// TestPlantedFaultsAreCountedInARealStream plants every kind of fault, several of each and all at once, between a real
// table and a real stream.
func TestPlantedFaultsAreCountedInARealStream(t *testing.T) {
	url := testkit.SharedPostgres(t).PlainDatabase(t)
	testkit.Exec(t, url, `CREATE TABLE outbox (id text PRIMARY KEY, seq bigint GENERATED ALWAYS AS IDENTITY, aggregate_type text, aggregate_id text);
		INSERT INTO outbox (id, aggregate_type, aggregate_id) SELECT 'r' || n, 'order', 'o' || n % 10 FROM generate_series(1, 1000) n`)
	server := testkit.NATS(t)
	js := server.JetStream(t)
	server.Stream(t, jetstream.StreamConfig{Name: "OUT", Subjects: []string{"out.*"}, Duplicates: 100 * time.Millisecond})
	put := func(row int, late string) {
		m := message("outbox", fmt.Sprintf("r%d", row), "order", fmt.Sprintf("o%d", row%10))
		if late != "" {
			m.Header.Set(event.HeaderLate, late)
		}
		testkit.Eventually(t, 10*time.Second, func() bool {
			ack, err := js.PublishMsg(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			return !ack.Duplicate // the stream forgets what it has stored after a while
		}, "%d is stored", row)
	}
	var late []int
	for row := 1; row <= 1000; row++ {
		switch row {
		case 101, 102, 103, 900: // lost
		case 200: // swapped with the next of its aggregate
			put(210, "")
		case 210:
			put(200, "")
		case 301, 302: // invented
			put(row, "")
			put(row+5000, "")
		case 401, 402, 403: // late: repaired when all else was published
			late = append(late, row)
		default:
			put(row, "")
		}
	}
	for _, row := range late {
		put(row, "repair")
	}
	for _, row := range []int{500, 501, 502, 503, 504} { // doubled
		put(row, "")
	}
	report, err := oracle.Compare(t.Context(), testkit.Connect(t, url), js, "OUT", oracle.Outbox("app"))
	if err != nil {
		t.Fatal(err)
	}
	if report.Committed != 1000 || report.Missing != 4 || report.Extra != 2 || report.Duplicate != 5 || report.OutOfOrder != 1 ||
		report.Late != 3 || report.Misplaced != 0 || report.Clean() {
		t.Errorf("planted: missing 4, extra 2, duplicates 5, out of order 1, late 3\ncounted: %s", report)
	}
}
