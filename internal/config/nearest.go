package config

import "strings"

// nearest gives the candidate that word most likely stands for, or "" when none is close. Candidates and word are
// paths; one that differs only in where it stands is close.
func nearest(word string, candidates []string) string {
	const longest = 100 // longer than any word is no misspelling of it
	if len(word) > longest {
		return ""
	}
	best, bestDistance := "", len(word)/3+2
	for _, c := range candidates {
		d := editDistance(word, c)
		if last(word) == last(c) {
			d = min(d, 2)
		} else if last := editDistance(last(word), last(c)); last <= len(c)/8 {
			d = min(d, last+2)
		}
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

func last(path string) string { return path[strings.LastIndexAny(path, ".")+1:] }

// editDistance counts the insertions, deletions, replacements and swaps of neighbours between a and b.
func editDistance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
