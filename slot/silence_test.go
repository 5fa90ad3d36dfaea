package slot

import (
	"errors"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// TestHalfOpenConnectionIsNoticed freezes the way to a server that never gives up on a client by itself.
func TestHalfOpenConnectionIsNoticed(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	proxy, through := testkit.ProxyURL(t, withSetting(t, c, "wal_sender_timeout=0").ReplicationURL)
	c.ReplicationURL = through
	k := &taker{confirms: true}
	k.stream = startStream(t, c)
	k.stream.clock.limit = 400 * time.Millisecond
	r := launch(t, k.stream, k)
	insert(t, c, "one")
	awaitRows(t, k, 1)
	proxy.Swallow()
	if err := r.ended(t); !errors.Is(err, ErrSilent) || !Transient(err) {
		t.Fatalf("Run: %v", err)
	}
}

func TestQuietServerThatAnswersIsNotSilent(t *testing.T) {
	c := withSetting(t, newSlot(t, testkit.SharedPostgres(t)), "wal_sender_timeout=0")
	k := &taker{}
	k.stream = startStream(t, c)
	k.stream.clock.limit = 100 * time.Millisecond
	r := launch(t, k.stream, k)
	testkit.Eventually(t, patience, func() bool { return r.Progress().Statuses >= 20 }, "the server is asked and answers")
	insert(t, c, "one")
	awaitRows(t, k, 1)
	r.stop(t)
}

// TestDecodingWalsenderMayBeSilent lets the server decode a transaction of which nothing is sent.
func TestDecodingWalsenderMayBeSilent(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	s := startStream(t, c)
	testkit.Eventually(t, patience, func() bool { return !s.busy(t.Context()) }, "a walsender that waits for WAL is not taken for busy")
	decoding := make(chan struct{})
	go func() {
		defer close(decoding)
		testkit.Exec(t, c.URL, `CREATE TABLE noise AS SELECT i FROM generate_series(1, 1000000) i`)
	}()
	testkit.Eventually(t, patience, func() bool { return s.busy(t.Context()) }, "a walsender that decodes is taken for busy")
	<-decoding
}
