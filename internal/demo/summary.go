package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/exit"
)

// Summary is what the demo found: outbox rows against the messages of the whole stream, nothing deduplicated.
type Summary struct {
	Committed  int `json:"committed"`
	Published  int `json:"published"`
	RolledBack int `json:"rolled_back"`
	Missing    int `json:"missing"`
	Unexpected int `json:"unexpected"` // messages of rows that were never committed
	Duplicates int `json:"duplicates"`
	OutOfOrder int `json:"out_of_order"`
	Misplaced  int `json:"misplaced"` // messages under another aggregate than their row's

	P50    Milliseconds `json:"commit_to_stream_p50_ms"`
	P99    Milliseconds `json:"commit_to_stream_p99_ms"`
	Folder string       `json:"folder,omitempty"` // what was kept

	// Examples name some of the rows that are not as they should be.
	Examples []string `json:"examples,omitempty"`
}

// Milliseconds is a duration that JSON shows in milliseconds, to the microsecond.
type Milliseconds time.Duration

// MarshalJSON gives a number with three decimals.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", time.Duration(m).Seconds()*1000), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Milliseconds) UnmarshalJSON(text []byte) error {
	var number float64
	if err := json.Unmarshal(text, &number); err != nil {
		return err
	}
	*m = Milliseconds(number * float64(time.Millisecond))
	return nil
}

func (m Milliseconds) String() string { return fmt.Sprintf("%.1f ms", time.Duration(m).Seconds()*1000) }

// print writes the summary for people.
func (s *Summary) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-17s %d outbox rows\n%-17s %d messages\n", "committed", s.Committed, "published", s.Published)
	fmt.Fprintf(&b, "%-17s %d rows, on purpose\n", "rolled back", s.RolledBack)
	for _, c := range s.faults() {
		fmt.Fprintf(&b, "%-17s %d\n", c.name, c.count)
	}
	fmt.Fprintf(&b, "%-17s p50 %v, p99 %v\n", "commit to stream", s.P50, s.P99)
	for _, example := range s.Examples {
		fmt.Fprintf(&b, "  %s\n", example)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Summary) printJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

type fault struct {
	name  string
	count int
}

func (s *Summary) faults() []fault {
	return []fault{
		{"missing", s.Missing},
		{"unexpected", s.Unexpected},
		{"duplicates", s.Duplicates},
		{"out of order", s.OutOfOrder},
		{"misplaced", s.Misplaced},
	}
}

// verdict is nil when every committed row is in the stream once and in order, and nothing else is.
func (s *Summary) verdict() error {
	var wrong []string
	for _, f := range s.faults() {
		if f.count != 0 {
			wrong = append(wrong, fmt.Sprintf("%s %d", f.name, f.count))
		}
	}
	if s.Committed == 0 {
		wrong = append(wrong, "nothing was committed")
	}
	if wrong == nil {
		return nil
	}
	return &exit.Error{
		Code: exit.Found, Err: errors.New("compare outbox and stream: " + strings.Join(wrong, ", ")),
		Hint: "run it again with --keep and read the bridge's log",
	}
}
