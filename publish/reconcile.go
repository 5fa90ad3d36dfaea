package publish

import "time"

// Disconnected says that the connection is, or was, gone: what is in flight may be stored or not, and nothing is sent
// before Resolve.
func (l *Lanes) Disconnected(time.Time) { l.doubt(ReasonDisconnected) }

// Uncertain reports whether sending stands still until Resolve, and why.
func (l *Lanes) Uncertain() (reason string, yes bool) { return l.uncertain, l.uncertain != "" }

// Unresolved counts the rows of s whose outcome is unknown, and gives the mark after which they must lie if they are
// stored. With none it is the stream's newest acknowledged message.
func (l *Lanes) Unresolved(s *Stream) (after Mark, rows int) {
	after = l.Highest(s)
	for r := range l.unknown {
		if r.Stream != s {
			continue
		}
		rows++
		if floor := l.ledger.floorOf(r); floor.Seq < after.Seq {
			after = floor
		}
	}
	return after, rows
}

// Resolve ends the uncertainty. The tails must have been read after it began, for every stream with unresolved rows,
// from the mark that Unresolved gives. What a tail shows stored is completed and returned; the rest is sent again with
// the same ids, one message first.
func (l *Lanes) Resolve(tails []*Tail, now time.Time) []*Row {
	var unknown, completed []*Row
	for r := range l.unknown {
		unknown = append(unknown, r)
	}
	for _, r := range unknown {
		if r.inFlight {
			l.hold(r)
			r.unsure = true
			l.retry.pushBack(r.lane)
		}
		if seq, ok := storedIn(tails, r); ok {
			r.lane.in.remove(r.lane)
			l.complete(r, seq)
			completed = append(completed, r)
		}
	}
	if len(unknown) > 0 {
		l.stats.Retries[l.uncertain] += uint64(len(unknown) - len(completed))
	}
	l.pace.restart(l.uncertain, now)
	l.uncertain, l.resolvedAt = "", now
	l.pump(now)
	return completed
}

// restart lets one message go at once: its streams have just answered.
func (p *pace) restart(reason string, now time.Time) {
	p.slow(reason, now)
	p.backoff, p.notBefore = 0, time.Time{}
}

func storedIn(tails []*Tail, r *Row) (seq uint64, ok bool) {
	for _, t := range tails {
		if t.Stream == r.Stream {
			return t.Stored(r)
		}
	}
	return 0, false
}

// doubt stops all sending until Resolve.
func (l *Lanes) doubt(reason string) {
	if l.uncertain == "" {
		l.uncertain = reason
	}
}

// stale reports whether r may have been stored by an earlier attempt that the tail was read too long ago to show and
// the stream may soon no longer know as a duplicate.
func (l *Lanes) stale(r *Row, now time.Time) bool {
	return r.unsure && now.Sub(l.resolvedAt) > r.Stream.DuplicateWindow/2
}

// unknown yields the rows that may be stored or not, in the order in which they were sent.
func (l *Lanes) unknown(yield func(*Row) bool) {
	for la := l.retry.first; la != nil; la = la.next {
		if la.head.unsure && !yield(la.head) {
			return
		}
	}
	for r := l.flight.first; r != nil; r = r.next {
		if !yield(r) {
			return
		}
	}
}
