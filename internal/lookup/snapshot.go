package lookup

import (
	"fmt"
	"strconv"
	"strings"
)

// snapshot is what pg_current_snapshot gives: which transactions the statement saw.
type snapshot struct {
	xmax    uint32 // the first transaction that had not begun, low 32 bits
	running []uint32
}

// parse reads "xmin:xmax:xip,…", numbers of 64 bits, and keeps the memory of s.
func (s *snapshot) parse(text string) error {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return fmt.Errorf("read snapshot %q: want xmin:xmax:list", text)
	}
	xmax, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return fmt.Errorf("read snapshot %q: %w", text, err)
	}
	s.xmax, s.running = uint32(xmax), s.running[:0]
	for list := parts[2]; list != ""; {
		var number string
		number, list, _ = strings.Cut(list, ",")
		xid, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return fmt.Errorf("read snapshot %q: %w", text, err)
		}
		s.running = append(s.running, uint32(xid))
	}
	return nil
}

// sees reports whether a transaction that is known to have committed is visible. The numbers are compared on their low
// 32 bits, as PostgreSQL itself does, so the answer holds across the border of 2^32. It holds on a primary only.
func (s *snapshot) sees(xid uint32) bool {
	if int32(xid-s.xmax) >= 0 {
		return false
	}
	for _, r := range s.running {
		if r == xid {
			return false
		}
	}
	return true
}
