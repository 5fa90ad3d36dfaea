package main

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/relay"
)

func newRunCmd(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Publish committed outbox rows until told to stop",
		Long: "Takes the replication slot and publishes what is committed to the outboxes. Publication, slot and streams are made where\n" +
			"that is allowed and nothing was there before. While another instance holds the slot, this one stands by, ready, and takes\n" +
			"over when it is free. SIGINT or SIGTERM ends it in order: what is in flight is acknowledged, written to the checkpoint\n" +
			"and confirmed to PostgreSQL. Metrics, liveness and readiness are served at http.listen.",
		Args: noArgs,
	}
	s.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, _, err := s.load(cmd)
		if err != nil {
			return err
		}
		limitMemory(cfg)
		return runBridge(cmd.Context(), cfg, newLogger(cmd.ErrOrStderr(), cfg.Log))
	}
	return cmd
}

// runBridge bridges as configured until ctx ends.
func runBridge(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	b, err := relay.New(cfg, log)
	if err != nil {
		return err
	}
	return b.Run(ctx)
}

// beside is what the process needs beside the budget, garbage included.
const beside = 48 << 20

// limitMemory makes the collector keep the heap near what the budget allows: by itself it would let garbage grow to
// the size of what is alive. GOMEMLIMIT, where it is set, is the operator's word.
func limitMemory(cfg *config.Config) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(cfg.Publish.MaxInFlightBytes + beside)
	}
}
