package relay

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
)

//go:generate go test . -run TestMetricsPageIsFresh -update

var update = flag.Bool("update", false, "write docs/metrics.md")

func TestMetricsPageIsFresh(t *testing.T) {
	const page = "../../docs/metrics.md"
	want := metricsPage(families(t))
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/metrics.md is stale: run go generate ./internal/relay")
	}
}

// TestMetricsFollowTheConventions asks Prometheus' own linter: base units, _total on counters, help on everything.
func TestMetricsFollowTheConventions(t *testing.T) {
	problems, err := promlint.NewWithMetricFamilies(families(t)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestSlotMetricsNameTheSlot(t *testing.T) {
	for _, f := range families(t) {
		if of := strings.TrimPrefix(f.GetName(), "tidegate_"); strings.HasPrefix(of, "slot_") || strings.HasSuffix(of, "_lsn") {
			if !slices.Contains(labels(f), "slot") {
				t.Errorf("%s has no label slot", f.GetName())
			}
		}
	}
}

// TestEveryLabelHasFewValues allows the labels whose values are few and fixed, and event_type, which is capped.
func TestEveryLabelHasFewValues(t *testing.T) {
	bounded := []string{"slot", "status", "side", "reason", "version", "commit", "go", "event_type"}
	for _, f := range families(t) {
		for _, l := range labels(f) {
			if !slices.Contains(bounded, l) {
				t.Errorf("%s has the label %s: how many values can it take", f.GetName(), l)
			}
		}
	}
}

func TestEventTypesAreCapped(t *testing.T) {
	m := NewMetrics("tidegate")
	for i := range 3 * maxEventTypes {
		m.eventType(fmt.Appendf(nil, "type-%d", i)).Inc()
	}
	all, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == "outbox_rows_relayed_total" && len(f.GetMetric()) == maxEventTypes+1 {
			return
		}
	}
	t.Errorf("outbox_rows_relayed_total does not have %d event types and other", maxEventTypes)
}

// sampled is a bridge's measures with one sample in each: a vector without one is not shown.
func sampled() *Metrics {
	m := NewMetrics("tidegate")
	for _, v := range []*prometheus.CounterVec{m.relayed, m.retries, m.lookupRows} {
		v.WithLabelValues("x")
	}
	m.reconnects.WithLabelValues("x", "x")
	m.slotStatus.WithLabelValues("x")
	return m
}

var described = regexp.MustCompile(`fqName: "([^"]+)"`)

// families gives the measures that are the bridge's own, and fails when one of them has no sample.
func families(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	m := sampled()
	all, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return foreign(f.GetName()) })
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		m.Registry.Describe(descriptions)
	}()
	for d := range descriptions {
		name := described.FindStringSubmatch(d.String())[1]
		known := slices.ContainsFunc(all, func(f *dto.MetricFamily) bool { return f.GetName() == name })
		if !known && !foreign(name) {
			t.Errorf("%s has no sample: give it one in sampled, so that it is documented", name)
		}
	}
	return all
}

// foreign names what the Go runtime and the process tell of themselves.
func foreign(name string) bool {
	return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
}

func labels(f *dto.MetricFamily) []string {
	var names []string
	for _, l := range f.GetMetric()[0].GetLabel() {
		names = append(names, l.GetName())
	}
	return names
}

const metricsHead = `<!-- Generated from internal/relay/metrics.go by "go generate ./internal/relay": do not edit. -->

# Metrics

` + "`tidegate run` serves them at `/metrics` of `http.listen`" + `. Times are in seconds, sizes in bytes, LSNs in bytes of WAL. Beside these there are
the usual ` + "`go_…` and `process_…`" + ` metrics of the runtime and the process.

| Name | Type | Labels | Meaning |
|---|---|---|---|
`

func metricsPage(families []*dto.MetricFamily) string {
	var b strings.Builder
	b.WriteString(metricsHead)
	for _, f := range families {
		names := labels(f)
		for i := range names {
			names[i] = "`" + names[i] + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(names, ", "),
			strings.ReplaceAll(f.GetHelp(), "|", `\|`))
	}
	return b.String()
}
