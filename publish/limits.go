package publish

import "github.com/tidegate-cdc/tidegate/event"

const (
	maxHeaderBlock = 65535
	maxControlLine = 4096
	// controlLineRest is what a control line holds beside subject and reply: the verb, spaces, two sizes, line end.
	controlLineRest = len("HPUB ") + 3 + len("65535") + len("67108864") + 2
	// replyRest is what Lanes adds to its inbox.
	replyRest = len(".65535.18446744073709551615")
)

// Check says, before m is sent, whether the stream and the server can take it: nil, a *LimitError or a
// *NotCoveredError. maxPayload is the server's.
func (s *Stream) Check(m *event.Message, maxPayload int) error {
	head := len("NATS/1.0\r\n\r\n")
	for i := range m.Headers {
		head += len(m.Headers[i].Name) + len(": ") + len(m.Headers[i].Value) + len("\r\n")
	}
	size := head + len(m.Body)
	longest := maxControlLine - controlLineRest - s.replyLen
	switch {
	case head > maxHeaderBlock:
		return &LimitError{What: "the header block", Size: head, Limit: maxHeaderBlock}
	case maxPayload > 0 && size > maxPayload:
		return &LimitError{What: "headers and body", Size: size, Limit: maxPayload, Of: "max_payload of the NATS server"}
	case s.MaxMsgSize > 0 && size > s.MaxMsgSize:
		return &LimitError{What: "headers and body", Size: size, Limit: s.MaxMsgSize, Of: "max_msg_size of stream " + s.Name}
	case len(m.Subject) > longest:
		return &LimitError{What: "the subject", Size: len(m.Subject), Limit: longest, Of: "the control line of the NATS protocol"}
	case !literal(m.Subject):
		return &LimitError{What: "the subject has an empty token, a wildcard or a space"}
	case !s.Covers(m.Subject):
		return &NotCoveredError{Stream: s.Name, Subject: m.Subject}
	}
	return nil
}
