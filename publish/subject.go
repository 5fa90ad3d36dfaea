package publish

import "strings"

// covers reports whether every subject that s stands for, wildcards included, is among those of the pattern.
func covers(pattern, s string) bool {
	for {
		p, patternRest, patternMore := strings.Cut(pattern, ".")
		t, rest, more := strings.Cut(s, ".")
		if p == ">" {
			return true
		}
		if t == ">" || p != "*" && p != t {
			return false
		}
		if !patternMore || !more {
			return patternMore == more
		}
		pattern, s = patternRest, rest
	}
}

func coveredByAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if covers(p, s) {
			return true
		}
	}
	return false
}

// literal reports whether a message can be published at s and found there again: tokens that are not empty, no
// wildcard for a token, nothing that ends a word of the protocol.
func literal(s string) bool {
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '.' {
			if s[i] <= ' ' || s[i] == 0x7f {
				return false
			}
			continue
		}
		if token := s[start:i]; token == "" || token == "*" || token == ">" {
			return false
		}
		start = i + 1
	}
	return true
}
