package publish

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

// Acks is the one subscription on which all acknowledgements of a session arrive. It outlives reconnects.
type Acks struct {
	Inbox string // for NewLanes
	C     <-chan *nats.Msg
	sub   *nats.Subscription
}

// Acks subscribes to a new inbox. What exceeds the buffer is dropped, and its rows are found again only by their
// timeout: let it hold twice what may be in flight.
func (c *Conn) Acks(buffer int) (*Acks, error) {
	inbox := c.nc.NewInbox()
	ch := make(chan *nats.Msg, buffer)
	sub, err := c.nc.ChanSubscribe(inbox+".*.*", ch)
	if err != nil {
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	return &Acks{Inbox: inbox, C: ch, sub: sub}, nil
}

// Close ends the subscription; the channel stays open and gets nothing more.
func (a *Acks) Close() error {
	if err := a.sub.Unsubscribe(); err != nil && !isAny(err, nats.ErrConnectionClosed, nats.ErrBadSubscription) {
		return fmt.Errorf("unsubscribe from acknowledgements: %w", err)
	}
	return nil
}
