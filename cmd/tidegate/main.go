// Command tidegate streams committed outbox rows from PostgreSQL to NATS JetStream.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidegate-cdc/tidegate/internal/exit"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes a command line. The first SIGINT or SIGTERM cancels the command's context, so that it can end cleanly;
// the second ends the process at once.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(ctx, restore)
	root := newRootCmd()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	report(stderr, err)
	return exit.Code(err)
}

// errReported is inside an error that the command has printed already, in the form it was asked for.
var errReported = errors.New("reported")

// report prints the cause of an error and, on a line of its own, what to do.
func report(w io.Writer, err error) {
	switch {
	case err == nil || errors.Is(err, errReported):
		return
	case errors.Is(err, context.Canceled):
		err = fmt.Errorf("stopped by a signal: %w", err)
	}
	fmt.Fprintf(w, "tidegate: %v\n", err)
	if hint := exit.Hint(err); hint != "" {
		fmt.Fprintf(w, "  what to do: %s\n", hint)
	}
}
