package publish

import (
	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/event"
)

// outgoing is the one nats.Msg through which every row is sent.
type outgoing struct {
	msg    nats.Msg
	values [][]string
}

// fill gives m in the client's form; it is valid until the next fill.
func (o *outgoing) fill(m *event.Message, reply string) *nats.Msg {
	o.msg.Subject, o.msg.Reply, o.msg.Data = m.Subject, reply, m.Body
	if o.msg.Header == nil {
		o.msg.Header = make(nats.Header, 16)
	}
	clear(o.msg.Header)
	for len(o.values) < len(m.Headers) {
		o.values = append(o.values, make([]string, 1))
	}
	for i, h := range m.Headers {
		o.values[i][0] = h.Value
		o.msg.Header[h.Name] = o.values[i]
	}
	if len(o.msg.Header) != len(m.Headers) {
		o.fillRepeated(m)
	}
	return &o.msg
}

// fillRepeated is for the rare message in which one name stands twice.
func (o *outgoing) fillRepeated(m *event.Message) {
	clear(o.msg.Header)
	for _, h := range m.Headers {
		o.msg.Header[h.Name] = append(o.msg.Header[h.Name], h.Value)
	}
}
