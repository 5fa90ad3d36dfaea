package relay

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func valueOf(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		t.Fatal(err)
	}
	return d.GetCounter().GetValue()
}

func TestCountersAddWhatEverySessionCounts(t *testing.T) {
	m := NewMetrics("s")
	for _, n := range []uint64{3, 5} { // the second session counts to more than the first before anybody looks
		m.newSession()
		m.statuses.set(n)
		m.statuses.set(n + 1)
		m.retried(map[string]uint64{"timeout": n})
	}
	if got := valueOf(t, m.statuses); got != 10 {
		t.Errorf("%v statuses, want 10", got)
	}
	if got := valueOf(t, m.retries.WithLabelValues("timeout")); got != 8 {
		t.Errorf("%v retries, want 8", got)
	}
}
