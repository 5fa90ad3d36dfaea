package faults_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// reportPath is the report of the last long run.
const reportPath = "../../docs/faults.md"

// page collects what the faults have come to, one line each.
type page struct {
	form

	mu    sync.Mutex
	began time.Time
	lines map[string]string // by the fault's name
}

func newPage(f form) *page {
	return &page{form: f, began: time.Now(), lines: map[string]string{}}
}

// write prints a fault's line and keeps it.
func (p *page) write(t *testing.T, x fault, o outcome) {
	t.Helper()
	r := o.report
	recovery := "-"
	if o.recovery > 0 {
		recovery = fmt.Sprintf("%.1f s", o.recovery.Seconds())
	}
	t.Logf("%s: rounds %d, committed %d, missing %d, extra %d, duplicate %d, out of order %d, late %d, longest recovery %s, peak memory %d MiB",
		x.name, o.rounds, r.Committed, r.Missing, r.Extra, r.Duplicate, r.OutOfOrder, r.Late, recovery, o.peak>>20)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines[x.name] = fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %s | %d MiB |",
		x.name, o.rounds, r.Committed, r.Missing, r.Extra, r.Duplicate, r.OutOfOrder, r.Late, recovery, o.peak>>20)
}

// finish prints all lines, and writes them to FAULTS_DOC where that is set.
func (p *page) finish(t *testing.T) {
	t.Helper()
	table := p.table()
	t.Logf("after %s:\n%s", time.Since(p.began).Round(time.Second), table)
	path := os.Getenv("FAULTS_DOC")
	if path == "" {
		return
	}
	if err := os.WriteFile(path, []byte(p.text(t, table)), 0o644); err != nil { //nolint:gosec // a page to be read
		t.Fatal(err)
	}
}

func (p *page) table() string {
	var out strings.Builder
	out.WriteString("| Fault | Rounds | Committed | Missing | Extra | Duplicate | Out of order | Late | Longest recovery | Peak memory |\n")
	out.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, x := range all() {
		line, done := p.lines[x.name]
		switch {
		case !done && p.of(x) > 0:
			line = fmt.Sprintf("| %s | did not finish | | | | | | | | |", x.name)
		case !done: // in the long form only
			line = fmt.Sprintf("| %s | 0 | | | | | | | | |", x.name)
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

const pageText = `# What was broken, and what was lost

Every fault happens at random moments under a load of several connections that commit, roll back, roll back to savepoints and keep
transactions open. Outages last longer than the stream's duplicate window of 2 s, so that it is the bridge's memory that is tested and not
the broker's. Afterwards every committed row is compared with the whole stream, nothing deduplicated. The recovery is the time from the
fault's end to the first new message; the longest is shown. Peak memory is the bridge's.

%s
on %s, in %s, with PostgreSQL %s, nats-server %s, nats.go %s, %s.

%s
%s`

// text is the whole page.
func (p *page) text(t *testing.T, table string) string {
	t.Helper()
	command := fmt.Sprintf("Made by `make faults ROUNDS=%d SEED=%d`", p.rounds, p.seed)
	if !p.long {
		command = fmt.Sprintf("Made by the short form that is in `make test`, with SEED=%d,", p.seed)
	}
	var what strings.Builder
	for _, x := range all() {
		fmt.Fprintf(&what, "- **%s**: %s\n", x.name, x.does)
	}
	postgres := testkit.Value[string](t, testkit.SharedPostgres(t).URL("postgres"), "SELECT split_part(current_setting('server_version'), ' ', 1)")
	server := testkit.NATS(t).Connect(t).ConnectedServerVersion()
	return fmt.Sprintf(pageText, command, time.Now().UTC().Format(time.DateOnly), time.Since(p.began).Round(time.Second),
		postgres, server, nats.Version, runtime.Version(), table, what.String())
}

// TestEveryFaultIsInTheReport holds the report to the table: no fault is left out of it, and none is in it that is gone.
func TestEveryFaultIsInTheReport(t *testing.T) {
	text, err := os.ReadFile(reportPath)
	if err != nil {
		t.Fatal(err)
	}
	reported := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \| \d+ \|`).FindAllStringSubmatch(string(text), -1) {
		reported[m[1]] = true
	}
	for _, x := range all() {
		if !reported[x.name] {
			t.Errorf("%s is not in the report: run `make faults`", x.name)
		}
		delete(reported, x.name)
	}
	for name := range reported {
		t.Errorf("the report has %s, which is no fault any more", name)
	}
}
