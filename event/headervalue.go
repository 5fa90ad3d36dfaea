package event

import "strings"

// AppendHeaderValue appends v to dst as it may stand in a header: control bytes, '%' and a space at either edge are
// percent-encoded in upper-case hexadecimal. DecodeHeaderValue gives v back.
func AppendHeaderValue(dst []byte, v []byte) []byte { return appendEscaped(dst, v, false) }

// DecodeHeaderValue reverses AppendHeaderValue; ok is false when a '%' is not followed by two hexadecimal digits.
func DecodeHeaderValue(s string) (v string, ok bool) {
	next := strings.IndexByte(s, '%')
	if next < 0 {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for next >= 0 {
		out = append(out, s[:next]...)
		s = s[next:]
		if len(s) < 3 || unhex(s[1]) > 15 || unhex(s[2]) > 15 {
			return "", false
		}
		out = append(out, unhex(s[1])<<4|unhex(s[2]))
		s = s[3:]
		next = strings.IndexByte(s, '%')
	}
	return string(append(out, s...)), true
}

// appendEscaped appends v with the bytes percent-encoded that must not stand in a header and, where asked, slashes.
func appendEscaped[T string | []byte](dst []byte, v T, slash bool) []byte {
	plain := 0 // v[plain:i] waits to be copied as it is
	for i := range len(v) {
		if !mustEscape(v[i], i == 0 || i == len(v)-1, slash) {
			continue
		}
		const digits = "0123456789ABCDEF"
		dst = append(dst, v[plain:i]...)
		dst = append(dst, '%', digits[v[i]>>4], digits[v[i]&15])
		plain = i + 1
	}
	return append(dst, v[plain:]...)
}

func mustEscape(b byte, edge, slash bool) bool {
	switch {
	case b > '%' && b < 0x7f:
		return slash && b == '/'
	case b < ' ', b == '%', b == 0x7f:
		return true
	}
	return edge && b == ' '
}

// unhex gives the value of a hexadecimal digit, and more than 15 for any other byte.
func unhex(b byte) byte {
	switch {
	case b >= '0' && b <= '9':
		return b - '0'
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10
	}
	return 0xff
}
