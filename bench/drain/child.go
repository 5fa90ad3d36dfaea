package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/relay"
)

// childArg is the first argument of the processes that this program starts from itself.
const childArg = "child"

// runChild is one of the processes beside the benchmark itself.
func runChild(ctx context.Context, args []string, in io.Reader, out, log io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "nats-server":
		return serveNATS(args[1])
	case len(args) == 3 && args[0] == "bridge":
		return profileBridge(ctx, args[1], args[2], log)
	case len(args) == 3 && args[0] == "publish":
		return publishRaw(ctx, args[1], args[2], in, out)
	}
	return fmt.Errorf("unknown child %q", args)
}

// serveNATS runs the server that both kinds of publishers write to, with the settings of the given file.
func serveNATS(conf string) error {
	options, err := server.ProcessConfigFile(conf)
	if err != nil {
		return err
	}
	nats, err := server.NewServer(options)
	if err != nil {
		return err
	}
	nats.ConfigureLogger()
	nats.Start()
	nats.WaitForShutdown()
	return nil
}

// profileBridge runs the bridge as "tidegate run" does, and writes profiles of all that it did.
func profileBridge(ctx context.Context, file, profile string, log io.Writer) error {
	cfg, _, err := config.Load(config.Options{File: file, Environ: []string{}})
	if err != nil {
		return err
	}
	b, err := relay.New(cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		return err
	}
	cpu, err := os.Create(profile + ".cpu.pprof")
	if err != nil {
		return err
	}
	defer cpu.Close()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	err = b.Run(ctx)
	pprof.StopCPUProfile()
	if err != nil {
		return err
	}
	allocs, err := os.Create(profile + ".allocs.pprof")
	if err != nil {
		return err
	}
	defer allocs.Close()
	return pprof.Lookup("allocs").WriteTo(allocs, 0)
}

// profilePath is where the profiles of one run go.
func profilePath(dir string, p *pass) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%d", p.shape.name, p.round))
}
