package publish

import (
	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/event"
)

// outgoing is the one nats.Msg through which every row is sent. Messages of one outbox have the same headers in the same
// order: then only the values change, and the map is left as it is.
type outgoing struct {
	msg    nats.Msg
	names  []string // of the headers in the map, in the order of values
	values [][]string
}

// fill gives m in the client's form; it is valid until the next fill.
func (o *outgoing) fill(m *event.Message, reply string) *nats.Msg {
	o.msg.Subject, o.msg.Reply, o.msg.Data = m.Subject, reply, m.Body
	if !o.fits(m.Headers) {
		o.name(m.Headers)
	}
	for i := range o.names {
		o.values[i][0] = m.Headers[i].Value
	}
	return &o.msg
}

func (o *outgoing) fits(headers []event.Header) bool {
	if len(headers) != len(o.names) {
		return false
	}
	for i := range headers {
		if headers[i].Name != o.names[i] {
			return false
		}
	}
	return true
}

// name makes the map for these headers. Where a name stands twice, as it rarely does, the map is made with the values and
// is of no use to the next message.
func (o *outgoing) name(headers []event.Header) {
	o.msg.Header, o.names = make(nats.Header, len(headers)), o.names[:0]
	for len(o.values) < len(headers) {
		o.values = append(o.values, make([]string, 1))
	}
	for i, h := range headers {
		o.names = append(o.names, h.Name)
		o.msg.Header[h.Name] = o.values[i]
	}
	if len(o.msg.Header) == len(headers) {
		return
	}
	clear(o.msg.Header)
	o.names = o.names[:0]
	for _, h := range headers {
		o.msg.Header[h.Name] = append(o.msg.Header[h.Name], h.Value)
	}
}
