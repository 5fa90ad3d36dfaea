package publish

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// hinted is an error that carries what to do about it, apart from its text.
type hinted interface {
	error
	Hint() string
}

// Explain gives what an operator can do about an error of this package or of the NATS client; "" where nothing is known
// to help.
func Explain(err error) string {
	var h hinted
	switch {
	case err == nil:
		return ""
	case errors.As(err, &h) && h.Hint() != "":
		return h.Hint()
	case isAny(err, jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount):
		return enableJetStream
	}
	return connectHint(err)
}

const enableJetStream = "enable JetStream on the server and for the account"

// LimitError says that a message cannot be stored whatever is tried: the row is poison.
type LimitError struct {
	What        string
	Size, Limit int
	Of          string // whose limit it is
}

func (e *LimitError) Error() string {
	switch {
	case e.Limit == 0:
		return "check message: " + e.What
	case e.Of == "":
		return fmt.Sprintf("check message: %s has %d bytes, the limit is %d", e.What, e.Size, e.Limit)
	}
	return fmt.Sprintf("check message: %s has %d bytes, the limit is %d (%s)", e.What, e.Size, e.Limit, e.Of)
}

// NotCoveredError says that no subject of the stream covers the message's: the stream was narrowed, or never fitted.
type NotCoveredError struct{ Stream, Subject string }

func (e *NotCoveredError) Error() string {
	return fmt.Sprintf("check message: stream %s has no subject that covers %q", e.Stream, e.Subject)
}

// Hint gives the command that widens the stream.
func (e *NotCoveredError) Hint() string {
	return fmt.Sprintf("add it with `nats stream edit %s --subjects …`, then start again; nothing behind the row was confirmed", e.Stream)
}

// LostError says that a stream no longer holds what it acknowledged: sequences From to To, as far as is known stored
// after After and, the last of them, at Until or later.
type LostError struct {
	Stream       string
	From, To     uint64
	After, Until time.Time // zero where it is not known
	Reason       string
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("verify stream %s: %s; at risk are the messages at sequences %d to %d", e.Stream, e.Reason, e.From, e.To)
	if !e.After.IsZero() {
		text += ", stored from " + e.After.UTC().Format(time.RFC3339) + " on"
	}
	return text
}

// Hint says how what was stored is had again.
func (e *LostError) Hint() string {
	return "restore the stream with everything that it has acknowledged and start again: nothing is made again silently. Without that, " + acceptHint
}

// acceptHint is the way on from a loss.
const acceptHint = "tidegate accept shows what is given up, and with --yes lets the bridge go on from there; the rows are still in the outbox table"

// LostCheckpointError says that the checkpoint is not there any more, or older than what was written to it.
type LostCheckpointError struct {
	Source, Reason string
	Known          *Checkpoint // as it was written last
	Now            *Checkpoint // as it is, nil where there is none
}

func (e *LostCheckpointError) Error() string {
	text := fmt.Sprintf("verify checkpoint of source %q: %s; it was written at %s up to %s", e.Source, e.Reason,
		e.Known.WrittenAt.UTC().Format(time.RFC3339), e.Known.Confirmable)
	if !e.Known.W.IsZero() {
		text += " (position " + e.Known.W.String() + ")"
	}
	if e.Now != nil {
		text += fmt.Sprintf(", and says %s: NATS has lost what it acknowledged between the two", e.Now.Confirmable)
	}
	return text
}

// Hint says how the bridge goes on.
func (e *LostCheckpointError) Hint() string {
	return "was bucket " + Bucket + " deleted or restored? Look first whether the streams were too. " + acceptHint
}

// StolenError says that another process has written this source's checkpoint.
type StolenError struct {
	Source   string
	Revision uint64
}

func (e *StolenError) Error() string {
	return fmt.Sprintf("write checkpoint of source %q: another instance wrote revision %d", e.Source, e.Revision)
}

// Hint says how two bridges are kept apart.
func (e *StolenError) Hint() string {
	return "give each source a name of its own (source.name), or stop the other bridge"
}

// CheckpointError is an entry that cannot be understood.
type CheckpointError struct {
	Source string
	Err    error
}

func (e *CheckpointError) Error() string {
	return fmt.Sprintf("read checkpoint of source %q: %s", e.Source, e.Err)
}
func (e *CheckpointError) Unwrap() error { return e.Err }

// Hint says where the entry lies and what can be done with it.
func (e *CheckpointError) Hint() string {
	return fmt.Sprintf("the key %s of KV bucket %s was altered, or written by another version: run the tidegate that wrote it, or restore the entry. "+
		"Without it, nothing tells what is stored", e.Source, Bucket)
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
	return fmt.Sprintf("store message: stream %q took subject %s, which belongs to %q", e.Got, e.Subject, e.Want)
}

// Hint says what has to be changed.
func (e *ForeignAckError) Hint() string {
	return "two streams must not share subjects: take the subject out of the other stream, or change outboxes[].subject"
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
	Fix     string
	Err     error
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("connect to NATS at %s: %s", e.Servers, e.Err)
}
func (e *ConnectError) Unwrap() error { return e.Err }

// Hint says what to look at.
func (e *ConnectError) Hint() string { return e.Fix }

// StreamError is a stream that cannot be used as it is.
type StreamError struct {
	Stream, Reason, Fix string
	Err                 error
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("prepare stream %s: %s", e.Stream, e.Reason)
}
func (e *StreamError) Unwrap() error { return e.Err }

// Hint says what makes the stream fit.
func (e *StreamError) Hint() string { return e.Fix }

// RefusedError says that a server which had let us in will not have what we do, or will not let us in again.
type RefusedError struct {
	Doing string // what was refused: "use NATS"
	Fix   string
	Err   error
}

func (e *RefusedError) Error() string { return e.Doing + ": " + e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// Hint says what to change.
func (e *RefusedError) Hint() string { return e.Fix }
