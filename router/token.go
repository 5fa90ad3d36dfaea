package router

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// emptyToken stands for an empty value: a '%' that no encoded byte follows.
const emptyToken = "%"

const hexDigits = "0123456789ABCDEF"

// AppendToken appends v to dst as exactly one subject token: control characters, space, '.', '*', '>', '%', a leading
// '$' and bytes that are not UTF-8 are percent-encoded in upper-case hexadecimal; an empty value is "%". Unescape gives
// v back, and different values give different tokens.
func AppendToken(dst, v []byte) []byte {
	if len(v) == 0 {
		return append(dst, emptyToken...)
	}
	plain := 0 // v[plain:i] waits to be copied as it is
	for i := 0; i < len(v); {
		size, keep := classify(v[i:], i == 0)
		if !keep {
			dst = append(dst, v[plain:i]...)
			for _, b := range v[i : i+size] {
				dst = append(dst, '%', hexDigits[b>>4], hexDigits[b&15])
			}
			plain = i + size
		}
		i += size
	}
	return append(dst, v[plain:]...)
}

// classify gives the length of the character that v begins with, and whether it may stand in a token as it is.
func classify(v []byte, first bool) (size int, keep bool) {
	if b := v[0]; b < utf8.RuneSelf {
		switch {
		case b <= ' ', b == 0x7f, b == '.', b == '*', b == '>', b == '%':
			return 1, false
		}
		return 1, b != '$' || !first
	}
	r, size := utf8.DecodeRune(v)
	return size, !unicode.IsControl(r) && (r != utf8.RuneError || size > 1)
}

// Unescape gives the value of a token that AppendToken wrote; ok is false for any other text.
func Unescape(token string) (value string, ok bool) {
	if token == emptyToken {
		return "", true
	}
	var b strings.Builder
	for rest := token; rest != ""; {
		next := strings.IndexByte(rest, '%')
		if next < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:next])
		if len(rest) < next+3 {
			return "", false
		}
		high := strings.IndexByte(hexDigits, rest[next+1])
		low := strings.IndexByte(hexDigits, rest[next+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		rest = rest[next+3:]
	}
	value = b.String()
	return value, string(AppendToken(nil, []byte(value))) == token
}
