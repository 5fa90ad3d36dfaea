// Package testkit gives tests the real things: PostgreSQL clusters, NATS servers and the tidegate program, each as a
// process of its own that can be stopped, killed and started again. What a test starts is gone when the test ends; what
// is shared by a test binary is gone when that ends, also by a panic or a kill. A server that cannot be had fails the
// test: nothing here skips.
package testkit

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/leash"
)

const (
	pollInterval = 10 * time.Millisecond
	longestPoll  = 100 * time.Millisecond // many conditions ask a server by a new connection
	startTimeout = 60 * time.Second
	stopTimeout  = 30 * time.Second
	// shownLines is how much of a server's log a failed test shows.
	shownLines = 60
)

// Eventually waits until condition holds, and fails the test with the message when it does not within timeout.
func Eventually(t testing.TB, timeout time.Duration, condition func() bool, format string, args ...any) {
	t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for wait := pollInterval; !condition(); wait = min(wait*5/4, longestPoll) {
		select {
		case <-time.After(wait):
		case <-deadline.C:
			t.Fatalf("not within %v: %s", timeout, fmt.Sprintf(format, args...))
		}
	}
}

// Main runs a package's tests and then ends what they shared before it returns: for TestMain. Without it the shared
// servers end as well, but shortly after the test binary.
func Main(m *testing.M) {
	m.Run()
	shared.close()
}

// shared is what lives as long as the test binary.
var shared closers

type closers struct {
	mu  sync.Mutex
	all []func() error
}

func (c *closers) add(fn func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fn)
}

func (c *closers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fn := range c.all {
		if err := fn(); err != nil {
			fmt.Fprintln(os.Stderr, "testkit:", err)
		}
	}
	c.all = nil
}

// holdTemp makes a folder that is gone when this process is.
func holdTemp(pattern string) (*leash.Leash, error) {
	dir, err := os.MkdirTemp("", pattern)
	if err != nil {
		return nil, err
	}
	held, err := leash.Hold(dir)
	if err != nil {
		os.Remove(dir)
		return nil, err
	}
	return held, nil
}

// showOnFailure prints the end of a log when the test has failed.
func showOnFailure(t testing.TB, name string, log func() string) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", name, tail(log(), shownLines))
		}
	})
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
