package oracle

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
)

// Stored compares every message that the stream holds now, from the first to the last; it reads headers only.
func (l *Ledger) Stored(ctx context.Context, js jetstream.JetStream, stream string) error {
	err := readStream(ctx, js, stream, l.Store)
	if err != nil {
		return fmt.Errorf("read stream %s: %w", stream, err)
	}
	return nil
}

// Messages gives what the stream holds now, in its order.
func Messages(ctx context.Context, js jetstream.JetStream, stream string) ([]Message, error) {
	var all []Message
	err := readStream(ctx, js, stream, func(m Message) { all = append(all, m) })
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", stream, err)
	}
	return all, nil
}

func readStream(ctx context.Context, js jetstream.JetStream, name string, each func(Message)) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return err
	}
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		return nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{HeadersOnly: true})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		stored, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		message, pending, err := read(stored)
		if err != nil {
			return err
		}
		if message.Sequence <= state.LastSeq {
			each(message)
		}
		// The last message may have been removed since: then nothing is pending.
		if message.Sequence >= state.LastSeq || pending == 0 {
			return nil
		}
	}
}

func read(stored jetstream.Msg) (m Message, pending uint64, err error) {
	meta, err := stored.Metadata()
	if err != nil {
		return m, 0, err
	}
	return Read(meta.Sequence.Stream, stored.Subject(), stored.Headers()), meta.NumPending, nil
}

// Read takes what is compared from a stored message.
func Read(sequence uint64, subject string, headers nats.Header) Message {
	m := Message{Sequence: sequence, Subject: subject, ID: headers.Get(event.HeaderMsgID), Late: headers.Get(event.HeaderLate)}
	m.AggregateType = decoded(headers.Get(event.HeaderAggregateType))
	m.AggregateID = decoded(headers.Get(event.HeaderAggregateID))
	for name := range headers {
		m.Marked = m.Marked || strings.HasPrefix(name, "Tidegate-")
	}
	return m
}

// decoded gives a header's value, or its text where that is no valid encoding: no row's aggregate then equals it.
func decoded(text string) string {
	value, ok := event.DecodeHeaderValue(text)
	if !ok {
		return text
	}
	return value
}

// Compare compares outboxes with the stream that they are published to and that nothing else is published to.
func Compare(ctx context.Context, conn *pgx.Conn, js jetstream.JetStream, stream string, tables ...Table) (*Report, error) {
	var ledger Ledger
	for _, table := range tables {
		if err := ledger.Committed(ctx, conn, table); err != nil {
			return nil, err
		}
	}
	if err := ledger.Stored(ctx, js, stream); err != nil {
		return nil, err
	}
	report := ledger.Report()
	return &report, nil
}
