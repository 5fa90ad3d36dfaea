package router

import (
	"time"

	"github.com/tidegate-cdc/tidegate/event"
)

// timeLayout is RFC 3339 in UTC to the microsecond, always of one length, so that it compares as text.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// field is a header whose texts still lie in Route.text.
type field struct {
	name             string // "": it lies in the text
	nameFrom, nameTo int
	value            string // "": it lies in the text
	from, to         int
}

// header gives f, its texts being parts of text.
func (f field) header(text string) event.Header {
	h := event.Header{Name: f.name, Value: f.value}
	if h.Name == "" {
		h.Name = text[f.nameFrom:f.nameTo]
	}
	if h.Value == "" {
		h.Value = text[f.from:f.to]
	}
	return h
}

// ownHeaders adds the headers that the bridge writes, in their fixed order, Nats-Msg-Id first.
func (r *Route) ownHeaders(ev *event.Event) {
	start := len(r.text)
	r.text = event.AppendMsgID(r.text, r.config.Source, r.config.Table.Name, ev.ID)
	r.add(event.HeaderMsgID, start)
	r.addValue(event.HeaderID, ev.ID)
	r.addValue(event.HeaderEventType, ev.EventType)
	r.addValue(event.HeaderAggregateType, ev.AggregateType)
	r.addValue(event.HeaderAggregateID, ev.AggregateID)
	if ev.Version != nil {
		r.addValue(event.HeaderVersion, ev.Version)
	}
	if !ev.CommittedAt.IsZero() {
		start = len(r.text)
		r.text = appendTime(r.text, ev.CommittedAt)
		r.add(event.HeaderCommittedAt, start)
	}
	if !ev.Position.IsZero() {
		start = len(r.text)
		r.text = append(r.text, r.source...)
		r.text = ev.Position.AppendText(r.text)
		r.add(event.HeaderPosition, start)
	}
	r.addConstant(event.HeaderLate, ev.Late)
	if ev.PayloadNull {
		r.addConstant(event.HeaderNull, "1")
	}
	if ev.Traceparent != nil {
		r.addValue(event.HeaderTraceparent, ev.Traceparent)
	}
	if r.config.Table.Kind == event.KindFeature {
		r.addConstant(event.HeaderContentType, "application/json")
	} else {
		r.addConstant(event.HeaderContentType, ev.ContentType)
	}
}

// add adds a header whose value is the text from start on.
func (r *Route) add(name string, start int) {
	r.fields = append(r.fields, field{name: name, from: start, to: len(r.text)})
}

func (r *Route) addValue(name string, value []byte) {
	start := len(r.text)
	r.text = event.AppendHeaderValue(r.text, value)
	r.add(name, start)
}

// addConstant adds a header unless its value is empty.
func (r *Route) addConstant(name, value string) {
	if value != "" {
		r.fields = append(r.fields, field{name: name, value: value})
	}
}

func appendTime(dst []byte, t time.Time) []byte { return t.UTC().AppendFormat(dst, timeLayout) }
