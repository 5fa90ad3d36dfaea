package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
)

// storedMsg is a message as a stream's leader has it.
type storedMsg struct {
	seq     uint64
	subject string
	header  nats.Header
	data    []byte
	at      time.Time // when it was stored, by the server's clock
}

// msgGet is a question to STREAM.MSG.GET, which only a stream's leader answers; a direct get may be answered by a
// replica that is behind.
type msgGet struct {
	Seq     uint64 `json:"seq,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
}

// getMsg gives nil when there is no such message.
func (c *Conn) getMsg(ctx context.Context, stream string, q msgGet) (*storedMsg, error) {
	var answer struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	err := c.call(ctx, "STREAM.MSG.GET."+stream, q, &answer)
	var refusal *jetstream.APIError
	if errors.As(err, &refusal) && refusal.ErrorCode == codeNoMessage {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a message of stream %s: %w", stream, err)
	}
	m := &storedMsg{seq: answer.Message.Seq, subject: answer.Message.Subject, data: answer.Message.Data, at: answer.Message.Time}
	if len(answer.Message.Header) > 0 {
		if m.header, err = nats.DecodeHeadersMsg(answer.Message.Header); err != nil {
			return nil, fmt.Errorf("read message %d of stream %s: %w", m.seq, stream, err)
		}
	}
	return m, nil
}

// VerifyMark checks that a stream still is the one that acknowledged the mark: it has come at least as far, and the
// message at the mark, unless it was removed since, is the one that was stored. Else the error is a *LostError.
func (c *Conn) VerifyMark(ctx context.Context, s *Stream, m Mark) error {
	state, err := s.Info(ctx)
	if err != nil {
		var lost *LostError
		if errors.As(err, &lost) {
			lost.From, lost.To = 1, m.Seq
		}
		return err
	}
	if state.Last < m.Seq {
		return &LostError{Stream: s.Name, From: state.Last + 1, To: m.Seq, Reason: fmt.Sprintf(
			"its last sequence is %d and it has acknowledged %d: it was made again, restored, or lost what it had not written to disk",
			state.Last, m.Seq)}
	}
	if m.MsgID == "" || m.Seq == 0 {
		return nil
	}
	stored, err := c.getMsg(ctx, s.Name, msgGet{Seq: m.Seq})
	if err != nil || stored == nil {
		return err
	}
	if id := stored.header.Get(event.HeaderMsgID); id != m.MsgID {
		return &LostError{Stream: s.Name, From: 1, To: m.Seq, Reason: fmt.Sprintf(
			"sequence %d holds message %q and not %q, which it has acknowledged there: it was made again or restored", m.Seq, id, m.MsgID)}
	}
	return nil
}

// VerifyDuplicate reports whether the message at seq, of which the stream calls r a duplicate, is r itself: it has r's
// id and r's position. A row that was read from its table has no position and is known by its id alone. If it is not,
// two rows share one id. A message that was removed since cannot
// be compared and passes for the same: streams that drop what was consumed or superseded do that within seconds.
func (c *Conn) VerifyDuplicate(ctx context.Context, s *Stream, seq uint64, r *Row) (same bool, err error) {
	stored, err := c.getMsg(ctx, s.Name, msgGet{Seq: seq})
	if err != nil || stored == nil {
		return err == nil, err
	}
	there, here := stored.header.Get(event.HeaderPosition), headerOf(&r.Msg, event.HeaderPosition)
	return stored.header.Get(event.HeaderMsgID) == r.Msg.ID && (there == here || there == "" || here == ""), nil
}
