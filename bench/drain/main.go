// Command drain measures how fast a backlog of outbox rows is drained: by tidegate into JetStream, by pg_recvlogical
// into nothing, and, as the same messages without a database, by a raw publish into JetStream. The contenders take
// turns in one run on servers that are made for it, because only what ran side by side compares.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "drain:", err)
		os.Exit(1)
	}
}

// run is the benchmark, or the part of it that is to be a process of its own.
func run(args []string, in io.Reader, out, log io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 && args[0] == childArg {
		return runChild(ctx, args[1:], in, out, log)
	}
	o, err := parse(args, log)
	if err != nil {
		return err
	}
	r, err := measure(ctx, o, func(format string, a ...any) { fmt.Fprintf(log, format+"\n", a...) })
	if err != nil {
		return err
	}
	if o.json {
		return r.writeJSON(out)
	}
	return r.writeText(out)
}
