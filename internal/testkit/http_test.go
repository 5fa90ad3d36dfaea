package testkit

import "testing"

func TestMetricSumsTheSamplesThatHaveTheLabels(t *testing.T) {
	const exposition = `# HELP a_total help
# TYPE a_total counter
a_total{side="nats",reason="x"} 2
a_total{side="postgres",reason="x"} 3
a_total_more 100
b 1e+06
`
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"a_total", nil, 5},
		{"a_total", []string{`side="nats"`}, 2},
		{"a_total", []string{`side="nats"`, `reason="x"`}, 2},
		{"a_total", []string{`reason="y"`}, 0},
		{"b", nil, 1e6},
		{"c", nil, 0},
	} {
		got, err := sumSamples(exposition, c.name, c.labels)
		if err != nil || got != c.want {
			t.Errorf("%s %v: %v, %v, want %v", c.name, c.labels, got, err, c.want)
		}
	}
}
