package testkit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// URL is the address of a page of the process's HTTP server: URL("/metrics").
func (p *Process) URL(path string) string { return "http://" + p.http + path }

// WaitReady waits until /readyz answers 200. It fails the test after timeout, and at once when the process ends.
func (p *Process) WaitReady(t testing.TB, timeout time.Duration) {
	t.Helper()
	Eventually(t, timeout, func() bool {
		if !p.Running() {
			t.Fatalf("%s ended before it was ready", p.name)
		}
		status, _, err := p.get("/readyz")
		return err == nil && status == http.StatusOK
	}, "%s is ready", p.name)
}

// Get gives a page's status and text. It fails the test when there is no answer.
func (p *Process) Get(t testing.TB, path string) (status int, text string) {
	t.Helper()
	status, text, err := p.get(path)
	if err != nil {
		t.Fatal(err)
	}
	return status, text
}

func (p *Process) get(path string) (status int, text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL(path), nil)
	if err != nil {
		return 0, "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// Metric gives the sum of a metric's samples that have all the labels, each written as in the exposition:
// Metric(t, "tidegate_reconnects_total", `side="nats"`). A metric without a sample is 0.
func (p *Process) Metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	_, text := p.Get(t, "/metrics")
	sum, err := sumSamples(text, name, labels)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func sumSamples(exposition, name string, labels []string) (float64, error) {
	sum := 0.0
	lines := bufio.NewScanner(strings.NewReader(exposition))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || (rest[0] != '{' && rest[0] != ' ') {
			continue
		}
		set, value := rest[:strings.LastIndexByte(rest, ' ')], rest[strings.LastIndexByte(rest, ' ')+1:]
		if slices.ContainsFunc(labels, func(label string) bool { return !hasLabel(set, label) }) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("read metric %q: %w", lines.Text(), err)
		}
		sum += number
	}
	return sum, lines.Err()
}

// hasLabel reports whether a label set, braces included, has the label.
func hasLabel(set, label string) bool {
	return strings.Contains(set, "{"+label) || strings.Contains(set, ","+label)
}

// PeakMemory is the most memory that the running process has had resident, in bytes. Linux only.
func (p *Process) PeakMemory(t testing.TB) int64 {
	t.Helper()
	peak, err := PeakMemoryOf(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	return peak
}

// PeakMemoryOf is the most memory that a running process has had resident, in bytes. Linux only.
func PeakMemoryOf(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); !ok || err != nil {
		return 0, fmt.Errorf("read the peak memory of process %d: it has no VmHWM", pid)
	}
	return kib << 10, nil
}
