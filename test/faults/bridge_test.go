package faults_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/scene"
)

// bridgeFaults are those of the program itself.
func bridgeFaults() []fault {
	return []fault{
		{
			name: "kill -9 bridge", does: "the bridge is killed, and started again after the outage",
			short: 2, often: true, inflict: killBridge,
		},
		{
			name: "kill -9 bridge without an outage", does: "the bridge is killed under three times the load, and started again at once",
			rate: 3 * defaultRate, inflict: func(tr *trial) {
				tr.bridge.Kill(tr)
				tr.bridge = tr.Launch(tr)
			},
		},
		{
			name: "bridge stopped and started", does: "the bridge is stopped by SIGTERM and started after the outage: PostgreSQL sends no more than the last moment's rows again",
			short: 1, inflict: stopBridge, check: littleSentAgain,
		},
		{
			name: "kill -9 in a huge transaction", does: "one transaction has a million rows (50,000 in the short form): the bridge is stopped when half of them are stored, started, and killed when nine tenths are; before the first new message PostgreSQL decodes and sends all of these again, which is part of the recovery",
			short: 1, plain: true, inflict: killInHugeTransaction, recovery: sendsAgain,
		},
		{
			name: "two bridges, the active one killed", does: "the slot is busy for the second bridge, which waits; it takes over when the first is killed",
			inflict: killActive,
		},
		{
			name: "active bridge frozen and woken", does: "the active bridge is stopped by SIGSTOP until PostgreSQL has given it up and the second has taken over, and is then woken by SIGCONT",
			short: 1, rate: 4 * defaultRate, scene: impatientServer, inflict: freezeActive, check: wokenHasEnded,
		},
		{
			name: "clock one hour off", does: "the bridge's clock is one hour fast, then one hour slow, and so on; it is killed in between",
			scene: wrongClock, inflict: killAndShiftClock,
		},
	}
}

func killBridge(tr *trial) {
	tr.bridge.Kill(tr)
	tr.away()
	tr.bridge = tr.Launch(tr)
}

func stopBridge(tr *trial) {
	littleSentAgain(tr)
	scene.Stop(tr, tr.bridge)
	tr.away()
	tr.bridge = tr.Launch(tr)
}

// lastMoment is how many rows may come again after a clean stop: those behind the last look at publication and tables,
// where the look that precedes the last confirm did not succeed within its second. They are known to be stored.
const lastMoment = 50

// littleSentAgain asks a bridge that followed one that was stopped in order.
func littleSentAgain(tr *trial) {
	if n := tr.bridge.Metric(tr, "tidegate_skipped_stored_total"); n > lastMoment {
		tr.Errorf("round %d: after a clean stop PostgreSQL sent %v rows again", tr.round, n)
	}
}

// sendsAgain allows for 900,000 rows that PostgreSQL decodes and sends again, at 45,000 a second.
const sendsAgain = recoveryLimit + 20*time.Second

const hugeTransaction = `INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
	SELECT 'order', 'huge' || i % 10000, 'imported', jsonb_build_object('n', i, 'text', repeat('x', 200)) FROM generate_series(1, $1) i`

func killInHugeTransaction(tr *trial) {
	rows := 50_000
	if tr.long {
		rows = 1_000_000
	}
	before, _ := tr.Stored()
	testkit.Exec(tr, tr.URL, hugeTransaction, rows)
	until := func(share int) {
		testkit.Eventually(tr, 5*time.Minute, func() bool {
			stored, ok := tr.Stored()
			return ok && stored >= before+uint64(rows/10*share)
		}, "%d tenths of the transaction are stored", share)
	}
	until(5)
	scene.Stop(tr, tr.bridge)
	tr.away()
	tr.bridge = tr.Launch(tr)
	until(9)
	killBridge(tr)
}

// waits starts a second bridge where there is none, and finds that it stands by.
func (tr *trial) waits() {
	tr.Helper()
	if tr.standby != nil {
		return
	}
	tr.standby = tr.Launch(tr)
	tr.standby.WaitReady(tr, 20*time.Second)
	if _, text := tr.standby.Get(tr, "/readyz"); !strings.Contains(text, `"role":"standby"`) {
		tr.Fatalf("the second bridge is no standby: %s", text)
	}
}

func killActive(tr *trial) {
	tr.waits()
	tr.bridge.Kill(tr)
	tr.bridge, tr.standby = tr.standby, nil
}

// impatientServer gives a bridge up that is silent for 3 s.
func impatientServer(_ *testing.T, o *scene.Options) func(*trial) {
	o.Postgres = append(o.Postgres, testkit.Conf("wal_sender_timeout", "3s"))
	return nil
}

func freezeActive(tr *trial) {
	tr.waits()
	frozen := tr.bridge
	held := tr.walsender()
	frozen.Signal(tr, syscall.SIGSTOP)
	testkit.Eventually(tr, 30*time.Second, func() bool { return tr.walsender() != held }, "PostgreSQL gives the frozen bridge up")
	tr.ended = time.Now()
	tr.standby.WaitLog(tr, 20*time.Second, `"msg":"streaming"`)
	tr.recovers()
	tr.wait(time.Duration(tr.random.Int64N(int64(time.Second))))
	tr.away() // what the stream knew of the frozen one's messages it has forgotten
	frozen.Signal(tr, syscall.SIGCONT)
	tr.bridge, tr.standby = tr.standby, frozen
}

// walsender is the process that holds the slot, 0 while none does.
func (tr *trial) walsender() int {
	tr.Helper()
	return testkit.Value[int](tr, tr.URL, "SELECT COALESCE(active_pid, 0) FROM pg_replication_slots WHERE slot_name = 'tidegate'")
}

// wokenHasEnded finds the woken bridge standing by: not publishing, and not fallen over.
func wokenHasEnded(tr *trial) {
	tr.standby.WaitReady(tr, 20*time.Second)
	if _, text := tr.standby.Get(tr, "/readyz"); !strings.Contains(text, `"role":"standby"`) {
		tr.Errorf("the woken bridge is no standby: %s", text)
	}
}

func wrongClock(t *testing.T, o *scene.Options) func(*trial) {
	t.Helper()
	o.Program = testkit.ClockBinary(t)
	return func(tr *trial) { tr.Env = map[string]string{testkit.ClockOffset: "3600"} }
}

func killAndShiftClock(tr *trial) {
	offset := "3600"
	if tr.round%2 == 1 {
		offset = "-3600"
	}
	tr.Env = map[string]string{testkit.ClockOffset: offset}
	killBridge(tr)
}
