package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
)

// pubAck is a stream's answer that it has a message. The stream's name lies in the answer's memory.
type pubAck struct {
	stream    []byte
	seq       uint64
	duplicate bool
}

// readAck reads the answer to a message. Its errors are nats.ErrNoResponders, an *AckError, or that the answer is none.
func readAck(m *nats.Msg) (pubAck, error) {
	if len(m.Data) == 0 {
		switch status := m.Header.Get("Status"); status {
		case "503":
			return pubAck{}, nats.ErrNoResponders
		default:
			return pubAck{}, fmt.Errorf("%w: no body, status %q", errNotAck, status)
		}
	}
	if a, ok := parseAck(m.Data); ok {
		return a, nil
	}
	return decodeAck(m.Data)
}

// parseAck reads the form that servers send: one flat object of plain strings, numbers and booleans that names stream
// and sequence. Anything else is not ok and left to decodeAck.
func parseAck(data []byte) (a pubAck, ok bool) {
	c := ackCursor{data}
	if !c.take('{') {
		return a, false
	}
	for {
		key, ok1 := c.str()
		if !ok1 || !c.take(':') || !c.field(&a, key) {
			return a, false
		}
		if c.take(',') {
			continue
		}
		return a, c.take('}') && c.skipSpace() == 0 && len(a.stream) > 0 && a.seq > 0
	}
}

func (c *ackCursor) field(a *pubAck, key []byte) (ok bool) {
	switch string(key) {
	case "stream":
		a.stream, ok = c.str()
	case "seq":
		a.seq, ok = c.number()
	case "duplicate":
		a.duplicate, ok = c.boolean()
	case "domain":
		_, ok = c.str()
	}
	return ok
}

// ackCursor reads what is left of an acknowledgement.
type ackCursor struct{ rest []byte }

func (c *ackCursor) skipSpace() (left int) {
	for len(c.rest) > 0 && (c.rest[0] == ' ' || c.rest[0] == '\n' || c.rest[0] == '\t' || c.rest[0] == '\r') {
		c.rest = c.rest[1:]
	}
	return len(c.rest)
}

func (c *ackCursor) take(b byte) bool {
	if c.skipSpace() == 0 || c.rest[0] != b {
		return false
	}
	c.rest = c.rest[1:]
	return true
}

// str reads a string without escapes.
func (c *ackCursor) str() ([]byte, bool) {
	if !c.take('"') {
		return nil, false
	}
	end := bytes.IndexByte(c.rest, '"')
	if end < 0 || bytes.IndexByte(c.rest[:end], '\\') >= 0 {
		return nil, false
	}
	s := c.rest[:end]
	c.rest = c.rest[end+1:]
	return s, true
}

func (c *ackCursor) number() (uint64, bool) {
	c.skipSpace()
	n := 0
	for n < len(c.rest) && c.rest[n] >= '0' && c.rest[n] <= '9' {
		n++
	}
	if n == 0 || n > 20 {
		return 0, false
	}
	v, err := strconv.ParseUint(string(c.rest[:n]), 10, 64)
	c.rest = c.rest[n:]
	return v, err == nil
}

func (c *ackCursor) boolean() (v, ok bool) {
	c.skipSpace()
	for _, word := range [...]string{"true", "false"} {
		if bytes.HasPrefix(c.rest, []byte(word)) {
			c.rest = c.rest[len(word):]
			return word == "true", true
		}
	}
	return false, false
}

func decodeAck(data []byte) (pubAck, error) {
	var a struct {
		Error *struct {
			Code        int    `json:"code"`
			ErrCode     int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
		Stream    string `json:"stream"`
		Seq       uint64 `json:"seq"`
		Duplicate bool   `json:"duplicate"`
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return pubAck{}, fmt.Errorf("%w: %w", errNotAck, err)
	}
	if e := a.Error; e != nil {
		return pubAck{}, &AckError{Code: e.Code, ErrCode: e.ErrCode, Description: e.Description}
	}
	if a.Stream == "" || a.Seq == 0 {
		return pubAck{}, fmt.Errorf("%w: it names no stream and sequence", errNotAck)
	}
	return pubAck{stream: []byte(a.Stream), seq: a.Seq, duplicate: a.Duplicate}, nil
}
