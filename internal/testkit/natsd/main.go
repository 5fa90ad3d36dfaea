// Command natsd is the NATS server that tests run in a process of its own, so that they can kill, stop and restart it.
// Its only argument is a configuration file in the server's own format.
package main

import (
	"fmt"
	"os"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: natsd CONFIG-FILE")
	}
	options, err := server.ProcessConfigFile(args[0])
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
