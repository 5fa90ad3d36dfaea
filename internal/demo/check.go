package demo

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/oracle"
)

// compare reads both outbox tables and the whole stream. Every feature and order is one writer's own, so that insert
// order, and for features the version, is the commit order of each aggregate.
func compare(ctx context.Context, g *ground) (*Summary, error) {
	conn, err := g.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("compare outbox and stream: %w", err)
	}
	defer conn.Close(ctx)
	client, err := nats.Connect("", nats.InProcessServer(g.nats), nats.Name("tidegate demo check"))
	if err != nil {
		return nil, fmt.Errorf("compare outbox and stream: %w", err)
	}
	defer client.Close()
	js, err := jetstream.New(client)
	if err != nil {
		return nil, fmt.Errorf("compare outbox and stream: %w", err)
	}
	features := oracle.FeatureOutbox(source)
	features.OrderBy = "feature_version"
	r, err := oracle.Compare(ctx, conn, js, stream, oracle.Outbox(source), features)
	if err != nil {
		return nil, fmt.Errorf("compare outbox and stream: %w", err)
	}
	return &Summary{
		Committed: r.Committed, Published: r.Stored, Missing: r.Missing, Unexpected: r.Extra, Duplicates: r.Duplicate,
		OutOfOrder: r.OutOfOrder, Misplaced: r.Misplaced, Examples: r.Examples,
	}, nil
}
