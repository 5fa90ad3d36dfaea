package testkit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
)

// clusterSize is the fewest servers of which one can be spared.
const clusterSize = 3

// NATSCluster is three nats-servers with one JetStream. Each connects to each other through a proxy of its own, and
// knows no other way, so that any of them can be cut off while its clients stay. Its methods are for the test's
// goroutine.
type NATSCluster struct {
	Servers [clusterSize]*NATSServer
	routes  [clusterSize][clusterSize]*Proxy // from, to
}

// StartNATSCluster starts the servers and waits until they can make a stream.
func StartNATSCluster(t testing.TB, options ...NATSOption) *NATSCluster {
	t.Helper()
	c := &NATSCluster{}
	var ports [clusterSize]int
	for i := range ports {
		port, err := pgcluster.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = port
	}
	for from := range clusterSize {
		for to, port := range ports {
			if from != to {
				c.routes[from][to] = NewProxy(t, fmt.Sprintf("127.0.0.1:%d", port))
			}
		}
	}
	for i := range c.Servers {
		own := []NATSOption{natsName(serverName(i)), NATSConf(c.clusterConf(i, ports[i]))}
		c.Servers[i] = NATS(t, append(own, options...)...)
	}
	Eventually(t, startTimeout, func() bool { return c.answers() }, "the cluster has a leader")
	return c
}

func serverName(i int) string { return fmt.Sprintf("n%d", i) }

func natsName(name string) NATSOption { return func(o *natsOptions) { o.name = name } }

// clusterConf advertises an address that nobody answers at, so that servers do not find each other past the proxies.
func (c *NATSCluster) clusterConf(i, port int) string {
	var routes []string
	for _, p := range c.routes[i] {
		if p != nil {
			routes = append(routes, fmt.Sprintf("\"nats-route://%s\"", p.Address()))
		}
	}
	return fmt.Sprintf("cluster { name: testkit, listen: \"127.0.0.1:%d\", advertise: \"127.0.0.1:1\", no_advertise: true, routes: [%s] }\n",
		port, strings.Join(routes, ", "))
}

// answers reports whether JetStream's API answers, which takes a leader of the cluster.
func (c *NATSCluster) answers() bool {
	conn, err := nats.Connect(c.URL())
	if err != nil {
		return false
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = js.AccountInfo(ctx)
	return err == nil
}

// URL names all the servers.
func (c *NATSCluster) URL() string {
	var urls []string
	for _, s := range c.Servers {
		urls = append(urls, s.URL())
	}
	return strings.Join(urls, ",")
}

// JetStream connects to whichever server is there, until the test ends.
func (c *NATSCluster) JetStream(t testing.TB) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(c.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.Timeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Leader gives the number of the server that leads a stream's group, once there is one.
func (c *NATSCluster) Leader(t testing.TB, js jetstream.JetStream, stream string) int {
	t.Helper()
	leader := -1
	Eventually(t, startTimeout, func() bool {
		leader = c.leader(js, stream)
		return leader >= 0
	}, "stream %s has a leader", stream)
	return leader
}

func (c *NATSCluster) leader(js jetstream.JetStream, stream string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().Cluster == nil {
		return -1
	}
	for i := range c.Servers {
		if s.CachedInfo().Cluster.Leader == serverName(i) {
			return i
		}
	}
	return -1
}

// Lead makes a server the leader of a stream's group.
func (c *NATSCluster) Lead(t testing.TB, js jetstream.JetStream, stream string, server int) {
	t.Helper()
	ask := fmt.Sprintf(`{"placement":{"preferred":%q}}`, serverName(server))
	Eventually(t, startTimeout, func() bool {
		switch c.leader(js, stream) {
		case server:
			return true
		case -1:
		default:
			_, _ = js.Conn().Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, []byte(ask), 2*time.Second)
		}
		return false
	}, "%s leads stream %s", serverName(server), stream)
}

// Isolate cuts a server off from the others; its clients stay. What is on the way is lost without a word.
func (c *NATSCluster) Isolate(server int) { c.eachRoute(server, (*Proxy).Swallow) }

// Rejoin ends Isolate. The routes that were cut are reset, as they are once either side has noticed.
func (c *NATSCluster) Rejoin(server int) { c.eachRoute(server, (*Proxy).Cut) }

func (c *NATSCluster) eachRoute(server int, do func(*Proxy)) {
	for other := range c.Servers {
		if other != server {
			do(c.routes[server][other])
			do(c.routes[other][server])
		}
	}
}

// InSync waits until every copy of a stream is there and has all that the leader has.
func (c *NATSCluster) InSync(t testing.TB, js jetstream.JetStream, stream string, timeout time.Duration) {
	t.Helper()
	Eventually(t, timeout, func() bool { return inSync(js, stream) }, "all copies of stream %s are current", stream)
}

func inSync(js jetstream.JetStream, stream string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().Cluster == nil || len(s.CachedInfo().Cluster.Replicas) != clusterSize-1 {
		return false
	}
	for _, r := range s.CachedInfo().Cluster.Replicas {
		if r.Offline || !r.Current {
			return false
		}
	}
	return true
}
