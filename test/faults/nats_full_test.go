package faults_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/scene"
)

// fullFaults are those of a JetStream that takes no more.
func fullFaults() []fault {
	disk := &smallDisk{}
	return []fault{
		{
			name: "stream full", does: "max_msgs or max_bytes is reached with discard new, and raised after the outage",
			short: 1, inflict: fillStream, check: ready,
		},
		{
			name: "max_file_store reached", does: "the server may store half a megabyte more than it has, and is restarted with a larger limit after the outage",
			inflict: fillServer, check: ready,
		},
		{
			name: "JetStream's disk full", does: "the filesystem under JetStream is full: nats-server then answers nothing, and refuses to write until it is restarted even when there is room again; " +
				"after the outage the filesystem is made larger and the server restarted",
			scene: disk.under, inflict: disk.fill, check: ready,
		},
	}
}

const unlimited = -1

func fillStream(tr *trial) {
	stream, err := tr.JS.Stream(tr.Context(), scene.Stream)
	if err != nil {
		tr.Fatal(err)
	}
	config, state := stream.CachedInfo().Config, stream.CachedInfo().State
	config.Discard = jetstream.DiscardNew
	if tr.round%2 == 1 {
		config.MaxMsgs = int64(state.Msgs) + 200
	} else {
		config.MaxBytes = int64(state.Bytes) + 100_000
	}
	refused := tr.bridge.Metric(tr, "tidegate_publish_retries_total", `reason="stream_full"`)
	tr.update(config)
	testkit.Eventually(tr, 30*time.Second, func() bool {
		return tr.bridge.Metric(tr, "tidegate_publish_retries_total", `reason="stream_full"`) > refused
	}, "the stream is full")
	before, _ := tr.Stored()
	tr.away()
	if after, ok := tr.Stored(); !ok || after > before+5 { // messages of unequal size may still fit
		tr.Errorf("round %d: the full stream took %d messages", tr.round, after-before)
	}
	config.MaxMsgs, config.MaxBytes = unlimited, unlimited
	tr.update(config)
}

func (tr *trial) update(config jetstream.StreamConfig) {
	tr.Helper()
	if _, err := tr.JS.UpdateStream(tr.Context(), config); err != nil {
		tr.Fatal(err)
	}
}

// used is what JetStream has stored, in bytes.
func (tr *trial) used() uint64 {
	tr.Helper()
	account, err := tr.JS.AccountInfo(tr.Context())
	if err != nil {
		tr.Fatal(err)
	}
	return account.Store
}

func fillServer(tr *trial) {
	refused := strings.Count(tr.NATS.Log(), limitReached)
	tr.NATS.Reconfigure(tr, testkit.NATSMaxFileStore(fmt.Sprint(tr.used()+512<<10)))
	testkit.Eventually(tr, 30*time.Second, func() bool {
		return strings.Count(tr.NATS.Log(), limitReached) > refused
	}, "the server's limit is reached")
	tr.away()
	tr.NATS.Reconfigure(tr, testkit.NATSMaxFileStore("8GB"))
}

// What nats-server logs.
const (
	limitReached = "resource limits exceeded"
	diskFull     = "no space left on device"
)

// smallDisk is the filesystem under JetStream.
type smallDisk struct {
	*testkit.SmallDisk
	size int
}

const room = 256 << 20

func (d *smallDisk) under(t *testing.T, o *scene.Options) func(*trial) {
	t.Helper()
	d.size = room
	d.SmallDisk = testkit.NewSmallDisk(t, d.size)
	o.NATS = append(o.NATS, testkit.NATSStore(d.Dir))
	return nil
}

func (d *smallDisk) fill(tr *trial) {
	refused := strings.Count(tr.NATS.Log(), diskFull)
	d.resize(tr, d.size-int(d.Free(tr))+512<<10)
	testkit.Eventually(tr, 30*time.Second, func() bool {
		return strings.Count(tr.NATS.Log(), diskFull) > refused
	}, "the disk is full")
	tr.away()
	d.resize(tr, room)
	tr.NATS.Restart(tr)
}

func (d *smallDisk) resize(tr *trial, bytes int) {
	tr.Helper()
	d.Resize(tr, bytes)
	d.size = bytes
}
