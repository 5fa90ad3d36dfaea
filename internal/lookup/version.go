package lookup

import (
	"bytes"
	"cmp"
)

// compareVersions orders two versions given as text: decimal numbers of any length by value, all else byte by byte,
// which is right for timestamps in ISO form and tells apart what has no order.
func compareVersions(a, b []byte) int {
	x, okX := parseNumber(a)
	y, okY := parseNumber(b)
	if !okX || !okY {
		return bytes.Compare(a, b)
	}
	if x.negative != y.negative {
		if x.negative {
			return -1
		}
		return 1
	}
	c := cmp.Or(cmp.Compare(len(x.whole), len(y.whole)), bytes.Compare(x.whole, y.whole), bytes.Compare(x.part, y.part))
	if x.negative {
		return -c
	}
	return c
}

// number is a decimal number without leading zeros before and trailing zeros behind the point. Zero is not negative.
type number struct {
	negative    bool
	whole, part []byte
}

func parseNumber(text []byte) (number, bool) {
	digits, negative := bytes.CutPrefix(text, []byte("-"))
	whole, part, pointed := bytes.Cut(digits, []byte("."))
	if len(whole) == 0 || (pointed && len(part) == 0) || !allDigits(whole) || !allDigits(part) {
		return number{}, false
	}
	n := number{whole: bytes.TrimLeft(whole, "0"), part: bytes.TrimRight(part, "0")}
	n.negative = negative && len(n.whole)+len(n.part) > 0
	return n, true
}

func allDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
