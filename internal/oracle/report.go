package oracle

import (
	"fmt"
	"maps"
	"strings"
)

// examples is how many examples of each kind a Report names.
const examples = 5

// Report counts what the comparison found.
type Report struct {
	Committed int // rows
	Stored    int // messages

	Missing    int // rows of which no message is stored
	Extra      int // messages of no committed row
	Duplicate  int // messages of a row that was stored before
	OutOfOrder int // rows first stored after a later row of their aggregate, without saying so
	Misplaced  int // rows stored under another aggregate than their own
	Late       int // messages that say that they are out of their place: no fault
	Foreign    int // messages of others, where others publish to the stream too: no fault

	// Examples names some of each kind.
	Examples []string

	named map[string]int
}

// Clean reports whether every committed row is stored once, in its place, and nothing else is.
func (r *Report) Clean() bool {
	return r.Missing == 0 && r.Extra == 0 && r.Duplicate == 0 && r.OutOfOrder == 0 && r.Misplaced == 0
}

// String is the counts in one line, then the examples, one a line.
func (r *Report) String() string {
	line := fmt.Sprintf("committed %d, stored %d, missing %d, extra %d, duplicates %d, out of order %d, misplaced %d, late %d",
		r.Committed, r.Stored, r.Missing, r.Extra, r.Duplicate, r.OutOfOrder, r.Misplaced, r.Late)
	if r.Foreign > 0 {
		line += fmt.Sprintf(", foreign %d", r.Foreign)
	}
	return strings.Join(append([]string{line}, r.Examples...), "\n")
}

// example keeps the first few of each kind.
func (r *Report) example(kind, format string, args ...any) {
	if r.named[kind] == examples {
		return
	}
	named := maps.Clone(r.named) // a copy of the Report goes its own way
	if named == nil {
		named = map[string]int{}
	}
	named[kind]++
	r.named = named
	r.Examples = append(r.Examples, kind+": "+fmt.Sprintf(format, args...))
}
