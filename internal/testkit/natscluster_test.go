package testkit_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// replicated makes a cluster and a stream with three copies.
func replicated(t *testing.T) (*testkit.NATSCluster, jetstream.JetStream) {
	t.Helper()
	c := testkit.StartNATSCluster(t)
	js := c.JetStream(t)
	config := jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Replicas: 3}
	testkit.Eventually(t, 30*time.Second, func() bool {
		_, err := js.CreateOrUpdateStream(t.Context(), config)
		return err == nil
	}, "the stream is made")
	return c, js
}

// publish reports whether a message is stored within a moment.
func publish(js jetstream.JetStream) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := js.Publish(ctx, "s.a", nil, jetstream.WithRetryAttempts(0))
	return err == nil
}

func TestIsolatedLeaderKeepsItsClientsAndStoresNothing(t *testing.T) {
	c, js := replicated(t)
	c.Lead(t, js, "S", 1)
	theirs := c.Servers[1].JetStream(t)
	if !publish(theirs) {
		t.Fatal("nothing can be published")
	}
	c.Isolate(1)
	if publish(theirs) {
		t.Error("the isolated leader has acknowledged a message")
	}
	if !theirs.Conn().IsConnected() {
		t.Error("the isolated leader has lost its client")
	}
	others := c.Servers[0].JetStream(t)
	testkit.Eventually(t, 30*time.Second, func() bool { return publish(others) }, "the other two have another leader")
	c.Rejoin(1)
	testkit.Eventually(t, 30*time.Second, func() bool { return publish(theirs) }, "the server is let in again")
	c.InSync(t, js, "S", 30*time.Second)
}

func TestClusterOutlivesItsKilledLeader(t *testing.T) {
	c, js := replicated(t)
	killed := c.Leader(t, js, "S")
	c.Servers[killed].Kill9(t)
	testkit.Eventually(t, 30*time.Second, func() bool { return publish(js) }, "another server leads")
	if now := c.Leader(t, js, "S"); now == killed {
		t.Error("the killed server leads")
	}
	c.Servers[killed].Start(t)
	c.InSync(t, js, "S", 30*time.Second)
}
