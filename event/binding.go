package event

// part is what a column contributes to an Event. The order is that in which Fill looks for poison: the id comes first,
// so that a poison row can be named.
type part uint8

const (
	partID part = iota
	partAggregateType
	partAggregateID // kind feature: the feature's id
	partEventType
	partVersion // kind feature: the feature's version
	partPayload
	partCreatedAt
	partHeaders
	partTraceparent
	partRoutingKey
	partSchemaVersion
	parts // how many there are
)

// Binding knows where in a row of one shape the parts of an Event lie. It never changes and may be shared.
type Binding struct {
	table      *Table
	width      int        // columns of a row
	columns    []Column   // the same, as bound
	at         [parts]int // -1: not mapped
	name       [parts]string
	notNull    [parts]bool
	payload    uint32 // type OID
	collection []byte
}

// Table is the table that was bound.
func (b *Binding) Table() *Table { return b.table }

// Columns are those that were bound: a row's values stand in their order. They are not to be changed.
func (b *Binding) Columns() []Column { return b.columns }

// IDColumn names the column of the outbox id.
func (b *Binding) IDColumn() string { return b.name[partID] }

// ContentType is the media type of the payload, by its column's type; empty for kind feature.
func (b *Binding) ContentType() string {
	switch {
	case b.at[partPayload] < 0:
		return ""
	case b.payload == oidJSON, b.payload == oidJSONB:
		return "application/json"
	case b.payload == oidBytea:
		return "application/octet-stream"
	}
	return "text/plain; charset=utf-8"
}
