package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/oracle"
)

// compareTimeout is for streams of a million messages on a slow machine.
const compareTimeout = 2 * time.Minute

// comparison compares outboxes of a database with a stream.
type comparison struct {
	conn   *pgx.Conn
	js     jetstream.JetStream
	stream string
	tables []oracle.Table
}

// Compare compares outboxes of the database at url with the whole stream that they are published to.
func Compare(t testing.TB, url string, server *NATSServer, stream string, tables ...oracle.Table) *oracle.Report {
	t.Helper()
	return newComparison(t, url, server, stream, tables).run(t)
}

// AllStored waits until the stream holds every row that is committed now, then fails the test unless each is stored
// once, in its place, and nothing else is.
func AllStored(t testing.TB, timeout time.Duration, url string, server *NATSServer, stream string, tables ...oracle.Table) *oracle.Report {
	t.Helper()
	deadline := time.Now().Add(timeout)
	c := newComparison(t, url, server, stream, tables)
	report := c.run(t)
	Eventually(t, timeout+compareTimeout, func() bool {
		late := time.Now().After(deadline)
		if late || c.messages(t) >= report.Committed {
			report = c.run(t)
		}
		return late || report.Missing == 0
	}, "stream %s holds every row", stream)
	if !report.Clean() {
		t.Fatalf("stream %s after %v: %v", stream, timeout, report)
	}
	return report
}

func newComparison(t testing.TB, url string, server *NATSServer, stream string, tables []oracle.Table) *comparison {
	t.Helper()
	return &comparison{Connect(t, url), server.JetStream(t), stream, tables}
}

func (c *comparison) run(t testing.TB) *oracle.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), compareTimeout)
	defer cancel()
	report, err := oracle.Compare(ctx, c.conn, c.js, c.stream, c.tables...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// messages counts what the stream holds.
func (c *comparison) messages(t testing.TB) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, c.stream)
	if err != nil {
		t.Fatal(err)
	}
	return int(stream.CachedInfo().State.Msgs)
}
