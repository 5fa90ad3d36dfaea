// Package event turns an outbox row, from the WAL or from SQL, into an Event.
package event

import "time"

// Kind is the shape of an outbox.
type Kind uint8

// The shapes of an outbox.
const (
	KindEvent   Kind = iota + 1 // the row carries its payload
	KindFeature                 // the row refers to a PostGIS feature by id and version
)

// String gives the name that the configuration uses.
func (k Kind) String() string {
	switch k {
	case KindEvent:
		return "event"
	case KindFeature:
		return "feature"
	}
	return "unknown"
}

// Event is one outbox row. Its byte slices are for reading and valid until it is filled again. A nil slice means NULL
// or not mapped, an empty one an empty value.
type Event struct {
	Table *Table

	// Position is zero for a row that was read from its table.
	Position Position
	// CommittedAt is zero for a row that was read from its table.
	CommittedAt time.Time
	// XID is the row's transaction, on the low 32 bits; zero for a row that was read from its table.
	XID uint32
	// Late says why the row is published out of its place: "", "initial", "repair", "replay" or "parked".
	Late string

	ID            []byte
	AggregateType []byte // kind feature: the collection
	AggregateID   []byte // kind feature: the feature id
	EventType     []byte
	Version       []byte // kind feature: the feature's version
	CreatedAt     time.Time
	Traceparent   []byte
	Headers       []byte // the row's own headers: a JSON object of strings

	Payload     []byte // kind event
	PayloadNull bool
	ContentType string // of the payload, by its column's type

	RoutingKey    []byte // kind feature
	SchemaVersion []byte // kind feature

	from *Binding
	buf  []byte
}
