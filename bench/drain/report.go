package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// report is everything that was measured.
type report struct {
	Time       string        `json:"time"`
	CPUs       int           `json:"cpus"`
	Go         string        `json:"go"`
	Postgres   string        `json:"postgres"`
	NATS       string        `json:"nats_server"`
	Rows       int           `json:"rows"`
	Payload    int           `json:"payload_bytes"`
	Aggregates int           `json:"aggregates"`
	Window     int           `json:"window"`
	Rounds     int           `json:"rounds"`
	Shapes     []shapeReport `json:"shapes"`
}

// shapeReport is what was measured with one shape of the backlog.
type shapeReport struct {
	Shape      string   `json:"shape"`
	Describe   string   `json:"describe"`
	Contenders []result `json:"contenders"`
	Ratios     []ratio  `json:"ratios"`
}

// result is one contender's turns, in the order of the rounds.
type result struct {
	Name   string    `json:"name"`
	Rounds []figures `json:"rounds"`
}

// ratio compares two contenders' speed, round by round: their turns in one round lie next to each other in time.
type ratio struct {
	Of     string  `json:"of"`
	To     string  `json:"to"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// add takes the results of one shape; the last two contenders are what the others are compared with.
func (r *report) add(s shape, results []result) {
	sr := shapeReport{Shape: s.name, Describe: s.describe, Contenders: results}
	bridges, references := results[:len(results)-2], results[len(results)-2:]
	for _, b := range bridges {
		for _, ref := range references {
			sr.Ratios = append(sr.Ratios, compare(b, ref))
		}
	}
	for _, b := range bridges[1:] {
		sr.Ratios = append(sr.Ratios, compare(b, bridges[0]))
	}
	r.Shapes = append(r.Shapes, sr)
}

func compare(of, to result) ratio {
	var values []float64
	for i := range of.Rounds {
		values = append(values, of.Rounds[i].RowsPerSec/to.Rounds[i].RowsPerSec)
	}
	q := ratio{Of: of.Name, To: to.Name}
	q.Min, q.Median, q.Max = spread(values)
	return q
}

// spread gives the ends and the middle of values.
func spread(values []float64) (least, median, most float64) {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return v[0], (v[(n-1)/2] + v[n/2]) / 2, v[n-1]
}

// column gives one figure of every round.
func (r result) column(of func(figures) float64) (values []float64) {
	for _, f := range r.Rounds {
		values = append(values, of(f))
	}
	return values
}

func (r *report) writeJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// writeText prints the tables. CPU and memory are medians over the rounds; "-" is not measured.
func (r *report) writeText(out io.Writer) error {
	fmt.Fprintf(out, "%d rows of %d bytes of JSON, %d aggregates, %d messages in flight, %d rounds, contenders in turn; %s\n",
		r.Rows, r.Payload, r.Aggregates, r.Window, r.Rounds, r.Time)
	fmt.Fprintf(out, "PostgreSQL %s (fsync off), nats-server %s (file store, default sync_interval), %s, %d CPUs for everything\n",
		r.Postgres, r.NATS, r.Go, r.CPUs)
	for _, s := range r.Shapes {
		fmt.Fprintf(out, "\n%s: %s\n", s.Shape, s.Describe)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "\trows/s min\tmedian\tmax\tCPU s\tpeak MiB\tnats-server CPU s\twalsender CPU s\t")
		for _, c := range s.Contenders {
			c.writeRow(w)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for _, q := range s.Ratios {
			fmt.Fprintf(out, "  %s / %s: %.2f (%.2f to %.2f)\n", q.Of, q.To, q.Median, q.Min, q.Max)
		}
	}
	return nil
}

func (r result) writeRow(w io.Writer) {
	least, median, most := spread(r.column(func(f figures) float64 { return f.RowsPerSec }))
	fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f", r.Name, least, median, most)
	for _, of := range []struct {
		format string
		value  func(figures) float64
	}{
		{"%.2f", func(f figures) float64 { return f.CPU }},
		{"%.0f", func(f figures) float64 { return float64(f.PeakBytes) / (1 << 20) }},
		{"%.2f", func(f figures) float64 { return f.NATSCPU }},
		{"%.2f", func(f figures) float64 { return f.WalsenderCPU }},
	} {
		_, median, _ := spread(r.column(of.value))
		if median == 0 {
			fmt.Fprint(w, "\t-")
			continue
		}
		fmt.Fprintf(w, "\t"+of.format, median)
	}
	fmt.Fprintln(w, "\t")
}
