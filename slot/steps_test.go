package slot

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// A confirm may fail in two forms: it failed, or it failed but was applied; and PostgreSQL may take it back. That a
// session never confirms less than before, or more than there is, is in position_test.go; publish and checkpoint, the
// steps before this one, are in publish/steps_test.go.

// confirmForm is what becomes of a confirm.
type confirmForm struct {
	name string
	// fail ends the session: asked is what was confirmed.
	fail func(t *testing.T, bed *confirmBed)
	// again is how many of the confirmed rows must come again: -1 where any number may.
	again int
}

// confirmBed is a session by a proxy, with ten rows handed over.
type confirmBed struct {
	pg     *testkit.PG
	direct Config
	proxy  *testkit.Proxy
	run    *running
	asked  decoder.LSN
}

var confirmForms = []confirmForm{
	{"status not written, connection cut", func(t *testing.T, b *confirmBed) {
		b.proxy.Swallow()
		sent := b.run.Progress().Statuses
		b.run.Confirm(b.asked)
		testkit.Eventually(t, patience, func() bool { return b.run.Progress().Statuses > sent }, "the status is sent into the void")
		b.proxy.Cut()
	}, 10},
	{"status written, connection cut", func(t *testing.T, b *confirmBed) {
		b.confirm(t)
		b.proxy.Cut()
	}, 0},
	{"status written, walsender terminated", func(t *testing.T, b *confirmBed) {
		b.confirm(t)
		testkit.Exec(t, b.direct.URL, `SELECT pg_terminate_backend($1)`, b.run.PID())
	}, 0},
	{"status written, PostgreSQL crashes and takes it back", func(t *testing.T, b *confirmBed) {
		b.confirm(t)
		b.pg.Restart(t, testkit.Immediate)
	}, -1},
}

// confirm asks and waits until the server has it.
func (b *confirmBed) confirm(t *testing.T) {
	t.Helper()
	b.run.Confirm(b.asked)
	testkit.Eventually(t, patience, func() bool { return confirmedFlush(t, b.direct) >= b.asked }, "%s is confirmed", b.asked)
}

// TestConfirmThatFailsOrFailsButIsAppliedLosesNoRow: rows that were not confirmed come, in order and once; of those
// that were, none is missed, and how many come again depends on what became of the confirm.
func TestConfirmThatFailsOrFailsButIsAppliedLosesNoRow(t *testing.T) {
	pg := testkit.Postgres(t)
	for _, form := range confirmForms {
		t.Run(form.name, func(t *testing.T) {
			b := &confirmBed{pg: pg, direct: newSlot(t, pg)}
			before := confirmedFlush(t, b.direct)
			c := b.direct
			b.proxy, c.ReplicationURL = testkit.ProxyURL(t, b.direct.URL)
			k := &taker{}
			b.run = begin(t, c, k)
			first := someRows(t, b.direct, 1, 10)
			wantRows(t, awaitCommits(t, k, 10), first...)
			b.asked = b.run.Progress().Received
			form.fail(t, b)
			if err := b.run.ended(t); !Transient(err) {
				t.Fatalf("Run: %v", err)
			}
			if got := confirmedFlush(t, b.direct); got < before || got > b.asked {
				t.Fatalf("confirmed %s: it was %s, and %s was asked for", got, before, b.asked)
			}
			second := someRows(t, b.direct, 11, 20)
			wantTheRest(t, b.direct, first, second, form.again)
		})
	}
}

func someRows(t *testing.T, c Config, from, to int) (rows []string) {
	t.Helper()
	for i := from; i <= to; i++ {
		rows = append(rows, fmt.Sprint(i))
	}
	insert(t, c, rows...)
	return rows
}

// wantTheRest reads on in a new session: second whole, behind the last rows of first.
func wantTheRest(t *testing.T, c Config, first, second []string, again int) {
	t.Helper()
	if err := WaitFree(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	k := &taker{confirms: true}
	r := begin(t, c, k)
	last := second[len(second)-1]
	testkit.Eventually(t, patience, func() bool { return slices.Contains(k.got(), last) }, "row %s arrives", last)
	got := k.got()
	r.stop(t)
	repeated := len(got) - len(second)
	if repeated < 0 || repeated > len(first) || again >= 0 && repeated != again {
		t.Fatalf("%d rows come again, want %d: %v", repeated, again, got)
	}
	wantRows(t, got, append(slices.Clone(first[len(first)-repeated:]), second...)...)
}
