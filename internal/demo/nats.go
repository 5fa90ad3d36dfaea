package demo

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// natsTimeout is how long the embedded server may take to start.
const natsTimeout = 10 * time.Second

// startNATS runs a NATS server with JetStream in this process, on a free loopback port, that stores below dir.
func startNATS(dir string) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "tidegate-demo",
		Host:       "127.0.0.1",
		Port:       server.RANDOM_PORT,
		JetStream:  true,
		StoreDir:   dir,
		NoLog:      true,
		NoSigs:     true, // Ctrl-C is ours: the messages are counted before the server ends
	})
	if err != nil {
		return nil, fmt.Errorf("make NATS server: %w", err)
	}
	go s.Start()
	if !s.ReadyForConnections(natsTimeout) {
		s.Shutdown()
		return nil, errors.New("start NATS server: not ready within " + natsTimeout.String())
	}
	return s, nil
}
