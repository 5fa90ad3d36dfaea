package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/parking"
	"github.com/tidegate-cdc/tidegate/publish"
)

// aside is the loop's part in parking: rows that cannot be published are kept in the source database, and with
// park.order hold later rows of their aggregates behind them. What is kept is finished as if it were stored; but until
// the slot itself has come to the commit that keeps it, nothing is confirmed: a failover must not lose both.
type aside struct {
	keeper *keeper // nil: park.store is off
	skip   bool    // park.order skip: later rows go on once the poison row is durable

	held  map[string]*heldAggregate
	queue []*row // to be kept, in order
	busy  bool   // a job has the keeper
	after time.Time
	// full says since when the store takes no more; until then nothing is kept, but rows may be let out.
	full     time.Time
	most     int  // rows to be kept at once: less after the store was full
	lastKept bool // the last job kept rows: letting out has its turn
	// recount says that a job failed, so that it is not known what of it was done.
	recount bool
	stats   parking.Stats
	asked   time.Time // when stats were read

	releasing
}

// heldAggregate is an aggregate of which rows are, or will be, in the store.
type heldAggregate struct {
	rows     int    // in the store, and in queue
	unkept   int    // of these, in queue
	waiting  []*row // in memory: until what is before them is durable (skip) or published (draining)
	draining bool   // all its rows in the store are on their way to the stream
}

const (
	keepBatch      = 500
	keepBatchBytes = 8 << 20
	keepRetry      = 250 * time.Millisecond
	statsEvery     = 10 * time.Second
)

// openParking reads which aggregates have rows in the store. It comes before the first row of a session.
func (s *session) openParking(ctx context.Context) error {
	cfg := s.bridge.cfg
	if cfg.Park.Store == "off" {
		return nil
	}
	s.held, s.back, s.most, s.skip = map[string]*heldAggregate{}, map[int64]string{}, keepBatch, cfg.Park.Order == "skip"
	s.keeper = &keeper{slot: s.bridge.slot, source: cfg.Source.Name, maxRows: cfg.Park.MaxRows}
	return s.keeper.do(ctx, func(ctx context.Context, store *parking.Store) error {
		aggregates, err := store.Load(ctx)
		if err != nil {
			return err
		}
		s.count(aggregates, time.Now())
		s.stats, err = store.Stats(ctx)
		return err
	})
}

// count takes over how many rows of each aggregate are in the store. With park.order skip nothing waits for them.
func (s *session) count(aggregates []parking.Aggregate, now time.Time) {
	if s.skip {
		return
	}
	rows := map[string]int{}
	for _, a := range aggregates {
		rows[string(a.Key)] = a.Rows
		if s.held[string(a.Key)] == nil {
			s.held[string(a.Key)] = &heldAggregate{}
		}
	}
	for _, stored := range s.remove { // these are in the store, and as good as gone
		rows[stored.aggregate]--
	}
	for key, h := range s.held {
		h.rows = rows[key] + h.unkept
		s.letGo(h, key, now)
	}
}

// startRecount looks what is in the store after a job of which nobody knows what it did.
func (s *session) startRecount() {
	gone := idsStored(s.remove)
	s.changing(func(ctx context.Context, store *parking.Store) (result, error) {
		if err := store.Released(ctx, gone); err != nil { // some of them may be removed already
			return nil, err
		}
		aggregates, err := store.Load(ctx)
		if err != nil {
			return nil, err
		}
		return func(now time.Time) error {
			s.recount, s.remove = false, s.remove[len(gone):]
			s.count(aggregates, now)
			return nil
		}, nil
	})
}

// setsAside reports whether a row goes to the store, or behind one that does, and not into the stream.
func (s *session) setsAside(r *row) bool {
	if s.keeper == nil || r.outbox == nil || isSchema(r.poison) {
		return false
	}
	return r.poison != nil || len(s.held) > 0 && s.held[string(r.pub.Aggregate)] != nil
}

// setAside takes a row over that setsAside has chosen.
func (s *session) setAside(r *row, now time.Time) {
	s.tracker.addRow(&r.pub, r.event.CommittedAt)
	s.lanes.SetAside(&r.pub)
	s.place(r, now)
}

// place decides where a row that was set aside goes.
func (s *session) place(r *row, now time.Time) {
	h := s.held[string(r.pub.Aggregate)]
	switch {
	case h != nil && (h.draining || s.skip && r.poison == nil):
		h.waiting = append(h.waiting, r)
		s.budget.waitAside()
	case h == nil && r.poison == nil:
		s.lanes.Requeue(&r.pub, now)
	default:
		s.keep(r, h)
	}
}

// keep puts a row into the queue of what is to be kept.
func (s *session) keep(r *row, h *heldAggregate) {
	if h == nil && hasAggregate(r) {
		h = &heldAggregate{}
		s.held[string(r.pub.Aggregate)] = h
	}
	if h != nil {
		h.rows++
		h.unkept++
	}
	s.queue = append(s.queue, r)
}

// putAside takes a row that the broker or the client refused, and those behind it in its aggregate, out of the lanes.
func (s *session) putAside(refused *row, now time.Time) {
	var later []*row // than those in the lane
	if h := s.held[string(refused.pub.Aggregate)]; h != nil {
		later, h.waiting = h.waiting, nil
	}
	for _, r := range s.lanes.Withdraw(&refused.pub) {
		if own := rowOf(r); own.parked != 0 {
			s.lanes.Kept(r)
			s.stayParked(own, now)
		} else {
			s.place(own, now)
		}
	}
	s.goOn(later, now)
}

// goOn places rows that have waited in memory.
func (s *session) goOn(waiting []*row, now time.Time) {
	for _, r := range waiting { // one of them may be poison and hold what is behind it
		s.budget.goOn()
		s.place(r, now)
	}
}

// startParking does what is due with the store: rows are kept and let out in turns, so that neither keeps the other from
// its.
func (s *session) startParking(now time.Time) {
	switch {
	case s.keeper == nil || s.busy || now.Before(s.after):
	case s.recount:
		s.startRecount()
	case s.lastKept:
		s.lastKept = false
		s.startReleasing(now)
		if !s.busy {
			s.startKeeping(now)
		}
	default:
		s.startKeeping(now)
		if !s.busy {
			s.startReleasing(now)
		}
	}
}

// startKeeping writes what is to be kept, in the background.
func (s *session) startKeeping(now time.Time) {
	if len(s.queue) == 0 || now.Before(s.full) {
		return
	}
	s.lastKept = true
	batch := s.queue[:s.batchSize()]
	s.changing(func(ctx context.Context, store *parking.Store) (result, error) {
		rows := make([]parking.Row, len(batch))
		for i, r := range batch {
			rows[i] = toKeep(r)
		}
		inserted, lsn, err := store.Park(ctx, rows)
		if err != nil {
			return nil, err
		}
		var there []parking.Aggregate
		if slices.Contains(inserted, false) { // who put them in may not have been seen to: then they were not counted
			if there, err = store.Load(ctx); err != nil {
				return nil, err
			}
		}
		return func(now time.Time) error { return s.haveKept(batch, inserted, there, lsn, now) }, nil
	})
}

func (s *session) batchSize() int {
	var bytes int64
	for i, r := range s.queue {
		if bytes += r.pub.Size; i > 0 && (i >= max(s.most, 1) || bytes > keepBatchBytes) {
			return i
		}
	}
	return len(s.queue)
}

// changing is keeping for a job after which the store holds something else: what, is shown.
func (s *session) changing(job func(context.Context, *parking.Store) (result, error)) {
	s.keeping(func(ctx context.Context, store *parking.Store) (result, error) {
		done, err := job(ctx, store)
		if err != nil {
			return nil, err
		}
		stats, err := store.Stats(ctx)
		return func(now time.Time) error {
			s.setStats(stats, now)
			return done(now)
		}, err
	})
}

// nothing is the result of a job that leaves the loop nothing to do.
func nothing(time.Time) error { return nil }

// keeping runs one job on the keeper and hands its result to the loop. What fails for now is tried again.
func (s *session) keeping(job func(context.Context, *parking.Store) (result, error)) {
	s.busy = true
	s.spawn(func(ctx context.Context) {
		var done result
		err := s.keeper.do(ctx, func(ctx context.Context, store *parking.Store) (err error) {
			done, err = job(ctx, store)
			return err
		})
		s.post(ctx, func(now time.Time) error {
			s.busy = false
			if err != nil {
				return s.notKept(err, now)
			}
			s.bridge.health.Clear(problemParking)
			return done(now)
		})
	})
}

// notKept says why rows cannot be set aside, and lets it be tried again unless that is hopeless.
func (s *session) notKept(err error, now time.Time) error {
	if fatal := failure(err); fatal != nil && !isFull(err) {
		return err
	}
	why := "rows that cannot be published cannot be set aside either, so nothing behind them is confirmed: " + err.Error()
	if full := (*parking.FullError)(nil); errors.As(err, &full) {
		s.full, s.most = now.Add(time.Second), 1
		why += "; " + full.Hint()
	} else {
		s.after, s.recount = now.Add(keepRetry), true
	}
	if !s.bridge.health.Reported(problemParking) {
		s.log.Error("rows cannot be set aside; trying again", "error", err)
	}
	s.bridge.health.Report(problemParking, why)
	return nil
}

// haveKept finishes rows that are durable in the store. there is what the store holds, where some of them were there
// before.
func (s *session) haveKept(batch []*row, inserted []bool, there []parking.Aggregate, lsn decoder.LSN, now time.Time) error {
	s.most = keepBatch
	s.queue = s.queue[len(batch):] // batch is the same memory: nothing may be moved in it
	if len(s.queue) == 0 {
		s.queue = nil
	}
	s.tracker.barrier(lsn)
	poison := 0
	for i, r := range batch {
		s.lanes.Kept(&r.pub)
		if r.poison != nil && inserted[i] {
			if poison++; poison == 1 {
				s.log.Error("a row cannot be published; it is parked", "error", r.poison, "position", placeOf(r))
			}
		}
		if h := s.held[string(r.pub.Aggregate)]; h != nil && hasAggregate(r) {
			h.unkept--
		}
	}
	if there != nil {
		s.count(there, now)
	}
	for _, r := range batch {
		if h := s.held[string(r.pub.Aggregate)]; h != nil && hasAggregate(r) {
			s.letGo(h, string(r.pub.Aggregate), now)
		}
	}
	if poison > 1 {
		s.log.Error("more rows cannot be published; they are parked", "rows", poison-1)
	}
	return nil
}

// letGo ends the waiting of an aggregate that has no more reason to wait.
func (s *session) letGo(h *heldAggregate, aggregate string, now time.Time) {
	if h.rows > 0 && (!s.skip || h.unkept > 0) {
		return
	}
	delete(s.held, aggregate)
	s.goOn(h.waiting, now)
}

// setStats shows what is in the store.
func (s *session) setStats(stats parking.Stats, now time.Time) {
	s.stats, s.asked = stats, now
	s.bridge.metrics.parked(stats)
	s.bridge.health.Degrade(problemParked, parkedText(stats))
}

// isSchema reports a table that cannot be read in its present shape: that is no row's fault.
func isSchema(err error) bool {
	var schema *event.SchemaError
	return errors.As(err, &schema)
}

// finishRow gives a row's memory back that the tracker does not know.
func (s *session) finishRow(r *publish.Row) {
	s.budget.finish(r.Size)
	s.bridge.pool.put(rowOf(r))
}

// parkedText says what is parked, "" when nothing is.
func parkedText(s parking.Stats) string {
	if s.Rows == 0 {
		return ""
	}
	return fmt.Sprintf("%d rows are parked and %d wait behind them: tidegate parked list", s.Parked, s.Rows-s.Parked)
}
