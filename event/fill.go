package event

import (
	"github.com/tidegate-cdc/tidegate/decoder"
)

// Fill makes ev the event of row, which has the shape that was bound and whose values are text. It copies what it
// needs, so that row's memory is free afterwards, into memory that ev keeps for the next row: nothing is allocated once
// that has grown. Position, CommittedAt, XID and Late are left to the caller.
//
// An error is a *PoisonError. Whatever could be read is in ev nevertheless, so that the row can be named and set aside
// with its aggregate.
func (b *Binding) Fill(ev *Event, row decoder.Tuple) error {
	ev.clear(b)
	if len(row) != b.width {
		return b.poison(ev, "", "the row has another number of columns than its table")
	}
	ev.reserve(b.size(row))
	ev.ID = ev.keep(b.text(row, partID))
	ev.AggregateID = ev.keep(b.text(row, partAggregateID))
	ev.EventType = ev.keep(b.text(row, partEventType))
	ev.Version = ev.keep(b.text(row, partVersion))
	ev.Traceparent = ev.keep(b.text(row, partTraceparent))
	ev.Headers = ev.keep(b.text(row, partHeaders))
	ev.RoutingKey = ev.keep(b.text(row, partRoutingKey))
	ev.SchemaVersion = ev.keep(b.text(row, partSchemaVersion))
	if b.table.Kind == KindEvent {
		ev.AggregateType = ev.keep(b.text(row, partAggregateType))
	}
	return firstError(b.check(ev, row), b.fillCreatedAt(ev, row), b.fillPayload(ev, row))
}

func firstError(errs ...*PoisonError) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// check looks for values that are missing although they are needed, or were sent in a form that cannot be read.
func (b *Binding) check(ev *Event, row decoder.Tuple) *PoisonError {
	for p, i := range b.at {
		if i < 0 {
			continue
		}
		switch row[i].Kind {
		case decoder.ValueText:
		case decoder.ValueNull:
			if b.notNull[p] {
				return b.poison(ev, b.name[p], "must not be null")
			}
		case decoder.ValueUnchanged:
			return b.poison(ev, b.name[p], "the server did not send the value (unchanged TOAST)")
		default:
			return b.poison(ev, b.name[p], "the value is not text")
		}
	}
	return nil
}

func (b *Binding) fillCreatedAt(ev *Event, row decoder.Tuple) *PoisonError {
	text := b.text(row, partCreatedAt)
	if text == nil {
		return nil
	}
	at, ok := parseTimestamp(text)
	if !ok {
		return b.poison(ev, b.name[partCreatedAt], "not a point in time in ISO style")
	}
	ev.CreatedAt = at
	return nil
}

func (b *Binding) fillPayload(ev *Event, row decoder.Tuple) *PoisonError {
	i := b.at[partPayload]
	if i < 0 {
		return nil
	}
	ev.PayloadNull = row[i].Kind == decoder.ValueNull
	text := b.text(row, partPayload)
	if text == nil || b.payload != oidBytea {
		ev.Payload = ev.keep(text)
		return nil
	}
	start := len(ev.buf)
	buf, ok := appendBytea(ev.buf, text)
	if !ok {
		return b.poison(ev, b.name[partPayload], "not the text of a bytea")
	}
	ev.buf = buf
	ev.Payload = buf[start:len(buf):len(buf)]
	return nil
}

// text gives the text of a part, nil when it has none.
func (b *Binding) text(row decoder.Tuple, p part) []byte {
	if i := b.at[p]; i >= 0 && row[i].Kind == decoder.ValueText {
		return row[i].Data
	}
	return nil
}

// size gives how much memory Fill needs for row.
func (b *Binding) size(row decoder.Tuple) int {
	n := 0
	for p := range parts {
		switch text := b.text(row, p); {
		case p == partCreatedAt:
		case p == partPayload && b.payload == oidBytea:
			n += byteaLen(text)
		default:
			n += len(text)
		}
	}
	return n
}

func (b *Binding) poison(ev *Event, column, reason string) *PoisonError {
	return &PoisonError{Table: b.table.Name, Column: column, ID: string(ev.ID), Reason: reason}
}
