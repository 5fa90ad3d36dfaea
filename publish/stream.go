package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Stream is a JetStream stream as EnsureStream found it. Once ReadOnly was called, where it is, nothing in it changes:
// any number of goroutines may use it.
type Stream struct {
	Name              string
	Subjects          []string
	MaxMsgSize        int // of headers and body; -1 is no limit
	DuplicateWindow   time.Duration
	Retention         jetstream.RetentionPolicy
	Storage           jetstream.StorageType
	Discard           jetstream.DiscardPolicy
	Replicas          int
	MaxMsgsPerSubject int64

	conn     *Conn
	own      []string // what the bridge publishes here
	filter   []string // what a tail is read from; nil is everything
	exact    uint64   // see KnowExactly
	replyLen int
}

// State is what a stream holds. Last is never smaller than before, however much is removed.
type State struct {
	First, Last, Messages uint64
	FirstAt, LastAt       time.Time // when these were stored, by the server's clock
}

// Covers reports whether the stream takes messages at subject.
func (s *Stream) Covers(subject string) bool { return coveredByAny(s.Subjects, subject) }

// Own gives the subjects under which the bridge publishes here.
func (s *Stream) Own() []string { return s.own }

// ReadOnly lets tails be read from the bridge's own subjects and those in written alone: the subjects that the
// checkpoint says were own when it was written. With written empty everything is read, as it is by default.
func (s *Stream) ReadOnly(written []string) {
	if s.filter = nil; len(written) == 0 {
		return
	}
	for _, subject := range append(append([]string(nil), s.own...), written...) {
		s.filter = widen(s.filter, subject)
	}
}

// KnowExactly says that messages up to the sequence may be of a history which the database has left, so that their
// positions order nothing: in a tail such a message shows itself alone, by id and position together, and says nothing of
// what its aggregate has passed.
func (s *Stream) KnowExactly(upto uint64) { s.exact = upto }

// OpenStream gives a stream as it is, neither made nor widened; own are the subjects that are published to it. A stream
// that does not exist is a *LostError.
func (c *Conn) OpenStream(ctx context.Context, name string, own []string) (*Stream, error) {
	info, err := c.streamInfo(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, &LostError{Stream: name, Reason: "the stream does not exist any more"}
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration of stream %s: %w", name, err)
	}
	s := &Stream{Name: name, conn: c, own: own}
	s.take(&info.config)
	return s, nil
}

// Info asks the stream's leader what it holds. A stream that is gone is a *LostError.
func (s *Stream) Info(ctx context.Context) (State, error) {
	info, err := s.conn.streamInfo(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return State{}, &LostError{Stream: s.Name, Reason: "the stream does not exist any more"}
	}
	if err != nil {
		return State{}, fmt.Errorf("read state of stream %s: %w", s.Name, err)
	}
	return info.state, nil
}

// Recheck asks the stream's leader whether it still takes what the bridge publishes: a *NotCoveredError when it was
// narrowed, a *LostError when it is gone. A publisher only sees that nobody answers, as during an election.
func (s *Stream) Recheck(ctx context.Context) error {
	info, err := s.conn.streamInfo(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return &LostError{Stream: s.Name, Reason: "the stream does not exist any more"}
	}
	if err != nil {
		return fmt.Errorf("read configuration of stream %s: %w", s.Name, err)
	}
	for _, subject := range s.own {
		if !coveredByAny(info.config.Subjects, subject) {
			return &NotCoveredError{Stream: s.Name, Subject: subject}
		}
	}
	return nil
}

func (s *Stream) take(c *jetstream.StreamConfig) {
	s.Subjects = c.Subjects
	s.MaxMsgSize = int(c.MaxMsgSize)
	s.DuplicateWindow = c.Duplicates
	s.Retention, s.Storage, s.Discard = c.Retention, c.Storage, c.Discard
	s.Replicas = c.Replicas
	s.MaxMsgsPerSubject = c.MaxMsgsPerSubject
}

// streamInfo is the answer to STREAM.INFO, with the configuration as the server wrote it too: a newer server's may
// have settings that this client does not know and must not drop.
type streamInfo struct {
	config jetstream.StreamConfig
	raw    map[string]json.RawMessage
	state  State
	// created is when the stream was made, now when the server answered: zero before server 2.10.
	created, now time.Time
}

func (c *Conn) streamInfo(ctx context.Context, name string) (*streamInfo, error) {
	var answer struct {
		Config json.RawMessage `json:"config"`
		State  struct {
			First    uint64    `json:"first_seq"`
			Last     uint64    `json:"last_seq"`
			Messages uint64    `json:"messages"`
			FirstAt  time.Time `json:"first_ts"`
			LastAt   time.Time `json:"last_ts"`
		} `json:"state"`
		Created time.Time `json:"created"`
		Now     time.Time `json:"ts"`
	}
	if err := c.call(ctx, "STREAM.INFO."+name, nil, &answer); err != nil {
		return nil, err
	}
	info := &streamInfo{state: State(answer.State), created: answer.Created, now: answer.Now}
	if err := json.Unmarshal(answer.Config, &info.config); err != nil {
		return nil, fmt.Errorf("read configuration of stream %s: %w", name, err)
	}
	if err := json.Unmarshal(answer.Config, &info.raw); err != nil {
		return nil, fmt.Errorf("read configuration of stream %s: %w", name, err)
	}
	return info, nil
}

// call makes one request to the JetStream API. A refusal is a *jetstream.APIError.
func (c *Conn) call(ctx context.Context, subject string, request, answer any) error {
	var body []byte
	if request != nil {
		var err error
		if body, err = json.Marshal(request); err != nil {
			return fmt.Errorf("encode request to %s: %w", subject, err)
		}
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	m, err := c.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: c.prefix + subject, Data: body})
	if err != nil {
		return fmt.Errorf("call %s: %w", subject, causeOf(ctx, err))
	}
	var refusal struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &refusal); err != nil {
		return fmt.Errorf("read answer of %s: %w", subject, err)
	}
	if refusal.Error != nil {
		return refusal.Error
	}
	if err := json.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("read answer of %s: %w", subject, err)
	}
	return nil
}

// callTimeout bounds one request; a server that has no leader does not answer.
const callTimeout = 5 * time.Second
