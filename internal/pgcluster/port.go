package pgcluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range that systems give to outgoing connections, so that a server that is down for a
// while finds its port free when it comes back.
const (
	portLow  = 15000
	portHigh = 32000
)

// FreePort gives a loopback port on which nothing listens now. It may be taken by another process before it is used.
func FreePort() (int, error) {
	for range 200 {
		port := portLow + rand.IntN(portHigh-portLow)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("find a free port: none of 200 tried between %d and %d is free", portLow, portHigh)
}
