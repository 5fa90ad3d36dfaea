package guard_test

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/internal/guard"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// A slot that is dropped must not go on to be shown as it last was.
func TestSlotIsWatchedFromBeforeItIsMadeUntilAfterItIsDropped(t *testing.T) {
	url := testkit.SharedPostgres(t).Database(t)
	ctx, stop := context.WithCancel(t.Context())
	samples := make(chan guard.Sample)
	done := make(chan struct{})
	connect := func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, url) }
	go func() {
		defer close(done)
		guard.Watch(ctx, connect, "watched", 10*time.Millisecond, slog.New(slog.DiscardHandler), func(ctx context.Context, _ *pgx.Conn, s guard.Sample) {
			select {
			case samples <- s:
			case <-ctx.Done():
			}
		})
	}()
	want := func(what string, is func(guard.Sample) bool) {
		t.Helper()
		testkit.Eventually(t, 10*time.Second, func() bool { return is(<-samples) }, "no sample of %s", what)
	}
	absent := func(s guard.Sample) bool { return s.WALStatus == "" && !s.Active && math.IsNaN(s.Retained) }
	want("no slot", absent)
	testkit.Exec(t, url, "SELECT pg_create_logical_replication_slot('watched', 'pgoutput')")
	want("an idle slot", func(s guard.Sample) bool { return s.WALStatus == "reserved" && !s.Active && s.Retained >= 0 })
	testkit.Exec(t, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	testkit.Exec(t, url, "SELECT pg_drop_replication_slot('watched')")
	want("no slot again, over a lost connection", absent)
	stop()
	<-done
}
