package relay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// Each of these makes PostgreSQL leave rows out without an error.
func TestPublicationThatNoLongerYieldsTheRowsEndsTheBridgeWithTheWindowAtRisk(t *testing.T) {
	for name, sql := range map[string]string{
		"inserts no longer published": "ALTER PUBLICATION tidegate SET (publish = 'update')",
		"table taken out":             "CREATE TABLE other (a int); ALTER PUBLICATION tidegate SET TABLE other",
		"table made again":            "ALTER TABLE outbox RENAME TO outbox_old; " + outboxTable + "; ALTER PUBLICATION tidegate ADD TABLE outbox; ALTER PUBLICATION tidegate DROP TABLE outbox_old",
	} {
		t.Run(name, func(t *testing.T) {
			url := testkit.SharedPostgres(t).Database(t)
			nats := testkit.NATS(t)
			testkit.Exec(t, url, outboxTable)
			b := start(t, load(t, eventConfig+"monitor: {interval: 1s}\n", map[string]string{"PG": url, "NATS": nats.URL()}))
			js := nats.JetStream(t)
			testkit.Eventually(t, 20*time.Second, func() bool { return slots(t, url, "active AND confirmed_flush_lsn IS NOT NULL") == 1 }, "the slot is not taken")
			testkit.Exec(t, url, insertRow)
			testkit.Eventually(t, 20*time.Second, func() bool { return messages(t, js, "OUTBOX") == 1 }, "no row arrives")
			testkit.Exec(t, url, sql)
			testkit.Exec(t, url, insertRow)
			err := b.wait(t, 10*time.Second)
			if exit.Code(err) != exit.Drift || exit.Hint(err) == "" || !strings.Contains(err.Error(), "committed between") {
				t.Fatalf("ended with %v (code %d, hint %q)", err, exit.Code(err), exit.Hint(err))
			}
			t.Log(err)
			t.Log(exit.Hint(err))
		})
	}
}
