package publish

import (
	"maps"
	"time"

	"github.com/tidegate-cdc/tidegate/event"
)

// Covered says that a checkpoint with that Progress is written, which may let waiting rows go.
func (l *Lanes) Covered(upto uint64, now time.Time) {
	l.ledger.cover(upto)
	l.pump(now)
}

// CheckpointDue reports whether rows wait, or soon will, for a checkpoint that could be written now.
func (l *Lanes) CheckpointDue() bool { return l.ledger.due() }

// Highest is the newest message of s that was acknowledged; its stream must still have it after a reconnect.
func (l *Lanes) Highest(s *Stream) Mark { return l.ledger.book(s).mark() }

// InFlight gives the messages that were sent and not answered, and their sizes.
func (l *Lanes) InFlight() (messages int, bytes int64) { return l.flight.rows, l.flight.bytes }

// Waiting counts the rows that were added and are neither in flight nor done.
func (l *Lanes) Waiting() int { return l.waiting }

// Ready counts the aggregates that only wait for room to be sent.
func (l *Lanes) Ready() int { return len(l.ready.lanes) }

// Idle reports whether every row that was added is done.
func (l *Lanes) Idle() bool { return l.waiting == 0 && l.flight.rows == 0 }

// Probing reports whether messages are refused for now: why, and since when nothing has succeeded.
func (l *Lanes) Probing() (reason string, since time.Time, yes bool) {
	return l.pace.reason, l.pace.since, l.pace.reason != ""
}

// Hottest names the aggregate with the most rows behind it, as "type/id", and counts them. It looks at every lane.
func (l *Lanes) Hottest() (aggregate string, rows int) {
	var hottest *lane
	for _, la := range l.lanes {
		if hottest == nil || la.rows > hottest.rows {
			hottest = la
		}
	}
	if hottest == nil {
		return "", 0
	}
	m := &hottest.head.Msg
	return headerOf(m, event.HeaderAggregateType) + "/" + headerOf(m, event.HeaderAggregateID), hottest.rows
}

func headerOf(m *event.Message, name string) string {
	for _, h := range m.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// Stats counts from the beginning.
type Stats struct {
	Sent       uint64
	Stored     uint64
	Duplicates uint64            // of Stored: the stream had them already
	Late       uint64            // answers to attempts that were given up
	Timeouts   uint64            // times that an outcome became unknown because no answer came
	Retries    map[string]uint64 // messages to be sent again, by reason
}

// Stats gives a copy of the counters.
func (l *Lanes) Stats() Stats {
	s := l.stats
	s.Retries = maps.Clone(s.Retries)
	return s
}
