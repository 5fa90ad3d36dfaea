package event

import (
	"bytes"
	"time"
)

// parseTimestamp reads a timestamptz or timestamp as PostgreSQL writes it with DateStyle ISO, to the microsecond:
// "2026-11-30 22:53:39.123456+00", offsets down to the second, years beyond 9999 and " BC" included. Without an offset
// it is UTC. infinity is no point in time.
func parseTimestamp(text []byte) (t time.Time, ok bool) {
	text, bc := bytes.CutSuffix(text, []byte(" BC"))
	s := scanner{text: text, ok: true}
	year := s.digits(4, 6)
	month := s.after('-').digits(2, 2)
	day := s.after('-').digits(2, 2)
	hour := s.after(' ').digits(2, 2)
	minute := s.after(':').digits(2, 2)
	second := s.after(':').digits(2, 2)
	micro := s.fraction()
	offset := s.offset()
	if !s.ok || len(s.text) > 0 || year == 0 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	if bc {
		year = 1 - year
	}
	t = time.Date(year, time.Month(month), day, hour, minute, second, micro*1000, time.UTC)
	if t.Month() != time.Month(month) || t.Day() != day {
		return time.Time{}, false
	}
	return t.Add(-offset), true
}

// scanner reads fixed fields from the front of text. Once something does not fit, ok is false for good.
type scanner struct {
	text []byte
	ok   bool
}

// after reads one byte that must be b.
func (s *scanner) after(b byte) *scanner {
	if !s.next(b) {
		s.ok = false
	}
	return s
}

// next reads one byte if it is b.
func (s *scanner) next(b byte) bool {
	if len(s.text) == 0 || s.text[0] != b {
		return false
	}
	s.text = s.text[1:]
	return true
}

// digits reads a number of least to most digits.
func (s *scanner) digits(least, most int) int {
	n, read := 0, 0
	for read < most && read < len(s.text) && s.text[read] >= '0' && s.text[read] <= '9' {
		n = n*10 + int(s.text[read]-'0')
		read++
	}
	if read < least {
		s.ok = false
	}
	s.text = s.text[read:]
	return n
}

// fraction reads up to six decimals, as microseconds.
func (s *scanner) fraction() int {
	if !s.next('.') {
		return 0
	}
	before := len(s.text)
	n := s.digits(1, 6)
	for read := before - len(s.text); read < 6; read++ {
		n *= 10
	}
	return n
}

// offset reads "+00", "-03:30" or "+05:41:16".
func (s *scanner) offset() time.Duration {
	sign := time.Second
	switch {
	case s.next('+'):
	case s.next('-'):
		sign = -sign
	default:
		return 0
	}
	n := s.digits(2, 2) * 3600
	if s.next(':') {
		n += s.digits(2, 2) * 60
		if s.next(':') {
			n += s.digits(2, 2)
		}
	}
	return time.Duration(n) * sign
}
