package event

// Header is one header of a Message. Values are already encoded for the wire.
type Header struct{ Name, Value string }

// Message is what an Event becomes for JetStream. It is made to be used again: Reset keeps its memory.
type Message struct {
	Subject string
	// ID is the Nats-Msg-Id, also among Headers.
	ID      string
	Headers []Header
	Body    []byte
}

// Reset empties m and keeps its memory.
func (m *Message) Reset() { *m = Message{Headers: m.Headers[:0], Body: m.Body[:0]} }

// The headers that the bridge writes.
const (
	HeaderMsgID         = "Nats-Msg-Id"
	HeaderID            = "Tidegate-Id"
	HeaderEventType     = "Tidegate-Event-Type"
	HeaderAggregateType = "Tidegate-Aggregate-Type"
	HeaderAggregateID   = "Tidegate-Aggregate-Id"
	HeaderVersion       = "Tidegate-Version"
	HeaderCommittedAt   = "Tidegate-Committed-At"
	HeaderPosition      = "Tidegate-Position"
	HeaderLate          = "Tidegate-Late"
	HeaderNull          = "Tidegate-Null"
	HeaderTraceparent   = "traceparent"
	HeaderContentType   = "Content-Type"
)
