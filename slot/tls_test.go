package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// TestInterruptsNeverDisturbTheStreamUnderTLS interrupts reads thousands of times a second while rows come.
func TestInterruptsNeverDisturbTheStreamUnderTLS(t *testing.T) {
	certs := testkit.NewCerts(t, "postgres")
	pg := testkit.Postgres(t, testkit.PGTLS(certs))
	c := newSlot(t, pg)
	testkit.Eventually(t, patience, func() bool {
		return testkit.Value[bool](t, c.URL, `SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`)
	}, "TLS is on")
	k := &taker{confirms: true}
	r := begin(t, c, k)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			tick := time.NewTicker(200 * time.Microsecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				r.interrupt()
				r.Confirm(r.Progress().Received)
			}
		})
	}
	const rows = 3000
	for i := range 10 {
		testkit.Exec(t, c.URL, `INSERT INTO outbox (payload) SELECT $1::int * 300 + i || repeat('x', i) FROM generate_series(0, 299) i`, i)
	}
	got := awaitRows(t, k, rows)
	cancel()
	group.Wait()
	for i, row := range got {
		want := fmt.Sprint(i) + strings.Repeat("x", i%300)
		if row != want[:min(len(want), 100)] {
			t.Fatalf("row %d is %q", i, row)
		}
	}
	r.stop(t)
}

func TestTLSThatCannotBeAgreedOnIsRefused(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	c.ReplicationURL = c.URL + "&sslmode=require"
	if !strings.Contains(c.URL, "?") {
		c.ReplicationURL = c.URL + "?sslmode=require"
	}
	c.ReplicationURL = strings.Replace(c.ReplicationURL, "sslmode=disable&", "", 1)
	_, err := Connect(t.Context(), c)
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(Explain(err), "ssl = on") || Transient(err) {
		t.Fatalf("Connect: %v (%s)", err, Explain(err))
	}
}
