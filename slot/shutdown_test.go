package slot

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// mostStop is the longest that we may hold up a fast shutdown.
const mostStop = 5 * time.Second

// watch runs Watch and gives what it returns, and a channel on which shutdowns are told.
func watch(t *testing.T, c Config) (told chan time.Time, done chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	told, done = make(chan time.Time, 10), make(chan error, 1)
	go func() { done <- Watch(ctx, c, func() { told <- time.Now() }) }()
	t.Cleanup(cancel)
	awaitWatcher(t, c, 0)
	return told, done
}

// awaitWatcher waits until a watching connection other than that of pid is there, and gives its pid.
func awaitWatcher(t *testing.T, c Config, pid int) (watcher int) {
	t.Helper()
	testkit.Eventually(t, patience, func() bool {
		watcher = testkit.Value[int](t, c.URL, `SELECT coalesce(max(pid), 0) FROM pg_stat_activity
			WHERE application_name = $1 AND pid <> $2`, cutName("tidegate_"+c.Slot+"_watch"), pid)
		return watcher != 0
	}, "the watcher is connected")
	return watcher
}

func awaitTold(t *testing.T, told chan time.Time) {
	t.Helper()
	select {
	case <-told:
	case <-time.After(patience):
		t.Fatal("the shutdown is not told")
	}
}

func TestIdleBridgeDoesNotHoldUpAShutdown(t *testing.T) {
	pg := testkit.Postgres(t)
	c := newSlot(t, pg)
	r := begin(t, c, &taker{confirms: true})
	insert(t, c, "one")
	testkit.Eventually(t, patience, func() bool { return r.Progress().Confirmed >= lsnOf(t, c, currentLSN) }, "all is confirmed")
	if took := pg.Stop(t, testkit.Fast); took > mostStop {
		t.Fatalf("the stop took %s", took)
	} else {
		t.Logf("the stop took %s", took)
	}
	if err := r.ended(t); !Transient(err) {
		t.Fatalf("Run: %v", err)
	}
}

// TestWatchFreesAShutdownFromAFullBridge has rows pending that nobody will confirm.
func TestWatchFreesAShutdownFromAFullBridge(t *testing.T) {
	pg := testkit.Postgres(t)
	c := newSlot(t, pg)
	k := &taker{confirms: true}
	k.full.Store(true)
	r := begin(t, c, k)
	told, _ := watch(t, c)
	testkit.Exec(t, c.URL, `INSERT INTO outbox (payload) SELECT repeat('x', 1000) FROM generate_series(1, 20000)`)
	go func() {
		<-told
		r.cancel()
		<-r.done
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = r.Finish(ctx)
	}()
	if took := pg.Stop(t, testkit.Fast); took > mostStop {
		t.Fatalf("the stop took %s", took)
	} else {
		t.Logf("the stop took %s", took)
	}
	pg.Start(t)
	k = &taker{confirms: true}
	again := begin(t, c, k)
	awaitRows(t, k, 20000)
	again.stop(t)
}

func TestWatchTellsOfEachShutdownOnce(t *testing.T) {
	pg := testkit.Postgres(t)
	c := newConfig(t, pg)
	told, _ := watch(t, c)
	for range 2 {
		pg.Stop(t, testkit.Fast)
		awaitTold(t, told)
		pg.Start(t)
		awaitWatcher(t, c, 0)
	}
	if n := len(told); n != 0 {
		t.Fatalf("told %d times more", n)
	}
}

// A server that goes down again while the watcher connects ends that connection too: its code is all that is known of it.
func TestShutdownDuringTheWatchersReturnIsTold(t *testing.T) {
	for _, e := range []struct {
		code       string
		told, want bool
	}{
		{"57P01", false, true},
		{"57P01", true, true}, // it had taken our connection: it was up in between
		{"57P03", false, true},
		{"57P03", true, false}, // the same shutdown, or the start behind it
		{"08006", false, false},
	} {
		err := fmt.Errorf("connect: %w", &pgconn.PgError{Code: e.code})
		if got := beginsToStop(err, e.told); got != e.want {
			t.Errorf("%s, told %v: %v", e.code, e.told, got)
		}
	}
}

func TestWatchOutlivesALostConnection(t *testing.T) {
	pg := testkit.Postgres(t)
	c := newConfig(t, pg)
	direct := c
	proxy, through := testkit.ProxyURL(t, c.URL)
	c.URL = through
	told, _ := watch(t, c)
	pid := awaitWatcher(t, direct, 0)
	proxy.Cut()
	awaitWatcher(t, direct, pid)
	if n := len(told); n != 0 {
		t.Fatalf("a lost connection was told as a shutdown")
	}
	pg.Stop(t, testkit.Fast)
	awaitTold(t, told)
}

func TestWatchNoticesAServerThatIsGoneWithoutAWord(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	proxy, through := testkit.ProxyURL(t, c.URL)
	c.URL = through
	conn, err := ConnectSQL(t.Context(), c, "watch")
	if err != nil {
		t.Fatal(err)
	}
	defer closeSQL(conn)
	done := make(chan error, 1)
	go func() { done <- watchOne(context.Background(), conn, 20*time.Millisecond, 300*time.Millisecond) }()
	asked := proxy.Passed()
	testkit.Eventually(t, patience, func() bool { return proxy.Passed() > asked+20 }, "the server is asked again and again")
	select {
	case err := <-done:
		t.Fatalf("a server that answers is given up: %v", err)
	default:
	}
	proxy.Swallow()
	if err := <-done; !Transient(err) || shuttingDown(err) {
		t.Fatalf("watchOne: %v", err)
	}
}

func TestWatchEndsWithItsContextAndWithARefusal(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Watch(ctx, c, func() {}); !errors.Is(err, context.Canceled) {
		t.Fatalf("Watch: %v", err)
	}
	c.URL = replaceDatabase(t, c.URL, "nowhere")
	var refused *RefusedError
	if err := Watch(t.Context(), c, func() {}); !errors.As(err, &refused) {
		t.Fatalf("Watch: %v", err)
	}
}
