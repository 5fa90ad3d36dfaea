package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidegate-cdc/tidegate/event"
)

// maxRowHeaders is the size of a header block in NATS: a longer object cannot be published.
const maxRowHeaders = 65535

// reserved begins the names that a row may not write: they steer the server, or speak for the bridge.
var reserved = []string{"nats-", "tidegate-", "ce-"}

// rowHeaders adds the headers of the row itself, a JSON object of strings, in its order. A row may give its own
// traceparent and Content-Type.
func (r *Route) rowHeaders(ev *event.Event) error {
	rest := space(ev.Headers)
	if len(rest) == 0 || string(bytes.TrimRight(rest, " \t\r\n")) == "null" {
		return nil
	}
	if len(rest) > maxRowHeaders {
		return r.badHeaders(ev, "longer than %d bytes", maxRowHeaders)
	}
	if rest[0] != '{' || !json.Valid(rest) {
		return r.badHeaders(ev, "not a JSON object of strings")
	}
	own := len(r.fields)
	for rest = space(rest[1:]); rest[0] != '}'; rest = space(rest) {
		if rest[0] == ',' {
			rest = space(rest[1:])
		}
		var name, value []byte
		name, rest = quoted(rest)
		rest = space(space(rest)[1:]) // over the colon
		if rest[0] != '"' {
			return r.badHeaders(ev, "the value of %.100q is not a string", name)
		}
		value, rest = quoted(rest)
		if err := r.addRowHeader(ev, own, name, value); err != nil {
			return err
		}
	}
	return nil
}

// addRowHeader adds one header of the row; the first own fields are those of the bridge.
func (r *Route) addRowHeader(ev *event.Event, own int, name, value []byte) error {
	if !isToken(name) {
		return r.badHeaders(ev, "%.100q is no name for a header", name)
	}
	for _, prefix := range reserved {
		if len(name) >= len(prefix) && strings.EqualFold(string(name[:len(prefix)]), prefix) {
			return r.badHeaders(ev, "%.100q is not allowed: names that begin with Nats-, Tidegate- or ce- are reserved", name)
		}
	}
	f := field{nameFrom: len(r.text)}
	r.text = append(r.text, name...)
	f.nameTo, f.from = len(r.text), len(r.text)
	r.text = event.AppendHeaderValue(r.text, value)
	f.to = len(r.text)
	for i, earlier := range r.fields {
		switch {
		case i < own && strings.EqualFold(earlier.name, string(name)):
			r.fields[i] = field{name: earlier.name, from: f.from, to: f.to}
			return nil
		case i >= own && bytes.Equal(r.text[earlier.nameFrom:earlier.nameTo], name):
			return r.badHeaders(ev, "%.100q is named twice", name)
		}
	}
	r.fields = append(r.fields, f)
	return nil
}

func (r *Route) badHeaders(ev *event.Event, format string, args ...any) error {
	column := r.config.Table.Columns.Headers
	if column == "" {
		column = "headers"
	}
	return r.poison(ev, column, fmt.Sprintf(format, args...))
}

// isToken reports whether name may stand before the colon of a header. Source: RFC 9110, section 5.6.2.
func isToken(name []byte) bool {
	for _, b := range name {
		if b <= ' ' || b >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, b) >= 0 {
			return false
		}
	}
	return len(name) > 0
}

// space gives b without the white space that it begins with.
func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

// quoted reads the string that valid JSON begins with, and gives its value and what follows it.
func quoted(b []byte) (value, rest []byte) {
	end := 1
	escaped := false
	for ; b[end] != '"'; end++ {
		if b[end] == '\\' {
			escaped = true
			end++
		}
	}
	if !escaped {
		return b[1:end], b[end+1:]
	}
	var s string
	if json.Unmarshal(b[:end+1], &s) != nil {
		return nil, b[end+1:] // cannot be: it is part of valid JSON
	}
	return []byte(s), b[end+1:]
}
