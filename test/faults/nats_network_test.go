package faults_test

import (
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/scene"
)

// networkFaults are those of the ways between the bridge and its two servers.
func networkFaults() []fault {
	cut, halfOpen, forGood, slow, narrow := &ways{}, &ways{}, &ways{}, &ways{}, &ways{}
	return []fault{
		{
			name: "connections cut", does: "all connections of a side, or of both, are reset or closed, several times in a row, or refused for as long as the outage",
			short: 2, often: true, scene: cut.between, inflict: cut.cut,
		},
		{
			name: "connections half-open", does: "a side, or both, is silent for the outage, old connections and new; then the old ones are reset",
			short: 1, scene: halfOpen.between, inflict: halfOpen.silence,
		},
		{
			name: "connections half-open for good", does: "a side's connections are silent from now on and never reset, new ones work: the bridge finds out by itself, which ends the fault",
			scene: forGood.withImpatientServer, inflict: forGood.abandon,
		},
		{
			name: "2 s latency", does: "everything takes 2 s longer in each direction, on a side or on both, for three outages",
			scene: slow.between, inflict: func(tr *trial) { slow.hamper(tr, 2*time.Second, 0) },
		},
		{
			name: "100 kB/s", does: "each connection passes 100 kB a second, less than is written, on a side or on both, for three outages; what has piled up is caught up with",
			rate: 3 * defaultRate, scene: narrow.between, inflict: func(tr *trial) { narrow.hamper(tr, 0, 100_000) },
		},
	}
}

// ways are the proxies in front of both servers.
type ways struct{ postgres, nats *testkit.Proxy }

func (w *ways) between(t *testing.T, o *scene.Options) func(*trial) {
	t.Helper()
	o.Through = func(pg, nats string) (string, string) {
		w.postgres, pg = testkit.ProxyURL(t, pg)
		w.nats, nats = testkit.ProxyURL(t, nats)
		return pg, nats
	}
	return nil
}

// withImpatientServer lets PostgreSQL free the slot before the bridge asks for it again.
func (w *ways) withImpatientServer(t *testing.T, o *scene.Options) func(*trial) {
	t.Helper()
	impatientServer(t, o)
	return w.between(t, o)
}

// some gives the one side, the other or both.
func (w *ways) some(tr *trial) []*testkit.Proxy {
	all := []*testkit.Proxy{w.postgres, w.nats}
	switch n := tr.random.IntN(3); n {
	case 0, 1:
		return all[n : n+1]
	}
	return all
}

func (w *ways) cut(tr *trial) {
	sides := w.some(tr)
	if tr.random.IntN(2) == 0 {
		each(sides, (*testkit.Proxy).Refuse)
		tr.away()
		each(sides, (*testkit.Proxy).Heal)
		return
	}
	for range 1 + tr.random.IntN(5) {
		each(sides, []func(*testkit.Proxy){(*testkit.Proxy).Cut, (*testkit.Proxy).Close}[tr.random.IntN(2)])
		tr.wait(time.Duration(tr.random.Int64N(int64(500 * time.Millisecond))))
	}
}

func (w *ways) silence(tr *trial) {
	sides := w.some(tr)
	each(sides, (*testkit.Proxy).Swallow)
	tr.away()
	each(sides, (*testkit.Proxy).Cut)
}

// noticeLimit is twice the bridge's patience with a silent PostgreSQL.
const noticeLimit = time.Minute

// abandon ends when the bridge has found out. What a side's connections carried then is lost with them.
func (w *ways) abandon(tr *trial) {
	side, name := w.postgres, "postgres"
	if tr.round%2 == 0 {
		side, name = w.nats, "nats"
	}
	before := tr.bridge.Metric(tr, "tidegate_reconnects_total")
	began := time.Now()
	side.Swallow()
	side.Heal()
	testkit.Eventually(tr, noticeLimit, func() bool {
		return tr.bridge.Metric(tr, "tidegate_reconnects_total") > before
	}, "the bridge notices that %s is silent", name)
	tr.Logf("round %d: %s was found to be silent after %s", tr.round, name, time.Since(began).Round(time.Millisecond))
}

func (w *ways) hamper(tr *trial, latency time.Duration, bytesPerSecond int) {
	sides := w.some(tr)
	each(sides, func(p *testkit.Proxy) { p.Slow(latency, bytesPerSecond) })
	before, _ := tr.Stored()
	tr.wait(3 * tr.outage)
	if after, _ := tr.Stored(); after == before {
		tr.Errorf("round %d: nothing was stored on a slow way", tr.round)
	}
	each(sides, func(p *testkit.Proxy) { p.Slow(0, 0) })
}

func each(sides []*testkit.Proxy, do func(*testkit.Proxy)) {
	for _, p := range sides {
		do(p)
	}
}
