package faults_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/load"
	"github.com/tidegate-cdc/tidegate/internal/testkit/scene"
)

// trial is one fault on its way.
type trial struct {
	*testing.T
	*scene.Scene
	form

	bridge  *testkit.Process // the active one: it has to end in order when all is over
	standby *testkit.Process // nil: there is none
	writer  *load.Writer
	random  *rand.Rand
	round   int // from 1
	rounds  int

	recovery time.Duration // the longest
	ended    time.Time     // of the fault that has not recovered yet
}

// outcome is what a fault has come to.
type outcome struct {
	rounds   int
	report   *oracle.Report
	recovery time.Duration
	peak     int64
}

// defaultRate is how many transactions a second are written.
const defaultRate = 150

// run makes one fault's rounds and compares.
func run(t *testing.T, f form, x fault, rounds int) outcome {
	t.Helper()
	tr := &trial{T: t, form: f, random: f.random(x.name), rounds: rounds}
	var options scene.Options
	after := func(*trial) {}
	if x.scene != nil {
		if then := x.scene(t, &options); then != nil {
			after = then
		}
	}
	if x.plain {
		options.Program = testkit.PlainBinary(t)
	}
	tr.Scene = scene.New(t, options)
	after(tr)
	if tr.bridge == nil {
		tr.bridge = tr.Start(t)
	}
	rate := x.rate
	if rate == 0 {
		rate = defaultRate
	}
	tr.writer = load.Write(t, tr.URL, rate, tr.random.Uint64())
	for tr.round = 1; tr.round <= rounds; tr.round++ {
		tr.AwaitStored(t, 50)
		tr.wait(time.Duration(tr.random.Int64N(int64(time.Second))))
		x.inflict(tr)
		tr.recovers()
	}
	tr.settle(x)
	return tr.judge(x)
}

// wait lets the load go on for a while: the one thing that is waited for by the clock.
func (tr *trial) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-tr.Context().Done():
	}
}

// away is an outage: the form's shortest and up to a second more.
func (tr *trial) away() {
	tr.wait(tr.outage + time.Duration(tr.random.Int64N(int64(time.Second))))
}

// recovers waits for the first new message after the fault's end, which is now unless ended says otherwise.
func (tr *trial) recovers() {
	tr.Helper()
	end := tr.ended
	if tr.ended = (time.Time{}); end.IsZero() {
		end = time.Now()
	}
	tr.AwaitStored(tr, 1)
	took := time.Since(end)
	tr.recovery = max(tr.recovery, took)
	if took > recoveryLimit {
		tr.Errorf("round %d: the first message after the fault's end took %s", tr.round, took.Round(time.Millisecond))
	}
}

// settle ends the writer, waits until all is stored, and stops the bridge in order.
func (tr *trial) settle(x fault) {
	tr.Helper()
	tr.writer.End()
	tr.AwaitAll(tr, 60*time.Second)
	deadline := time.Now().Add(30 * time.Second)
	testkit.Eventually(tr, time.Minute, func() bool {
		report := tr.compare(x)
		return report.Missing == 0 || time.Now().After(deadline)
	}, "compared")
	if x.check != nil {
		x.check(tr)
	}
	if tr.standby != nil {
		scene.Stop(tr, tr.standby)
	}
	scene.Stop(tr, tr.bridge)
}

func (tr *trial) compare(x fault) *oracle.Report {
	tr.Helper()
	if x.compare != nil {
		return x.compare(tr)
	}
	return tr.Compare(tr)
}

// judge counts. Every count has to be zero.
func (tr *trial) judge(x fault) outcome {
	tr.Helper()
	report := tr.compare(x)
	if report.Committed == 0 {
		tr.Error("nothing was committed: the test has shown nothing")
	}
	if !report.Clean() || (report.Late != 0) != x.parks {
		tr.Errorf("SEED=%d: the stream is not what was committed: %s", tr.seed, report)
	}
	peak := tr.PeakMemory()
	if (x.plain || !testkit.Race) && peak >= memoryLimit {
		tr.Errorf("a bridge had %d MiB resident", peak>>20)
	}
	return outcome{tr.rounds, report, tr.recovery, peak}
}
