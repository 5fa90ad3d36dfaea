// Package router turns an Event and the geometry of its feature into the message that is published: subject, headers
// and body. The same Event always gives the same bytes, whichever way it came.
package router

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/geometry"
)

// DefaultMaxSubject is the longest subject that fits NATS' default control line of 4,096 bytes, beside a reply subject
// and sizes.
const DefaultMaxSubject = 3840

// Config describes the messages of one outbox.
type Config struct {
	Source       string       // the source's name, part of every Nats-Msg-Id
	Table        *event.Table // the outbox
	Subject      string       // the subject template
	H3Resolution int          // of {h3} and of a computed routing key: 0 to 15
	MaxSubject   int          // the longest subject in bytes; 0 is DefaultMaxSubject
}

// Route makes the messages of one outbox. It may be used by one goroutine at a time.
type Route struct {
	config  Config
	subject []element
	filter  string
	source  string // the source as the ids begin with it, with its slash
	usesH3  bool

	// Memory for the message at hand.
	text   []byte // its subject and headers, to become one string
	fields []field
	key    []byte // its routing key
	cell   uint64 // its H3 cell; 0 is none
}

// New reads the subject template. Its error says what is wrong with which template, and what to write instead.
func New(c Config) (*Route, error) {
	switch {
	case c.Table == nil:
		return nil, errors.New("route outbox: no table is given")
	case c.Source == "":
		return nil, fmt.Errorf("route outbox %s: the source has no name", c.Table.Name)
	case c.H3Resolution < 0 || c.H3Resolution > geometry.MaxResolution:
		return nil, fmt.Errorf("route outbox %s: h3_resolution %d: want 0 to %d", c.Table.Name, c.H3Resolution, geometry.MaxResolution)
	}
	if c.MaxSubject <= 0 {
		c.MaxSubject = DefaultMaxSubject
	}
	subject, err := parseTemplate(c.Subject, c.Table.Kind)
	if err != nil {
		return nil, fmt.Errorf("route outbox %s: subject %q: %w", c.Table.Name, c.Subject, err)
	}
	r := &Route{config: c, subject: subject, filter: filter(subject, c.H3Resolution)}
	r.source = strings.TrimSuffix(string(event.AppendMsgID(nil, c.Source, "", nil)), "/")
	for _, e := range subject {
		r.usesH3 = r.usesH3 || e.token == h3Cells
	}
	return r, nil
}

// Subjects gives the filter that covers every subject of the template, such as "outbox.*.*".
func (r *Route) Subjects() string { return r.filter }

// Fill makes m the message of ev, which must be of the outbox that r was made for; m keeps nothing of ev's or g's
// memory. g is the feature's geometry; nil, where none was looked up, leaves out what would be said about it.
//
// An error is a *event.PoisonError: this row can never be published as it is. m is then empty.
func (r *Route) Fill(m *event.Message, ev *event.Event, g *geometry.Feature) error {
	m.Reset()
	r.locate(ev, g)
	r.text, r.fields = r.appendSubject(r.text[:0], ev), r.fields[:0]
	subject := len(r.text)
	if subject > r.config.MaxSubject {
		return r.poison(ev, "", fmt.Sprintf("its subject has %d bytes: at most %d are allowed", subject, r.config.MaxSubject))
	}
	r.ownHeaders(ev)
	if err := r.rowHeaders(ev); err != nil {
		return err
	}
	text := string(r.text)
	m.Subject = text[:subject]
	for _, f := range r.fields {
		m.Headers = append(m.Headers, f.header(text))
	}
	m.ID = m.Headers[0].Value
	if r.config.Table.Kind == event.KindFeature {
		m.Body = r.appendFeature(m.Body, ev, g)
	} else {
		m.Body = append(m.Body, ev.Payload...)
	}
	return nil
}

func (r *Route) poison(ev *event.Event, column, reason string) error {
	return &event.PoisonError{Table: r.config.Table.Name, Column: column, ID: string(ev.ID), Reason: reason}
}
