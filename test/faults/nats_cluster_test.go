package faults_test

import (
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/internal/testkit/scene"
)

// clusterFaults are those of three nats-servers with three copies of the stream and of the checkpoint.
func clusterFaults() []fault {
	killed, isolated, follower, rolled, restarted := &three{}, &three{}, &three{}, &three{}, &three{}
	return []fault{
		{
			name: "R3: leader killed", does: "kill -9 of the server that leads the stream, which is started after the outage; the other two go on meanwhile",
			scene: killed.everywhere, compare: killed.compare, inflict: killed.killLeader,
		},
		{
			name: "R3: leader isolated", does: "the server that leads the stream is cut off from the other two for 8 s, while the bridge stays connected to it",
			scene: isolated.atHome, compare: isolated.compare, inflict: isolated.isolateLeader,
		},
		{
			name: "R3: follower isolated", does: "a server that leads neither the stream nor the checkpoint is cut off for 8 s; the bridge, connected to the leader, goes on meanwhile",
			scene: follower.atHome, compare: follower.compare, inflict: follower.isolateFollower,
		},
		{
			name: "R3: restarted one by one", does: "each server is stopped in order and started, the next when all copies are current again",
			scene: rolled.everywhere, compare: rolled.compare, inflict: rolled.restartEach,
		},
		{
			name: "R3: all restarted", does: "all three servers are killed, and started after the outage; the fault ends when they have elected leaders, which takes them some seconds",
			scene: restarted.everywhere, compare: restarted.compare, inflict: restarted.restartAll,
		},
	}
}

// three is a cluster of nats-servers of one fault.
type three struct{ *testkit.NATSCluster }

const replicatedConfig = `
source: {name: app}
postgres: {url: "{{.PG}}"}
streams: [{name: OUTBOX, duplicate_window: 2s, replicas: 3}]
outboxes: [{table: public.outbox, kind: event, stream: OUTBOX}]
nats: {url: "{{.NATS}}"}
`

// home is the server that a bridge keeps to that knows no other.
const home = 0

// checkpoint is the stream under the bucket that holds it.
const checkpoint = "KV_tidegate"

// isolation is longer than the stream's duplicate window, and than a leader needs to give up.
const isolation = 8 * time.Second

// everywhere gives the bridge all servers.
func (c *three) everywhere(t *testing.T, o *scene.Options) func(*trial) {
	t.Helper()
	c.NATSCluster = testkit.StartNATSCluster(t)
	o.NATSURL, o.JS, o.Config = c.URL(), c.JetStream(t), replicatedConfig
	return nil
}

// atHome gives the bridge one server, so that it is known where it is connected.
func (c *three) atHome(t *testing.T, o *scene.Options) func(*trial) {
	t.Helper()
	c.everywhere(t, o)
	o.NATSURL, o.JS = c.Servers[home].URL(), c.Servers[home].JetStream(t)
	return nil
}

// whole waits until no copy lags behind: one fault at a time.
func (c *three) whole(tr *trial) {
	tr.Helper()
	c.InSync(tr, tr.JS, scene.Stream, time.Minute)
	c.InSync(tr, tr.JS, checkpoint, time.Minute)
}

func (c *three) killLeader(tr *trial) {
	c.whole(tr)
	leader := c.Leader(tr, tr.JS, scene.Stream)
	c.Servers[leader].Kill9(tr)
	tr.AwaitStored(tr, 50) // by the other two
	tr.away()
	c.Servers[leader].Start(tr)
}

func (c *three) isolateLeader(tr *trial) {
	c.whole(tr)
	c.Lead(tr, tr.JS, scene.Stream, home)
	tr.AwaitStored(tr, 50)
	c.Isolate(home)
	tr.wait(isolation)
	c.Rejoin(home)
}

func (c *three) isolateFollower(tr *trial) {
	c.whole(tr)
	c.Lead(tr, tr.JS, scene.Stream, home)
	c.Lead(tr, tr.JS, checkpoint, home) // or that needs an election first
	tr.AwaitStored(tr, 50)
	follower := 1 + tr.random.IntN(2)
	before, _ := tr.Stored()
	c.Isolate(follower)
	tr.wait(isolation)
	c.Rejoin(follower)
	if after, ok := tr.Stored(); ok && after < before+50 {
		tr.Errorf("round %d: %d messages were stored while a follower was away", tr.round, after-before)
	}
}

func (c *three) restartEach(tr *trial) {
	for _, server := range c.Servers {
		c.whole(tr)
		server.Restart(tr)
	}
}

func (c *three) restartAll(tr *trial) {
	c.whole(tr)
	for _, server := range c.Servers {
		server.Kill9(tr)
	}
	tr.away()
	for _, server := range c.Servers {
		server.Start(tr)
	}
	c.Leader(tr, tr.JS, scene.Stream)
	c.Leader(tr, tr.JS, checkpoint)
}

// compare reads the stream once no election is under way.
func (c *three) compare(tr *trial) *oracle.Report {
	c.whole(tr)
	return tr.Compare(tr)
}
