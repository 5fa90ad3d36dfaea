package router

import (
	"strings"

	"github.com/tidegate-cdc/tidegate/event"
)

// tokenList names the tokens that an outbox of a kind may use.
func tokenList(kind event.Kind) string {
	var names []string
	for _, v := range vocabulary {
		if !v.feature || kind == event.KindFeature {
			names = append(names, "{"+v.name+"}")
		}
	}
	return strings.Join(names, " ")
}

// nearest gives the token of an outbox of a kind whose name takes the fewest edits to reach.
func nearest(name string, kind event.Kind) string {
	best, least := "", -1
	for _, v := range vocabulary {
		if v.feature && kind != event.KindFeature {
			continue
		}
		if d := edits(name, v.name); least < 0 || d < least {
			best, least = v.name, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
