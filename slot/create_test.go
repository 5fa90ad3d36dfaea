package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func slots(t testing.TB, c Config) int {
	t.Helper()
	return testkit.Value[int](t, c.URL, `SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1`, c.Slot)
}

// openWriter leaves a transaction open that has written, until release, and gives its pid.
func openWriter(t testing.TB, c Config) (pid uint32, release func()) {
	t.Helper()
	conn := testkit.Connect(t, c.URL+applicationName(c.URL, "nightly import"))
	if _, err := conn.Exec(t.Context(), `BEGIN; INSERT INTO outbox (payload) VALUES ('open')`); err != nil {
		t.Fatal(err)
	}
	return conn.PgConn().PID(), func() { conn.Close(context.Background()) }
}

func applicationName(url, name string) string {
	sep := "?"
	if strings.Contains(url, "?") {
		sep = "&"
	}
	return sep + "application_name=" + strings.ReplaceAll(name, " ", "%20")
}

func TestCreationBlockedByAWriterIsGivenUpAndNamesIt(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	for _, role := range []string{"SUPERUSER", "REPLICATION"} {
		c := asRole(t, newConfig(t, pg), role)
		owner := c
		owner.URL = replaceRole(t, c.URL, "postgres")
		pid, release := openWriter(t, owner)
		c.CreateTimeout = 300 * time.Millisecond
		began := time.Now()
		_, err := CreateSlot(t.Context(), c, true)
		took := time.Since(began)
		var timeout *CreateTimeoutError
		if !errors.As(err, &timeout) || Transient(err) || took > 5*time.Second {
			t.Fatalf("%s: %v after %s", role, err, took)
		}
		t.Logf("%s: given up after %s", role, took)
		if len(timeout.Blockers) != 1 || timeout.Blockers[0].PID != int(pid) {
			t.Fatalf("%s: blockers %v, want pid %d", role, timeout.Blockers, pid)
		}
		if !strings.Contains(err.Error(), fmt.Sprintf("pid %d (user postgres, application \"nightly import\"", pid)) {
			t.Fatalf("%s: the blocker is not named: %v", role, err)
		}
		if !strings.Contains(Explain(err), fmt.Sprintf("pg_terminate_backend(%d)", pid)) {
			t.Fatalf("%s: hint %s", role, Explain(err))
		}
		if n := slots(t, owner); n != 0 {
			t.Fatalf("%s: a slot was left behind", role)
		}
		release()
	}
}

func TestCreationBlockedByAPreparedTransactionNamesIt(t *testing.T) {
	c := newConfig(t, testkit.Postgres(t, testkit.Conf("max_prepared_transactions", "2")))
	testkit.Exec(t, c.URL, `BEGIN; INSERT INTO outbox (payload) VALUES ('open'); PREPARE TRANSACTION 'forgotten'`)
	c.CreateTimeout = 300 * time.Millisecond
	_, err := CreateSlot(t.Context(), c, false)
	if err == nil || !strings.Contains(err.Error(), `prepared transaction "forgotten"`) || !strings.Contains(Explain(err), "ROLLBACK PREPARED 'forgotten'") {
		t.Fatalf("%v (%s)", err, Explain(err))
	}
	testkit.Exec(t, c.URL, `ROLLBACK PREPARED 'forgotten'`)
}

func TestCancelledCreationLeavesNoSlot(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	_, release := openWriter(t, c)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := CreateSlot(ctx, c, true)
		done <- err
	}()
	testkit.Eventually(t, patience, func() bool { return slots(t, c) == 1 }, "the creation waits")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("CreateSlot: %v", err)
	}
	if n := slots(t, c); n != 0 {
		t.Fatal("a slot was left behind")
	}
}

func TestSlotThatExistsIsNotMadeAgain(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	_, err := CreateSlot(t.Context(), c, false)
	wantRefused(t, err, "already exists", "slot.name")
	if slots(t, c) != 1 {
		t.Fatal("the slot is gone")
	}
}

func TestSnapshotAndStreamMeetWithoutGapOrOverlap(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	stop, written := make(chan struct{}), make(chan int, 1)
	insert(t, c, "0")
	go func() {
		n := 1
		for ; ; n++ {
			select {
			case <-stop:
				written <- n
				return
			default:
				insert(t, c, fmt.Sprint(n))
			}
		}
	}()
	testkit.Eventually(t, patience, func() bool { return testkit.Value[int](t, c.URL, `SELECT count(*) FROM outbox`) > 5 }, "the writer writes")
	created, err := CreateSlot(t.Context(), c, true)
	if err != nil {
		t.Fatal(err)
	}
	before := snapshotRows(t, c, created.Snapshot)
	created.Release()
	created.Release()
	have := testkit.Value[int](t, c.URL, `SELECT count(*) FROM outbox`)
	testkit.Eventually(t, patience, func() bool { return testkit.Value[int](t, c.URL, `SELECT count(*) FROM outbox`) > have+5 }, "the writer writes on")
	close(stop)
	total := <-written
	k := &taker{}
	s := connect(t, c)
	confirmed, err := s.Start(t.Context())
	if err != nil || confirmed != created.ConsistentPoint {
		t.Fatalf("starts at %s, consistent point %s, %v", confirmed, created.ConsistentPoint, err)
	}
	r := launch(t, s, k)
	all := append(before, awaitRows(t, k, total-len(before))...)
	if len(before) == 0 || len(all) != total {
		t.Fatalf("%d rows in the snapshot, %d in all, want %d", len(before), len(all), total)
	}
	for i, row := range all {
		if row != fmt.Sprint(i) {
			t.Fatalf("row %d is %s", i, row)
		}
	}
	r.stop(t)
}

func snapshotRows(t testing.TB, c Config, snapshot string) []string {
	t.Helper()
	conn := testkit.Connect(t, c.URL)
	if _, err := conn.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '`+snapshot+`'`); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `SELECT payload FROM outbox ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCreateCommandSuitsTheServersVersion(t *testing.T) {
	for _, e := range []struct {
		version  int
		failover string
		export   bool
		want     string
	}{
		{150018, "auto", true, `CREATE_REPLICATION_SLOT "s" LOGICAL pgoutput EXPORT_SNAPSHOT`},
		{130023, "on", false, `CREATE_REPLICATION_SLOT "s" LOGICAL pgoutput NOEXPORT_SNAPSHOT`},
		{170010, "auto", true, `CREATE_REPLICATION_SLOT "s" LOGICAL pgoutput (SNAPSHOT 'export', FAILOVER true)`},
		{180004, "on", false, `CREATE_REPLICATION_SLOT "s" LOGICAL pgoutput (SNAPSHOT 'nothing', FAILOVER true)`},
		{170010, "off", false, `CREATE_REPLICATION_SLOT "s" LOGICAL pgoutput NOEXPORT_SNAPSHOT`},
	} {
		if got := createCommand(Config{Slot: "s", Failover: e.failover}, e.version, e.export); got != e.want {
			t.Errorf("%d %s: %s, want %s", e.version, e.failover, got, e.want)
		}
	}
}
