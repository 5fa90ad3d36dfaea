// Package divergence is about the three memories of what was published that must agree: the database with its slot, the
// streams, and the checkpoint. It says where they part, and how a checkpoint is rebased onto what is there.
package divergence

import (
	"fmt"
	"strings"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// Server is what a replication connection, and the slot, say of the database.
type Server struct {
	Identity  publish.Identity
	Timeline  uint32
	WALEnd    decoder.LSN
	Confirmed decoder.LSN // the slot's confirmed_flush_lsn
	History   slot.History
}

// Lacks says why the server's history cannot have a transaction at p; "" where it may.
func (s *Server) Lacks(p event.Position) string {
	switch {
	case p.IsZero():
		return ""
	case p.Timeline > s.Timeline:
		return fmt.Sprintf("the server is on timeline %d, events of timeline %d were published", s.Timeline, p.Timeline)
	case p.Timeline == s.Timeline && p.Commit >= s.WALEnd:
		return fmt.Sprintf("the server's WAL ends at %s, before what was published from it (%s)", s.WALEnd, p.Commit)
	case p.Timeline == s.Timeline:
		return ""
	}
	end, known := s.History.Switch(p.Timeline)
	switch {
	case !known:
		return fmt.Sprintf("timeline %d, on which the last event was published, is not in the history of timeline %d", p.Timeline, s.Timeline)
	case p.Commit >= end:
		return fmt.Sprintf("timeline %d ended at %s, but events up to %s were published from it: this server never had those behind %s",
			p.Timeline, end, p.Commit, end)
	}
	return ""
}

// PartedError says that events were published which the database does not have.
type PartedError struct {
	Source string
	W      event.Position
	Why    string
	// Events are those that the streams hold, where they could be read: nil, and not empty, when they were not.
	Events []publish.Event
}

func (e *PartedError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "compare checkpoint of source %q (position %s): %s", e.Source, e.W, e.Why)
	if e.Events == nil {
		return text.String()
	}
	fmt.Fprintf(&text, "; the streams hold %d events that this server does not have", len(e.Events))
	for i, ev := range e.Events[:min(len(e.Events), shown)] {
		text.WriteString([]string{": ", ", "}[min(i, 1)])
		fmt.Fprintf(&text, "%s at sequence %d of %s", ev.MsgID, ev.Seq, ev.Stream)
	}
	if len(e.Events) > shown {
		text.WriteString(", …")
	}
	return text.String()
}

// Hint says what to do about them.
func (e *PartedError) Hint() string {
	return "was a standby promoted that lacked the last transactions, or a backup restored? Published events that the database does not have must be judged by their consumers: " +
		"tidegate accept --list names all of them, with --yes the bridge goes on from the slot"
}

// shown is how many events an error names.
const shown = 20

// Parted compares a checkpoint's position with the server's history; nil where they agree.
func (s *Server) Parted(cp *publish.Checkpoint) *PartedError {
	if why := s.Lacks(cp.W); why != "" {
		return &PartedError{Source: cp.Source, W: cp.W, Why: why}
	}
	if why := s.lacksParked(cp); why != "" {
		return &PartedError{Source: cp.Source, W: cp.W, Why: why}
	}
	return nil
}

// lacksParked says that rows were parked in the database by commits that the server may not have, and that the slot had
// not come to yet; "" where it has them.
func (s *Server) lacksParked(cp *publish.Checkpoint) string {
	if cp.Floor <= cp.Confirmable || cp.W.IsZero() || s.Lacks(event.Position{Timeline: cp.W.Timeline, Commit: cp.Floor - 1}) == "" {
		return ""
	}
	return fmt.Sprintf("rows were parked by commits up to %s, which this server does not have", cp.Floor)
}
