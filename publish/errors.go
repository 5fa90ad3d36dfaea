package publish

import "fmt"

// LimitError says that a message cannot be stored whatever is tried: the row is poison.
type LimitError struct {
	What        string
	Size, Limit int
	Hint        string
}

func (e *LimitError) Error() string {
	if e.Limit == 0 {
		return "check message: " + e.What
	}
	return fmt.Sprintf("check message: %s is %d bytes, the limit is %d%s", e.What, e.Size, e.Limit, hint(e.Hint))
}

// NotCoveredError says that no subject of the stream covers the message's: the stream was narrowed, or never fitted.
type NotCoveredError struct{ Stream, Subject string }

func (e *NotCoveredError) Error() string {
	return fmt.Sprintf("check message: stream %s has no subject that covers %q: add it with `nats stream edit %s --subjects`",
		e.Stream, e.Subject, e.Stream)
}

// LostError says that a stream no longer holds what it acknowledged: sequences From to To, as far as is known.
type LostError struct {
	Stream   string
	From, To uint64
	Reason   string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("verify stream %s: %s; at risk are the messages at sequences %d to %d; "+
		"`tidegate verify` counts what is missing, `tidegate accept` goes on from what is there", e.Stream, e.Reason, e.From, e.To)
}

// StolenError says that another process has written this source's checkpoint.
type StolenError struct {
	Source   string
	Revision uint64
}

func (e *StolenError) Error() string {
	return fmt.Sprintf("write checkpoint of source %q: another instance wrote revision %d; "+
		"give each source a name of its own (source.name), or stop the other bridge", e.Source, e.Revision)
}

// AckError is a stream's refusal of a message.
type AckError struct {
	Code, ErrCode int
	Description   string
}

func (e *AckError) Error() string {
	return fmt.Sprintf("store message: %s (%d/%d)", e.Description, e.Code, e.ErrCode)
}

// ForeignAckError says that another stream than the row's stored it.
type ForeignAckError struct{ Subject, Want, Got string }

func (e *ForeignAckError) Error() string {
	return fmt.Sprintf("store message: stream %q took subject %s, which belongs to %q: two streams must not share subjects",
		e.Got, e.Subject, e.Want)
}

// DuplicateError asks for a look: the stream calls a row a duplicate that was not sent before. See Conn.VerifyDuplicate.
type DuplicateError struct {
	Row *Row
	Seq uint64
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("store message: %q is already at sequence %d of %s", e.Row.Msg.ID, e.Seq, e.Row.Stream.Name)
}

// SendError is a message that the client refused to send: the row stays at the head of its lane.
type SendError struct {
	Row *Row
	Err error
}

func (e *SendError) Error() string { return "send message: " + e.Err.Error() }
func (e *SendError) Unwrap() error { return e.Err }

// ConnectError is a refused or impossible connection.
type ConnectError struct {
	Servers string // without credentials
	Hint    string
	Err     error
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("connect to NATS at %s: %s%s", e.Servers, e.Err, hint(e.Hint))
}
func (e *ConnectError) Unwrap() error { return e.Err }

// StreamError is a stream that cannot be used as it is.
type StreamError struct {
	Stream, Reason, Hint string
	Err                  error
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("prepare stream %s: %s%s", e.Stream, e.Reason, hint(e.Hint))
}
func (e *StreamError) Unwrap() error { return e.Err }

func hint(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}
