package relay

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/parking"
	"github.com/tidegate-cdc/tidegate/publish"
)

// lateParked marks rows that were set aside and are published after all.
const lateParked = "parked"

// releasing is the loop's part in letting rows out of the store again: those that an operator wants retried, and what
// waits behind rows that are out of the way. They go through the whole pipeline. One batch is on its way at a time:
//
//	releasable -> (releasing, with the stream's last sequence) -> stage -> lanes -> stored -> removed from the store
//
// A process that dies in between leaves rows that say from where the stream has to be read to know whether they are in it.
type releasing struct {
	polled  time.Time
	out     int              // rows of the batch that are on their way
	failed  map[string]bool  // aggregates whose turn in this batch is over: a row of theirs was refused
	remove  []storedRow      // to be removed from the store
	back    map[int64]string // refused again, and why
	unsent  []int64          // behind these: they wait as before
	hurried bool             // the batch moved something: more may have become possible
}

// storedRow is a row of the store that its stream has.
type storedRow struct {
	id        int64
	aggregate string
}

const (
	releaseEvery = time.Second
	releaseBatch = 256
)

// startReleasing does what is due in the store: it removes what is stored, returns what was refused, and when the batch
// is done looks for more.
func (s *session) startReleasing(now time.Time) {
	switch {
	case len(s.remove) > 0 || len(s.back) > 0 || len(s.unsent) > 0:
		s.settleReleased()
	case s.out > 0 || s.stats.Rows == 0 || now.Sub(s.polled) < releaseEvery && !s.hurried:
		if s.stats.Rows > 0 && now.Sub(s.asked) > statsEvery {
			s.askStats()
		}
	case s.saved.Phase == "" && s.bridge.link.state().up:
		s.polled, s.hurried = now, false
		s.lookForReleasable()
	}
}

// settleReleased brings the store up to what became of the batch.
func (s *session) settleReleased() {
	remove, back, unsent := idsStored(s.remove), maps.Clone(s.back), slices.Clone(s.unsent)
	s.changing(func(ctx context.Context, store *parking.Store) (result, error) {
		if err := store.Released(ctx, remove); err != nil {
			return nil, err
		}
		for id, why := range back {
			if err := store.Repark(ctx, id, why); err != nil {
				return nil, err
			}
		}
		if err := store.Held(ctx, unsent); err != nil {
			return nil, err
		}
		return func(time.Time) error {
			s.remove, s.unsent = s.remove[len(remove):], s.unsent[len(unsent):]
			for id := range back {
				delete(s.back, id)
			}
			return nil
		}, nil
	})
}

func idsStored(rows []storedRow) []int64 {
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.id
	}
	return ids
}

func (s *session) askStats() {
	s.changing(func(context.Context, *parking.Store) (result, error) { return nothing, nil })
}

// lookForReleasable reads what may go on. Only rows that the checkpoint covers are let out: earlier rows of their
// aggregates may otherwise still be on the way.
func (s *session) lookForReleasable() {
	upto := s.saved.W.String()
	ends := map[*publish.Stream]uint64{}
	for _, st := range s.streams {
		ends[st] = s.lanes.Highest(st).Seq
	}
	s.keeping(func(ctx context.Context, store *parking.Store) (result, error) {
		rows, err := store.Releasable(ctx, upto, true, s.skip, releaseBatch)
		if err != nil || len(rows) == 0 {
			return nothing, err
		}
		b := batch{session: s, store: store, ends: ends}
		err = b.prepare(ctx, rows)
		return func(now time.Time) error { return s.release(&b, now) }, err
	})
}

// release takes a batch that is ready.
func (s *session) release(b *batch, now time.Time) error {
	s.polled, s.hurried, s.failed = now, true, map[string]bool{}
	for _, key := range b.gone {
		s.leave(key, now)
	}
	perAggregate := map[string]int{}
	for _, r := range b.rows {
		perAggregate[string(r.pub.Aggregate)]++
	}
	for key, n := range perAggregate { // nothing is left behind them: what comes next may wait in memory
		if h := s.held[key]; h != nil && h.unkept == 0 && h.rows == n {
			h.draining = true
		}
	}
	maps.Copy(s.back, b.back)
	s.out = len(b.rows)
	items := make([]item, len(b.rows))
	for i, r := range b.rows {
		r.pub.Size = r.memory()
		s.budget.take(r.pub.Size)
		items[i] = item{row: r}
	}
	s.in.put(items...)
	if len(b.rows) > 0 {
		s.log.Info("publishing rows that were parked", "rows", len(b.rows))
	}
	return nil
}

// leave counts a row out of its aggregate's rows in the store.
func (s *session) leave(aggregate string, now time.Time) {
	if h := s.held[aggregate]; h != nil && !s.skip {
		h.rows--
		s.letGo(h, aggregate, now)
	}
}

// readmit takes a row of the batch from the stage.
func (s *session) readmit(r *row, now time.Time) {
	if r.poison != nil || hasAggregate(r) && s.failed[string(r.pub.Aggregate)] {
		s.stayParked(r, now)
		return
	}
	s.lanes.Add(&r.pub, now)
}

// stayParked returns a row of the batch to the store: the first that is refused with the reason, and what is behind it in
// its aggregate as it was.
func (s *session) stayParked(r *row, now time.Time) {
	key := string(r.pub.Aggregate)
	if r.poison != nil {
		s.log.Error("a parked row still cannot be published", "error", r.poison, "id", r.parked)
		s.back[r.parked] = r.poison.Error()
		s.failed[key] = true
	} else {
		s.unsent = append(s.unsent, r.parked)
	}
	s.out--
	if h := s.held[key]; h != nil && h.draining {
		waiting := h.waiting
		h.draining, h.waiting = false, nil
		s.goOn(waiting, now) // into the store, behind what stays
	}
	s.finishRow(&r.pub)
}

// released takes note that a row of the batch is stored.
func (s *session) released(r *row, now time.Time) {
	s.remove = append(s.remove, storedRow{r.parked, string(r.pub.Aggregate)})
	s.out--
	if hasAggregate(r) {
		s.leave(string(r.pub.Aggregate), now)
	}
	s.finishRow(&r.pub)
}
