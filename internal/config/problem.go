package config

import (
	"fmt"
	"strings"

	"github.com/tidegate-cdc/tidegate/internal/exit"
)

// Problem is one thing that is wrong with a configuration. Secrets are masked in it.
type Problem struct {
	Key    string `json:"key"`    // "" when a whole source cannot be read
	Value  string `json:"value"`  // as it was given, shortened
	Origin string `json:"origin"` // where the value came from
	Reason string `json:"reason"`
	Mend   string `json:"mend,omitempty"` // what to do
}

// String gives key, value, origin and reason on one line, without the mend.
func (p Problem) String() string {
	var b strings.Builder
	if p.Key != "" {
		b.WriteString(p.Key)
		if p.Value != "" {
			fmt.Fprintf(&b, " = %s", p.Value)
		}
	}
	if p.Origin != "" {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "(%s)", p.Origin)
	}
	fmt.Fprintf(&b, ": %s", p.Reason)
	return b.String()
}

// Problems is the error of a configuration that cannot be used: everything that is wrong with it.
type Problems []Problem

// Error gives a problem a line, each followed by what to do about it.
func (ps Problems) Error() string {
	var b strings.Builder
	if len(ps) == 1 {
		b.WriteString("read configuration: 1 problem")
	} else {
		fmt.Fprintf(&b, "read configuration: %d problems", len(ps))
	}
	for _, p := range ps {
		fmt.Fprintf(&b, "\n  %s", p)
		if p.Mend != "" {
			fmt.Fprintf(&b, "\n    what to do: %s", p.Mend)
		}
	}
	return b.String()
}

// EndsProcessWith is that of a wrong configuration.
func (Problems) EndsProcessWith() int { return exit.Usage }

// shorten makes a value fit for a line of a message.
func shorten(value string) string {
	const longest = 80
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, value)
	if runes := []rune(value); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return value
}
