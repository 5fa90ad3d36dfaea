package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
)

// Watch looks again and again whether a stream still is the one that acknowledged what it acknowledged. One goroutine at
// a time may use it.
type Watch struct {
	stream  *Stream
	witness Witness
	state   State // at the last look
	// Before there is a witness: when the watch began, by the server's clock, and the stream's last sequence then.
	began time.Time
	from  uint64
}

// Watch begins with what was known of the stream: the zero Witness where nothing is.
func (s *Stream) Watch(w Witness) *Watch { return &Watch{stream: s, witness: w} }

// Stream gives the stream that is watched.
func (w *Watch) Stream() *Stream { return w.stream }

// Witness gives what the last look saw.
func (w *Watch) Witness() Witness { return w.witness }

// Look asks the stream's leader, in one small request unless something has changed. m is the newest message of ours that
// was acknowledged before the call. The error is a *LostError where the stream was deleted, made again, set back or
// purged, and a *NotCoveredError where it was narrowed; of any other nothing is known. See Witness for what goes
// unnoticed.
func (w *Watch) Look(ctx context.Context, m Mark) error {
	info, err := w.ask(ctx, m)
	if err != nil {
		return err
	}
	if w.witness.Seq == m.Seq && w.covers(info) == nil && info.state == w.state && w.witness.isEnough(info, m) {
		return nil
	}
	if err := w.compare(ctx, info, m); err != nil {
		return err
	}
	if err := w.covers(info); err != nil {
		return err
	}
	return w.renew(ctx, info, m)
}

// Glance is Look without a question about single messages where nothing lets doubt: it may precede every checkpoint.
func (w *Watch) Glance(ctx context.Context, m Mark) error {
	info, err := w.ask(ctx, m)
	if err != nil || w.witness.isEnough(info, m) {
		return err
	}
	if err := w.compare(ctx, info, m); err != nil {
		return err
	}
	return w.renew(ctx, info, m)
}

func (w *Watch) ask(ctx context.Context, m Mark) (*streamInfo, error) {
	info, err := w.stream.conn.streamInfo(ctx, w.stream.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, w.lost(m, "it does not exist any more")
	}
	if err != nil {
		return nil, fmt.Errorf("read state of stream %s: %w", w.stream.Name, err)
	}
	if w.began.IsZero() {
		w.began, w.from = info.now, info.state.Last
		if w.began.IsZero() {
			w.began = time.Now()
		}
	}
	return info, nil
}

func (w *Watch) covers(info *streamInfo) error {
	for _, subject := range w.stream.own {
		if !coveredByAny(info.config.Subjects, subject) {
			return &NotCoveredError{Stream: w.stream.Name, Subject: subject}
		}
	}
	return nil
}

// lost is the loss of everything that was there at the last look.
func (w *Watch) lost(m Mark, reason string) *LostError {
	return &LostError{
		Stream: w.stream.Name, From: max(1, w.witness.First), To: m.Seq,
		After: w.witness.FirstAt, Until: w.witness.StoredAt, Reason: reason,
	}
}

// compare judges what the stream says against the mark and the witness.
func (w *Watch) compare(ctx context.Context, info *streamInfo, m Mark) error {
	known := w.witness.Seq > 0 || m.MsgID != ""
	again := known && !w.witness.Created.IsZero() && !w.witness.Created.Equal(info.created)
	switch {
	case info.state.Last < m.Seq && again:
		return w.lost(m, fmt.Sprintf("it was made again at %s: its last sequence is %d and it has acknowledged %d",
			info.created.UTC().Format(time.RFC3339), info.state.Last, m.Seq))
	case info.state.Last < m.Seq:
		return w.setBack(ctx, info, m)
	case w.witness.Seq == 0:
		return w.sinceBegun(info, m)
	}
	return w.question(ctx, info, m, again)
}

// sinceBegun judges a stream of which no message of ours was seen yet: what it has stored since the watch began must be
// there, or have been removed by its own limits.
func (w *Watch) sinceBegun(info *streamInfo, m Mark) error {
	first := Witness{Seq: w.from + 1, StoredAt: w.began}
	first.seen(info)
	if m.Seq > w.from && first.isPurged(info, m) {
		return w.purged(info, m, first.Seq)
	}
	return nil
}

// setBack is the loss of everything after the stream's last message, and names that.
func (w *Watch) setBack(ctx context.Context, info *streamInfo, m Mark) error {
	reason := fmt.Sprintf("its last sequence is %d and it has acknowledged %d: it was made again, restored, or lost what it had not written to disk",
		info.state.Last, m.Seq)
	var last *storedMsg
	if info.state.Last > 0 {
		var err error
		if last, err = w.stream.conn.getMsg(ctx, w.stream.Name, msgGet{Seq: info.state.Last}); err != nil {
			return err
		}
	}
	if last != nil && last.header.Get(event.HeaderPosition) != "" {
		reason += fmt.Sprintf(" (the last that it has was committed at %s, position %s)",
			last.header.Get(event.HeaderCommittedAt), last.header.Get(event.HeaderPosition))
	}
	lost := w.lost(m, reason)
	lost.From, lost.After = info.state.Last+1, info.state.LastAt
	return lost
}

// question asks for the message of the witness.
func (w *Watch) question(ctx context.Context, info *streamInfo, m Mark, again bool) error {
	stored, err := w.stream.conn.getMsg(ctx, w.stream.Name, msgGet{Seq: w.witness.Seq})
	switch {
	case err != nil:
		return err
	case stored != nil && stored.header.Get(event.HeaderMsgID) == w.witness.MsgID:
		return nil // also in a stream that was restored whole
	case stored != nil:
		return w.anew(ctx, m, w.otherAt(m, w.witness.Seq, stored, w.witness.MsgID))
	case again:
		return w.anew(ctx, m, w.lost(m, fmt.Sprintf("it was made again at %s", info.created.UTC().Format(time.RFC3339))))
	case w.witness.isPurged(info, m):
		return w.purged(info, m, w.witness.Seq)
	}
	return nil
}

// anew narrows the loss of a stream that was made again where the mark itself is of the new one: then the old one is
// known to have come as far as the witness.
func (w *Watch) anew(ctx context.Context, m Mark, lost *LostError) error {
	newest, err := w.stream.conn.getMsg(ctx, w.stream.Name, msgGet{Seq: m.Seq})
	if err != nil {
		return err
	}
	if newest != nil && newest.header.Get(event.HeaderMsgID) == m.MsgID && m.MsgID != "" {
		lost.To = w.witness.Seq
	}
	return lost
}

// renew makes the newest message of ours the witness.
func (w *Watch) renew(ctx context.Context, info *streamInfo, m Mark) error {
	next := w.witness
	if m.MsgID != "" && (m.Seq != next.Seq || m.MsgID != next.MsgID) {
		stored, err := w.stream.conn.getMsg(ctx, w.stream.Name, msgGet{Seq: m.Seq})
		if err != nil {
			return err
		}
		if next, err = w.newest(info, m, stored); err != nil {
			return err
		}
	}
	next.seen(info)
	w.witness, w.state = next, info.state
	return nil
}

// newest judges what the stream holds at the mark. A message that is gone before it was ever seen there has the age of
// the stream's last, if it was that, and else tells nothing.
func (w *Watch) newest(info *streamInfo, m Mark, stored *storedMsg) (Witness, error) {
	switch {
	case stored == nil && info.state.Last == m.Seq:
		gone := Witness{Seq: m.Seq, MsgID: m.MsgID, StoredAt: info.state.LastAt}
		if gone.seen(info); gone.isPurged(info, m) {
			return Witness{}, w.purged(info, m, m.Seq)
		}
		return Witness{}, nil
	case stored == nil:
		return Witness{}, nil
	case stored.header.Get(event.HeaderMsgID) != m.MsgID:
		return Witness{}, w.otherAt(m, m.Seq, stored, m.MsgID)
	}
	return Witness{Seq: m.Seq, MsgID: m.MsgID, StoredAt: stored.at}, nil
}

func (w *Watch) otherAt(m Mark, seq uint64, stored *storedMsg, want string) *LostError {
	return w.lost(m, fmt.Sprintf("sequence %d holds message %q and not %q, which it has acknowledged there: it was made again or restored",
		seq, stored.header.Get(event.HeaderMsgID), want))
}

func (w *Watch) purged(info *streamInfo, m Mark, seq uint64) *LostError {
	lost := w.lost(m, fmt.Sprintf("it was purged: it begins at sequence %d, and nothing in its configuration has removed sequence %d",
		info.state.First, seq))
	lost.To = info.state.First - 1
	return lost
}
