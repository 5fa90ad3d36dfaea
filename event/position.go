package event

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// Position is where a row stands in a source's history: the timeline on which its transaction was written, the LSN
// at which that transaction's commit record begins, and the row's index among the transaction's published inserts.
// Positions of one source are compared in that order. The zero Position belongs to rows that were read from a table.
type Position struct {
	Timeline uint32
	Commit   decoder.LSN
	Index    uint32
}

// PositionLen is the length of a Position as text.
const PositionLen = 8 + 1 + 16 + 1 + 8

// IsZero reports whether the row has no place in the WAL.
func (p Position) IsZero() bool { return p == Position{} }

// Compare gives -1, 0 or +1 as p is before, at or after q. It agrees with comparing the texts.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.Timeline, q.Timeline); c != 0 {
		return c
	}
	if c := cmp.Compare(p.Commit, q.Commit); c != 0 {
		return c
	}
	return cmp.Compare(p.Index, q.Index)
}

// AppendText appends "<timeline, 8 hex>-<commit LSN, 16 hex>-<index, 8 hex>", upper case, to dst.
func (p Position) AppendText(dst []byte) []byte {
	var raw [16]byte
	binary.BigEndian.PutUint32(raw[0:], p.Timeline)
	binary.BigEndian.PutUint64(raw[4:], uint64(p.Commit))
	binary.BigEndian.PutUint32(raw[12:], p.Index)
	for i, b := range raw {
		if i == 4 || i == 12 {
			dst = append(dst, '-')
		}
		const digits = "0123456789ABCDEF"
		dst = append(dst, digits[b>>4], digits[b&15])
	}
	return dst
}

// String gives the text that AppendText writes.
func (p Position) String() string { return string(p.AppendText(make([]byte, 0, PositionLen))) }

// ParsePosition reads what AppendText wrote.
func ParsePosition(s string) (Position, error) {
	if len(s) != PositionLen || s[8] != '-' || s[25] != '-' {
		return Position{}, fmt.Errorf("parse position %q: want <8 hex>-<16 hex>-<8 hex>", s)
	}
	var raw [16]byte
	if _, err := hex.Decode(raw[:], []byte(s[:8]+s[9:25]+s[26:])); err != nil || strings.ToUpper(s) != s {
		return Position{}, fmt.Errorf("parse position %q: want upper-case hexadecimal", s)
	}
	return Position{
		Timeline: binary.BigEndian.Uint32(raw[0:]),
		Commit:   decoder.LSN(binary.BigEndian.Uint64(raw[4:])),
		Index:    binary.BigEndian.Uint32(raw[12:]),
	}, nil
}
