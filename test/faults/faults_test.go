// Package faults_test breaks the built program, PostgreSQL and NATS in every way there is, under load, and counts what
// is lost, invented, doubled or out of order. `make test` runs its short form, `make faults` the long one.
package faults_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/scene"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !isSet("test.parallel") { // the faults mostly wait, so more of them than there are cores can run at once
		_ = flag.Set("test.parallel", "4")
	}
	testkit.Main(m)
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// fault is one way to break things.
type fault struct {
	name string
	does string // one sentence for the reader of the report
	// short is how many rounds are made in `make test`; 0: this fault is in the long form only.
	short int
	// often asks for 20 rounds at least in the long form, once for a single one in either form.
	often, once bool

	// scene changes what the fault happens in; nil: a cluster, a nats-server and one bridge.
	scene func(t *testing.T, o *scene.Options) (after func(*trial))
	// inflict breaks things once and mends them. It returns at the fault's end: the recovery is measured from there.
	inflict func(*trial)
	// check asks for what the fault promises besides; it runs when all is stored, before the bridge is stopped.
	check func(*trial)
	// compare counts; nil: the table with the whole stream.
	compare func(*trial) *oracle.Report
	// parks says that rows are parked and released: they are late.
	parks bool
	// plain runs the bridge without the race detector, so that its memory is measured in every form.
	plain bool
	// rate is how many transactions a second are written; 0: 150.
	rate int
}

// all is every fault, in the report's order.
func all() []fault {
	var list []fault
	for _, group := range [][]fault{bridgeFaults(), postgresFaults(), natsdFaults(), streamFaults(), poisonFaults(), natsFaults()} {
		list = append(list, group...)
	}
	return list
}

const (
	// recoveryLimit is how long the first message may take after a fault's end.
	recoveryLimit = 10 * time.Second
	// memoryLimit is what a bridge may have resident at most, in bytes.
	memoryLimit = 200 << 20
)

// form is how long it is gone about.
type form struct {
	long   bool
	rounds int
	seed   uint64
	// outage is the shortest one: longer than the stream's duplicate window of 2 s.
	outage time.Duration
}

// readForm takes ROUNDS, whose absence means the short form, and SEED.
func readForm(t *testing.T) form {
	t.Helper()
	f := form{outage: 2500 * time.Millisecond, seed: uint64(time.Now().UnixNano())}
	if text := os.Getenv("ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("ROUNDS=%q is no number of rounds", text)
		}
		f.long, f.rounds, f.outage = true, n, 5*time.Second
	}
	if text := os.Getenv("SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SEED=%q is no seed", text)
		}
		f.seed = n
	}
	return f
}

const often = 20

// of is how many rounds a fault gets.
func (f form) of(x fault) int {
	switch {
	case !f.long:
		return x.short
	case x.once:
		return 1
	case x.often:
		return max(f.rounds, often)
	}
	return f.rounds
}

// random gives the dice of one fault: the same for the same seed, whatever other faults run.
func (f form) random(name string) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(f.seed, h))
}

func TestFaultsLoseNothing(t *testing.T) {
	f := readForm(t)
	t.Logf("SEED=%d", f.seed)
	page := newPage(f)
	t.Run("fault", func(t *testing.T) {
		for _, x := range all() {
			if rounds := f.of(x); rounds > 0 {
				t.Run(x.name, func(t *testing.T) {
					t.Parallel()
					page.write(t, x, run(t, f, x, rounds))
				})
			}
		}
	})
	page.finish(t)
}
