package slot

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pglogrepl"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// History tells on which timeline the WAL of a server was written. The zero History knows no timeline.
type History struct {
	current uint32
	ended   []ended // oldest first
}

// ended is a timeline that another one took over from.
type ended struct {
	timeline uint32
	at       decoder.LSN
}

// ParseHistory reads a timeline history file: a line for each earlier timeline, with the LSN at which it ended.
// Timeline 1 has no such file, its content is empty.
func ParseHistory(current uint32, content string) (History, error) {
	h := History{current: current}
	var last decoder.LSN
	for line := range strings.Lines(content) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 2 {
			return History{}, fmt.Errorf("parse timeline history: line %q has no LSN", strings.TrimSpace(line))
		}
		tli, err := strconv.ParseUint(fields[0], 10, 32)
		if err != nil {
			return History{}, fmt.Errorf("parse timeline history: %w", err)
		}
		at, err := decoder.ParseLSN(fields[1])
		if err != nil {
			return History{}, fmt.Errorf("parse timeline history: %w", err)
		}
		if at < last || tli >= uint64(current) {
			return History{}, fmt.Errorf("parse timeline history: timeline %d up to %s is out of order", tli, at)
		}
		last = at
		h.ended = append(h.ended, ended{uint32(tli), at})
	}
	return h, nil
}

// Current gives the server's own timeline.
func (h History) Current() uint32 { return h.current }

// At gives the timeline to which the WAL at lsn belongs. A switch point belongs to the new timeline.
func (h History) At(lsn decoder.LSN) uint32 {
	for _, e := range h.ended {
		if lsn < e.at {
			return e.timeline
		}
	}
	return h.current
}

// Switch gives the LSN at which timeline left this server's history. ok is false for the present timeline, and for
// one that this server never was on.
func (h History) Switch(timeline uint32) (lsn decoder.LSN, ok bool) {
	for _, e := range h.ended {
		if e.timeline == timeline {
			return e.at, true
		}
	}
	return 0, false
}

// History asks the server for the history of its timeline. It must be called before Start.
func (s *Stream) History(ctx context.Context) (History, error) {
	if s.pg == nil {
		return History{}, errors.New("read timeline history: the session was started, or is closed")
	}
	if s.system.Timeline <= 1 {
		return ParseHistory(s.system.Timeline, "")
	}
	r, err := pglogrepl.TimelineHistory(ctx, s.pg, int32(s.system.Timeline))
	if err != nil {
		return History{}, fmt.Errorf("read timeline history: %w", classify(err, s.cfg))
	}
	return ParseHistory(s.system.Timeline, string(r.Content))
}
