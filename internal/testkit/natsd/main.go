// Command natsd is the NATS server that tests run in a process of its own, so that they can kill, stop and restart it.
// It is called as nats-server is, with -c and a configuration file.
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
	if len(args) != 2 || args[0] != "-c" {
		return fmt.Errorf("usage: natsd -c CONFIG-FILE")
	}
	options, err := server.ProcessConfigFile(args[1])
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
