package slot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// Handler takes what the stream yields. Its methods are called by the goroutine of Run and must not block.
type Handler interface {
	// Handle takes one message. It, and all that it refers to except Relations, is valid during the call only.
	// walStart is that of XLogData: 0 for Relation, Type and Origin. An error ends Run, which returns it.
	Handle(m *decoder.Message, walStart decoder.LSN) error
	// Idle says that no transaction is open in the stream, and that every one whose commit begins before walEnd was
	// handed over. When all of them are done, walEnd may be confirmed.
	Idle(walEnd decoder.LSN)
	// Full reports that nothing more can be taken before Stream.Wake. It is asked before each message.
	Full() bool
	// Flush says that the stream is about to wait: what Handle gathered should go on its way. That is once for each
	// read, not for each row.
	Flush()
}

// OversizeHandler is a Handler that goes on past a row above Config.MaxRow. Without it, or when it returns an error,
// Run ends.
type OversizeHandler interface {
	Oversize(*TooLargeError) error
}

// Run hands the stream to h until ctx is done, h refuses, or the connection ends; it never returns nil. It alone
// reads and writes the socket. Status goes out on its own timer, also while h is full, and soon after Confirm.
func (s *Stream) Run(ctx context.Context, h Handler) error {
	if s.pos == nil {
		return errors.New("read replication stream: the session was not started")
	}
	defer s.interruptWhenDone(ctx)()
	s.clock.start(time.Now(), s.timeout)
	defer s.gather.end() // Finish waits for a few bytes
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		full, err := s.drain(h)
		if err == nil {
			err = s.tick(ctx, time.Now())
		}
		s.publish()
		if err != nil {
			return err
		}
		if s.fresh {
			s.fresh = false
			h.Flush()
		}
		if full {
			s.pause(ctx)
		} else if err := s.read(); err != nil {
			return err
		}
	}
}

// drain hands over the messages that are buffered, until h is full.
func (s *Stream) drain(h Handler) (full bool, err error) {
	for {
		if h.Full() {
			return true, nil
		}
		m, ok, err := s.frames.next()
		if err != nil || !ok {
			return false, err
		}
		if m.kind != 'd' {
			err = s.control(m)
		} else if m.cut {
			err = s.oversize(h, m)
		} else {
			err = s.copyData(h, m.body)
		}
		if err != nil {
			return false, err
		}
	}
}

// copyData takes one message of the stream.
func (s *Stream) copyData(h Handler, body []byte) error {
	if len(body) == 0 {
		return fmt.Errorf("%w: empty CopyData", ErrMalformed)
	}
	switch body[0] {
	case 'w':
		return s.change(h, body)
	case 'k':
		return s.keepalive(h, body)
	}
	return fmt.Errorf("%w: CopyData of type %q", ErrMalformed, body[0])
}

func (s *Stream) change(h Handler, body []byte) error {
	walStart, data, err := walData(body)
	if err != nil {
		return err
	}
	if err := s.dec.Decode(data, &s.msg); err != nil {
		return fmt.Errorf("decode message at %s: %w", walStart, err)
	}
	s.pos.Received(walStart)
	switch s.msg.Kind {
	case decoder.KindBegin:
		s.open, s.begin = true, s.msg.Begin
	case decoder.KindCommit:
		s.open = false
		s.pos.Received(s.msg.Commit.EndLSN)
	case decoder.KindRelation:
		s.tables[s.msg.Relation.OID] = s.msg.Relation
	}
	s.fresh = true
	return h.Handle(&s.msg, walStart)
}

func (s *Stream) keepalive(h Handler, body []byte) error {
	walEnd, reply, err := keepaliveData(body)
	if err != nil {
		return err
	}
	s.pos.WALEnd(walEnd)
	if !s.open {
		s.pos.Received(walEnd)
		s.fresh = true
		h.Idle(walEnd)
	}
	if reply {
		return s.status(time.Now(), false)
	}
	return nil
}

// oversize takes the beginning of a message above the limit. Only an Insert is anybody's loss.
func (s *Stream) oversize(h Handler, m frame) error {
	walStart, data, err := walData(m.body)
	if err != nil || len(data) == 0 {
		return fmt.Errorf("%w: CopyData of %d bytes", ErrMalformed, m.size)
	}
	s.pos.Received(walStart)
	switch kind := decoder.Kind(data[0]); kind {
	case decoder.KindInsert:
	case decoder.KindBegin, decoder.KindCommit, decoder.KindRelation:
		return fmt.Errorf("%w: type %q of %d bytes", ErrMalformed, kind, m.size)
	default:
		s.log.Warn("skipped an oversized message that is no insert", slog.String("lsn", walStart.String()), slog.Int("bytes", m.size))
		return nil
	}
	oid, row := insertPrefix(data)
	tooLarge := &TooLargeError{
		Relation: s.tables[oid], LSN: walStart, Commit: s.begin.FinalLSN, XID: s.begin.XID,
		Size: m.size - walHeader, Max: s.cfg.maxRow(), Prefix: row,
	}
	if oh, ok := h.(OversizeHandler); ok {
		s.fresh = true
		return oh.Oversize(tooLarge)
	}
	return tooLarge
}

// control takes what is not CopyData. A server that ends the stream in order is an error too: nobody asked it to.
func (s *Stream) control(m frame) error {
	switch m.kind {
	case 'E':
		var e pgproto3.ErrorResponse
		if err := e.Decode(m.body); err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		return fmt.Errorf("read replication stream: %w", classify(pgconn.ErrorResponseToPgError(&e), s.cfg))
	case 'N':
		var n pgproto3.NoticeResponse
		if err := n.Decode(m.body); err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		return s.notice(&n)
	case 'S', 'A':
		return nil
	case 'c', 'C', 'Z':
		return fmt.Errorf("read replication stream: ended by the server: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%w: type %q", ErrMalformed, m.kind)
}

// notice stops at PostgreSQL 18's only sign that a publication is gone: it goes on without the rows. Messages are
// translated, names are not.
func (s *Stream) notice(n *pgproto3.NoticeResponse) error {
	if n.Code == "55000" && strings.Contains(n.Message, quoteIdent(s.cfg.Publication)) {
		return publicationGone(s.cfg.Publication, nil)
	}
	s.log.Warn("the server sent a notice", slog.String("code", n.Code), slog.String("message", n.Message))
	return nil
}

// read waits for bytes, or until something is due.
func (s *Stream) read() error {
	due := s.due()
	if s.gather.on {
		if !s.arm(s.conn, earlier(due, time.Now().Add(gatherFor))) {
			return nil
		}
		s.gather.wait()
		due = earlier(due, time.Now().Add(gatherFor))
	}
	if !s.arm(s.conn, due) {
		return nil
	}
	n, err := s.frames.fill(s.conn)
	if n > 0 {
		now := time.Now()
		s.clock.heard(now)
		s.gather.heard(now)
		return nil
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.gather.end()
		s.disarm()
		return nil
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	case errors.Is(err, net.ErrClosed):
		err = net.ErrClosed
	}
	return fmt.Errorf("read replication stream: %w", err)
}

// pause waits while the handler is full, for Wake or until something is due.
func (s *Stream) pause(ctx context.Context) {
	timer := time.NewTimer(time.Until(s.due()))
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
	s.clock.heard(time.Now())
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
