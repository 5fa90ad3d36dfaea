package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
)

// consumer is an ordinary JetStream consumer: what a service that follows the stream would be.
type consumer struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	reading jetstream.ConsumeContext
}

// consume prints each message to out (none when nil) and notes its arrival.
func consume(ctx context.Context, s *server.Server, l *ledger, out io.Writer) (*consumer, error) {
	conn, err := nats.Connect("", nats.InProcessServer(s), nats.Name("tidegate demo"))
	if err != nil {
		return nil, fmt.Errorf("connect consumer: %w", err)
	}
	c := &consumer{conn: conn}
	if c.js, err = jetstream.New(conn); err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect consumer: %w", err)
	}
	from, err := c.js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("make consumer: %w", err)
	}
	c.reading, err = from.Consume(func(m jetstream.Msg) {
		at := time.Now()
		if _, table, id, ok := event.SplitMsgID(m.Headers().Get(event.HeaderMsgID)); ok {
			l.arrive(table+"/"+id, at)
		}
		if out != nil {
			fmt.Fprint(out, line(at, m.Subject(), m.Headers(), m.Data()))
		}
		_ = m.Ack() // one that is lost brings the message again: its arrival is known
	})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("make consumer: %w", err)
	}
	return c, nil
}

func (c *consumer) close() {
	c.reading.Stop()
	<-c.reading.Closed()
	c.conn.Close()
}
