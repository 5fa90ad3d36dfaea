package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegate-cdc/tidegate/publish"
)

// watching looks whether NATS still has what it acknowledged: in the background while the session lasts, and before each
// checkpoint is written.
type watching struct {
	doubted atomic.Bool // a loss was seen once: nothing is confirmed until it is seen again, or not

	looking sync.Mutex
	watches []*publish.Watch
}

const (
	// watchEvery is how often the streams and the checkpoint are looked at.
	watchEvery = 1500 * time.Millisecond
	// secondLook follows a look that saw a loss: a server that has just lost its leadership may answer from behind.
	secondLook = 750 * time.Millisecond
	// lookTimeout bounds one look; while NATS does not answer, nothing can be written either.
	lookTimeout = 5 * time.Second
)

// begin watches a stream from what the checkpoint knows of it.
func (w *watching) begin(ctx context.Context, st *publish.Stream, seen publish.Witness, m publish.Mark) error {
	watch := st.Watch(seen)
	w.watches = append(w.watches, watch)
	return w.twice(ctx, func(ctx context.Context) error { return watch.Look(ctx, m) })
}

// witnesses gives what the streams were last seen to hold.
func (w *watching) witnesses() map[string]publish.Witness {
	w.looking.Lock()
	defer w.looking.Unlock()
	seen := make(map[string]publish.Witness, len(w.watches))
	for _, watch := range w.watches {
		seen[watch.Stream().Name] = watch.Witness()
	}
	return seen
}

// glance gives an error unless all streams still are those that acknowledged the marks.
func (w *watching) glance(ctx context.Context, marks map[*publish.Stream]publish.Mark) error {
	return w.twice(ctx, func(ctx context.Context) error {
		return w.each(func(watch *publish.Watch) error { return watch.Glance(ctx, marks[watch.Stream()]) })
	})
}

func (w *watching) each(look func(*publish.Watch) error) error {
	w.looking.Lock()
	defer w.looking.Unlock()
	for _, watch := range w.watches {
		if err := look(watch); err != nil {
			return err
		}
	}
	return nil
}

// twice believes a loss only when it is seen twice. From the first time on nothing is confirmed.
func (w *watching) twice(ctx context.Context, look func(context.Context) error) error {
	err := look(ctx)
	if !isLost(err) {
		return err
	}
	w.doubted.Store(true)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(secondLook):
	}
	if err = look(ctx); err == nil {
		w.doubted.Store(false)
	}
	return err
}

// watchStreams ends the session when NATS has lost what it acknowledged.
func (s *session) watchStreams(work context.Context) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-work.Done():
			return nil
		case <-ticker.C:
		}
		if !s.bridge.link.state().up {
			continue
		}
		known, ok := s.ask(work)
		if !ok {
			return nil
		}
		err := s.look(work, known.newest)
		if err == nil && s.doubted.Load() {
			s.doubted.Store(false)
		}
		if err != nil && work.Err() == nil && (isLost(err) || isStolen(err) || isNotCovered(err)) {
			return fromNATS(withRange(err, &known.saved))
		}
	}
}

// look asks for the checkpoint and for the streams.
func (s *session) look(work context.Context, marks map[*publish.Stream]publish.Mark) error {
	ctx, cancel := context.WithTimeout(work, lookTimeout)
	defer cancel()
	return s.twice(ctx, func(ctx context.Context) error {
		err := s.each(func(watch *publish.Watch) error { return watch.Look(ctx, marks[watch.Stream()]) })
		if err != nil {
			return err
		}
		return s.bridge.points.Verify(ctx)
	})
}

// known is what the loop knows at one moment.
type known struct {
	newest map[*publish.Stream]publish.Mark
	saved  publish.Checkpoint
}

// ask has the loop say what it knows; false when the session ends.
func (s *session) ask(work context.Context) (known, bool) {
	answer := make(chan known, 1)
	s.post(work, func(time.Time) error {
		answer <- known{s.newest(), s.saved}
		return nil
	})
	select {
	case k := <-answer:
		return k, true
	case <-work.Done():
		return known{}, false
	}
}

// newest gives the newest message that each stream has acknowledged. It is the loop's.
func (s *session) newest() map[*publish.Stream]publish.Mark {
	marks := make(map[*publish.Stream]publish.Mark, len(s.streams))
	for _, st := range s.streams {
		marks[st] = s.lanes.Highest(st)
	}
	return marks
}

// withRange adds to a stream's loss what the checkpoint knows of its range.
func withRange(err error, cp *publish.Checkpoint) error {
	if lost := (*publish.LostError)(nil); !errors.As(err, &lost) || cp.W.IsZero() {
		return err
	}
	return fmt.Errorf("%w; by the checkpoint every row up to position %s (%s, committed %s) was stored",
		err, cp.W, cp.W.Commit, cp.CommittedAt.UTC().Format(time.RFC3339))
}

// nameRange gives a loss that was seen elsewhere than by the watch the range that is at risk: everything of ours. It is
// called when the loop has ended.
func (s *session) nameRange(err error) error {
	lost := (*publish.LostError)(nil)
	if !errors.As(err, &lost) || lost.To > 0 {
		return err
	}
	for _, st := range s.streams {
		if st.Name == lost.Stream {
			lost.From, lost.To = 1, max(s.lanes.Highest(st).Seq, s.saved.Streams[st.Name].Seq)
		}
	}
	return withRange(err, &s.saved)
}
