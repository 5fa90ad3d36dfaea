package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// errIncomplete is a reading that was interrupted: do it again.
var errIncomplete = errors.New("the reading was interrupted")

// ReadTail reads the headers of what s holds of the source after the sequence, up to the end that the leader names
// when it begins. It changes nothing in the stream.
func (c *Conn) ReadTail(ctx context.Context, s *Stream, after uint64, source string) (*Tail, error) {
	state, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	t := newTail(s, source, state.Last)
	err = c.readHeaders(ctx, s, after, state.Last, func(_ string, h nats.Header, seq uint64) { t.take(h, seq) })
	if err != nil {
		return nil, err
	}
	return t, nil
}

// visit takes the subject, the headers and the sequence of a stored message.
type visit func(subject string, h nats.Header, seq uint64)

// readHeaders visits what s holds in (after, last], in order.
func (c *Conn) readHeaders(ctx context.Context, s *Stream, after, last uint64, each visit) error {
	end, err := c.lastOf(ctx, s, after, last)
	if err != nil {
		return err
	}
	if end <= after {
		return nil
	}
	if s.Retention == jetstream.LimitsPolicy {
		err = c.consumeTail(ctx, s, after, end, each)
	} else {
		err = c.walkTail(ctx, s, after, end, each)
	}
	if err != nil {
		return fmt.Errorf("read stream %s after sequence %d: %w", s.Name, after, err)
	}
	return nil
}

// lastOf asks the leader for the last message in (after, last] that still exists of those that a tail is read from;
// where there is none the answer is not beyond after.
func (c *Conn) lastOf(ctx context.Context, s *Stream, after, last uint64) (end uint64, err error) {
	for _, subject := range c.tailFilter(s) {
		m, err := c.getMsg(ctx, s.Name, msgGet{LastFor: subject})
		if err != nil {
			return 0, err
		}
		if m != nil {
			end = max(end, min(m.seq, last))
			continue
		}
		// Asked for any subject, servers look at the last sequence alone, and do not find a message deleted there.
		found, err := c.searchLast(ctx, s, subject, after, last)
		if err != nil {
			return 0, err
		}
		end = max(end, found)
	}
	return end, nil
}

// searchLast halves (after, last] until only the last message that exists is left.
func (c *Conn) searchLast(ctx context.Context, s *Stream, subject string, after, last uint64) (uint64, error) {
	for after < last {
		middle := last - (last-after)/2
		m, err := c.getMsg(ctx, s.Name, msgGet{Seq: middle, NextFor: subject})
		if err != nil {
			return 0, err
		}
		if m != nil {
			after = min(max(m.seq, middle), last)
		} else {
			last = middle - 1
		}
	}
	return after, nil
}

// tailFilter gives the subjects to read; consumers take more than one since server 2.10.
func (c *Conn) tailFilter(s *Stream) []string {
	if len(s.filter) == 0 || len(s.filter) > 1 && !c.atLeast(2, 10) {
		return []string{">"}
	}
	return s.filter
}

func (c *Conn) atLeast(major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(c.ServerVersion(), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

const (
	tailBatch     = 2000
	tailIdle      = 20 * time.Millisecond // between looks while a replica lags behind its leader
	consumerGrace = 10 * time.Second      // after which the server removes a consumer that nobody uses
)

// consumeTail reads through a consumer of its own, up to the message at end or, if that was removed meanwhile, to what
// the leader then names as the last.
func (c *Conn) consumeTail(ctx context.Context, s *Stream, after, end uint64, each visit) error {
	bounded, cancel := c.bounded(ctx)
	defer cancel()
	one, several := c.consumerFilter(s)
	cons, err := c.js.CreateConsumer(bounded, s.Name, jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       after + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		FilterSubject:     one,
		FilterSubjects:    several,
		HeadersOnly:       true,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: consumerGrace,
	})
	if err != nil {
		return fmt.Errorf("create consumer: %w", causeOf(bounded, err))
	}
	r := tailReader{each: each, consumer: cons, read: after, end: end}
	for r.read < end {
		n, err := r.batch()
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if err := pause(ctx, tailIdle); err != nil {
			return err
		}
		if end, err = c.lastOf(ctx, s, r.read, end); err != nil {
			return err
		}
	}
	return nil
}

// consumerFilter gives what a consumer is to read, one subject or several; neither is everything. One goes by the older
// field: servers before 2.10 do not know the other.
func (c *Conn) consumerFilter(s *Stream) (one string, several []string) {
	switch f := c.tailFilter(s); {
	case len(f) > 1:
		return "", f
	case f[0] != ">":
		return f[0], nil
	}
	return "", nil
}

// tailReader reads what one consumer delivers and notices if something of it is lost on the way.
type tailReader struct {
	each      visit
	consumer  jetstream.Consumer
	read      uint64 // the last stream sequence
	end       uint64 // nothing behind it is wanted
	delivered uint64 // the last consumer sequence
}

func (r *tailReader) batch() (n int, err error) {
	batch, err := r.consumer.FetchNoWait(tailBatch)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errIncomplete, err)
	}
	for m := range batch.Messages() {
		meta, err := m.Metadata()
		if err != nil {
			return n, fmt.Errorf("%w: %w", errIncomplete, err)
		}
		if meta.Sequence.Consumer != r.delivered+1 {
			return n, fmt.Errorf("%w: delivery %d came after %d", errIncomplete, meta.Sequence.Consumer, r.delivered)
		}
		r.delivered, r.read = meta.Sequence.Consumer, meta.Sequence.Stream
		if r.read <= r.end {
			r.each(m.Subject(), m.Headers(), r.read)
		}
		n++
	}
	if err := batch.Error(); err != nil {
		return n, fmt.Errorf("%w: %w", errIncomplete, err)
	}
	return n, nil
}

// walkTail asks for one message after the other. Streams that remove what was consumed do not allow a consumer beside
// their own, or would keep messages for it.
func (c *Conn) walkTail(ctx context.Context, s *Stream, after, end uint64, each visit) error {
	for seq := after + 1; seq <= end; seq++ {
		m, err := c.getMsg(ctx, s.Name, msgGet{Seq: seq, NextFor: ">"})
		if err != nil {
			return err
		}
		if m == nil || m.seq > end {
			return nil
		}
		each(m.subject, m.header, m.seq)
		seq = m.seq
	}
	return nil
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
