package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// StreamConfig is what the bridge wants of a stream that it makes. Of one that exists only the subjects matter.
type StreamConfig struct {
	Name            string
	Create          bool // make the stream, or add subjects to it
	Replicas        int
	MaxAge          time.Duration
	DuplicateWindow time.Duration
	Storage         jetstream.StorageType
}

// EnsureStream gives a stream that takes all the subjects, made or widened where s.Create says so; nothing is ever
// taken from a stream. A stream that a checkpoint names is not made again: without it the error is a *LostError.
// What else is not right is a *StreamError.
func (c *Conn) EnsureStream(ctx context.Context, s StreamConfig, subjects []string, named bool) (*Stream, error) {
	info, err := c.streamInfo(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		info, err = c.makeStream(ctx, s, subjects, named)
	}
	if err != nil {
		return nil, streamError(s.Name, err)
	}
	if err := usable(&info.config); err != nil {
		return nil, err
	}
	if err := c.widenStream(ctx, s, info, subjects); err != nil {
		return nil, streamError(s.Name, err)
	}
	st := &Stream{Name: s.Name, conn: c, own: subjects, replyLen: len(c.nc.NewInbox()) + replyRest}
	st.take(&info.config)
	if st.Retention != jetstream.LimitsPolicy {
		c.log.Warn("the stream removes what was consumed: after a crash the bridge cannot see whether such a row was stored",
			"stream", st.Name, "retention", st.Retention.String())
	}
	return st, nil
}

func (c *Conn) makeStream(ctx context.Context, s StreamConfig, subjects []string, named bool) (*streamInfo, error) {
	if named {
		return nil, &LostError{Stream: s.Name, Reason: "the stream does not exist any more, and the checkpoint names it"}
	}
	if !s.Create {
		return nil, &StreamError{
			Stream: s.Name, Reason: "it does not exist",
			Fix: fmt.Sprintf("set create: true for it under streams, or make it with `nats stream add %s --subjects %q`",
				s.Name, strings.Join(subjects, ",")),
		}
	}
	_, err := c.js.CreateStream(ctx, jetstream.StreamConfig{
		Name:       s.Name,
		Subjects:   subjects,
		Retention:  jetstream.LimitsPolicy,
		Discard:    jetstream.DiscardNew, // should it be given a size: what is acknowledged is not thrown away for what comes
		Storage:    s.Storage,
		Replicas:   max(s.Replicas, 1),
		MaxAge:     s.MaxAge,
		Duplicates: s.DuplicateWindow,
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil, err
	}
	c.log.Info("stream created", "stream", s.Name)
	return c.streamInfo(ctx, s.Name)
}

// widenStream adds the subjects that are missing, and nothing else of the configuration changes.
func (c *Conn) widenStream(ctx context.Context, s StreamConfig, info *streamInfo, subjects []string) error {
	wider := info.config.Subjects
	for _, subject := range subjects {
		if coveredByAny(wider, subject) {
			continue
		}
		if !s.Create {
			return &StreamError{
				Stream: s.Name, Reason: fmt.Sprintf("none of its subjects covers %q", subject),
				Fix: fmt.Sprintf("set create: true for it under streams, or add the subject with `nats stream edit %s`", s.Name),
			}
		}
		wider = widen(wider, subject)
	}
	if len(wider) == len(info.config.Subjects) && allCovered(info.config.Subjects, wider) {
		return nil
	}
	raw, err := json.Marshal(wider)
	if err != nil {
		return err
	}
	info.raw["subjects"] = raw
	var answer struct {
		Config jetstream.StreamConfig `json:"config"`
	}
	if err := c.call(ctx, "STREAM.UPDATE."+s.Name, info.raw, &answer); err != nil {
		return err
	}
	c.log.Info("stream widened", "stream", s.Name, "subjects", wider)
	info.config = answer.Config
	return nil
}

// widen adds subject to list, without those that it covers: a stream refuses subjects that overlap.
func widen(list []string, subject string) []string {
	if coveredByAny(list, subject) {
		return list
	}
	wider := make([]string, 0, len(list)+1)
	for _, s := range list {
		if !covers(subject, s) {
			wider = append(wider, s)
		}
	}
	return append(wider, subject)
}

func allCovered(patterns, subjects []string) bool {
	for _, s := range subjects {
		if !coveredByAny(patterns, s) {
			return false
		}
	}
	return true
}

// usable refuses streams whose acknowledgement would not mean that a message is stored there.
func usable(c *jetstream.StreamConfig) error {
	switch {
	case c.Mirror != nil:
		return &StreamError{Stream: c.Name, Reason: "it is a mirror and takes no messages", Fix: "name the stream that it mirrors"}
	case c.Sealed:
		return &StreamError{Stream: c.Name, Reason: "it is sealed and takes no messages", Fix: "name another stream"}
	case c.NoAck:
		return &StreamError{
			Stream: c.Name, Reason: "it does not acknowledge messages",
			Fix: fmt.Sprintf("`nats stream edit %s` without --no-ack", c.Name),
		}
	}
	return nil
}

// streamError says for a refusal by the server what to do about it.
func streamError(name string, err error) error {
	var (
		api  *jetstream.APIError
		ours *StreamError
		lost *LostError
	)
	if errors.As(err, &ours) || errors.As(err, &lost) {
		return err
	}
	e := &StreamError{Stream: name, Reason: err.Error(), Err: err}
	switch {
	case errors.As(err, &api) && api.ErrorCode == codeSubjectOverlap:
		e.Fix = "another stream has some of these subjects: name that one, or change its subjects or the template"
	case isAny(err, jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount, nats.ErrNoResponders):
		e.Fix = enableJetStream
	}
	return e
}

const codeSubjectOverlap = 10065
