package relay

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tidegate-cdc/tidegate/internal/parking"
)

// maxEventTypes bounds the label event_type: an application that puts ids there must not fill the metrics' store.
const maxEventTypes = 200

// Metrics are the bridge's own measures, in one registry.
type Metrics struct {
	Registry *prometheus.Registry

	relayed     *prometheus.CounterVec
	eventTypes  map[string]prometheus.Counter
	lastType    string
	lastCounter prometheus.Counter
	retryCounts map[string]*follower
	confirmed   prometheus.Gauge
	received    prometheus.Gauge
	active      prometheus.Gauge
	inFlight    prometheus.Gauge
	inFlightB   prometheus.Gauge
	publish     prometheus.Histogram
	commitToAck prometheus.Histogram
	retries     *prometheus.CounterVec
	duplicates  prometheus.Counter
	skipped     prometheus.Counter
	checkpoint  atomic.Int64 // when the checkpoint was last written, in Unix nanoseconds
	lookup      prometheus.Histogram
	lookupRows  *prometheus.CounterVec
	reconnects  *prometheus.CounterVec
	statuses    *follower

	parkedRows   prometheus.Gauge
	parkedOldest atomic.Int64 // when the oldest was parked, in Unix nanoseconds; 0: none is

	slotRetained    prometheus.Gauge
	slotUnconfirmed prometheus.Gauge
	slotSafe        prometheus.Gauge
	slotActive      prometheus.Gauge
	slotStatus      *prometheus.GaugeVec
}

// fastBuckets suit what takes between a tenth of a millisecond and minutes.
var fastBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// NewMetrics makes the measures of one bridge and registers them. Every slot measure has the label slot.
func NewMetrics(slot string) *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry(), eventTypes: map[string]prometheus.Counter{}, retryCounts: map[string]*follower{}}
	f := factory{m.Registry, prometheus.Labels{"slot": slot}}

	m.relayed = f.counterVec("outbox_rows_relayed_total", "Outbox rows stored in JetStream, by event type (200 types at most, then \"other\").", "event_type")
	m.confirmed = f.slotGauge("tidegate_confirmed_lsn", "LSN confirmed to PostgreSQL, in bytes of WAL.")
	m.received = f.slotGauge("tidegate_received_lsn", "LSN received from PostgreSQL, in bytes of WAL.")
	m.active = f.gauge("tidegate_active", "1 while this instance holds the slot, 0 while it is a standby.")
	m.inFlight = f.gauge("tidegate_in_flight_events", "Rows received and not yet covered by everything before them being stored.")
	m.inFlightB = f.gauge("tidegate_in_flight_bytes", "Memory held by those rows.")
	m.publish = f.histogram("tidegate_publish_seconds", "From sending a message to its PubAck.")
	m.commitToAck = f.histogram("tidegate_commit_to_ack_seconds", "From the commit in PostgreSQL to the PubAck (two clocks).")
	m.retries = f.counterVec("tidegate_publish_retries_total", "Messages that have to be sent again, by reason.", "reason")
	m.duplicates = f.counter("tidegate_publish_duplicates_total", "Messages that the stream already had.")
	m.skipped = f.counter("tidegate_skipped_stored_total", "Rows that came again from the slot and were known to be stored.")
	f.gaugeFunc("tidegate_checkpoint_age_seconds", "Since the checkpoint was last written; 0 before the first.", m.checkpointAge)
	m.lookup = f.histogram("tidegate_lookup_seconds", "One batch of geometry look-ups.")
	m.lookupRows = f.counterVec("tidegate_lookup_rows_total", "Looked-up rows, by geometry status.", "status")
	m.parkedRows = f.gauge("tidegate_parked_rows", "Rows that are parked, or wait behind one that is.")
	f.gaugeFunc("tidegate_parked_oldest_age_seconds", "Since the oldest of these was parked; 0 when there is none.", m.parkedAge)
	m.reconnects = f.counterVec("tidegate_reconnects_total", "Lost connections, by side (postgres, nats) and reason.", "side", "reason")
	m.statuses = f.follower("tidegate_status_updates_total", "Standby status updates sent to PostgreSQL.")

	m.slotRetained = f.slotGauge("tidegate_slot_retained_bytes", "WAL that the slot holds back: current position less restart_lsn.")
	m.slotUnconfirmed = f.slotGauge("tidegate_slot_unconfirmed_bytes", "WAL not yet confirmed: current position less confirmed_flush_lsn.")
	m.slotSafe = f.slotGauge("tidegate_slot_safe_bytes", "WAL that may still be written before the slot is lost; +Inf without a limit.")
	m.slotActive = f.slotGauge("tidegate_slot_active", "1 while a walsender serves the slot.")
	m.slotStatus = f.slotGaugeVec("tidegate_slot_wal_status", "1 for the slot's present wal_status.", "status")

	f.buildInfo()
	m.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// eventType gives the counter of an event type without building labels each time. One goroutine only.
func (m *Metrics) eventType(name []byte) prometheus.Counter {
	if m.lastCounter != nil && string(name) == m.lastType { // most rows are like the one before
		return m.lastCounter
	}
	c := m.findEventType(name)
	m.lastType, m.lastCounter = string(name), c
	return c
}

func (m *Metrics) findEventType(name []byte) prometheus.Counter {
	if c, ok := m.eventTypes[string(name)]; ok {
		return c
	}
	t := strings.ToValidUTF8(string(name), "\uFFFD")
	if len(m.eventTypes) >= maxEventTypes {
		return m.relayed.WithLabelValues("other")
	}
	c := m.relayed.WithLabelValues(t)
	m.eventTypes[t] = c
	return c
}

// newSession begins the counts that begin again with each session. The owner of the loop calls it.
func (m *Metrics) newSession() {
	m.statuses.last = 0
	for _, f := range m.retryCounts {
		f.last = 0
	}
}

// retried brings the counters of retries up to what the lanes have counted in this session.
func (m *Metrics) retried(counts map[string]uint64) {
	for reason, n := range counts {
		f := m.retryCounts[reason]
		if f == nil {
			f = &follower{Counter: m.retries.WithLabelValues(reason)}
			m.retryCounts[reason] = f
		}
		f.set(n)
	}
}

// follower is a counter that follows a count kept elsewhere, which begins at zero with each session.
type follower struct {
	prometheus.Counter
	last uint64
}

func (f *follower) set(n uint64) {
	f.Add(float64(n - f.last))
	f.last = n
}

func (m *Metrics) checkpointAge() float64 { return since(&m.checkpoint) }

func (m *Metrics) parkedAge() float64 { return since(&m.parkedOldest) }

// since gives the seconds since a time in Unix nanoseconds, 0 when there is none.
func since(at *atomic.Int64) float64 {
	if at.Load() == 0 {
		return 0
	}
	return time.Since(time.Unix(0, at.Load())).Seconds()
}

// parked shows what is parked.
func (m *Metrics) parked(s parking.Stats) {
	m.parkedRows.Set(float64(s.Rows))
	m.parkedOldest.Store(0)
	if !s.Oldest.IsZero() {
		m.parkedOldest.Store(s.Oldest.UnixNano())
	}
}

// factory registers measures as it makes them.
type factory struct {
	registry *prometheus.Registry
	slot     prometheus.Labels
}

func (f factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	f.registry.MustRegister(c)
	return c
}

func (f factory) follower(name, help string) *follower {
	return &follower{Counter: f.counter(name, help)}
}

func (f factory) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.registry.MustRegister(c)
	return c
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	f.registry.MustRegister(g)
	return g
}

func (f factory) gaugeFunc(name, help string, value func() float64) {
	f.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

func (f factory) slotGauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: f.slot})
	f.registry.MustRegister(g)
	return g
}

func (f factory) slotGaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: f.slot}, labels)
	f.registry.MustRegister(g)
	return g
}

func (f factory) histogram(name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: fastBuckets})
	f.registry.MustRegister(h)
	return h
}

// buildInfo publishes what this binary was built from.
func (f factory) buildInfo() {
	version, commit := "(devel)", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tidegate_build_info", Help: "1, with what the binary was built from.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit, "go": runtime.Version()},
	})
	g.Set(1)
	f.registry.MustRegister(g)
}
