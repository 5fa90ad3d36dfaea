package publish

import "net"

// fenced dials connections on which nothing is written once the fence says no. The client keeps what is published in a
// buffer of its own; only the socket is the place where it can be held back for good.
type fenced struct {
	*dialer
	fence func() error
}

// Dial is what the client calls for each server of the list.
func (d *fenced) Dial(network, address string) (net.Conn, error) {
	conn, err := d.dialer.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &fencedConn{conn, d.fence}, nil
}

type fencedConn struct {
	net.Conn
	fence func() error
}

func (c *fencedConn) Write(b []byte) (int, error) {
	if err := c.fence(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
