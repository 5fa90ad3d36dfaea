package router

import "unicode/utf8"

// appendScalar appends a value of the database: NULL as null, an integer as the number that its text is, with all of
// its digits, anything else as a string.
func appendScalar(dst, v []byte) []byte {
	switch {
	case v == nil:
		return append(dst, "null"...)
	case isInteger(v):
		return append(dst, v...)
	default:
		return appendString(dst, v)
	}
}

// isInteger reports whether v is an integer as both PostgreSQL and JSON write it.
func isInteger(v []byte) bool {
	if len(v) > 1 && v[0] == '-' {
		v = v[1:]
		if v[0] == '0' {
			return false
		}
	}
	for _, b := range v {
		if b < '0' || b > '9' {
			return false
		}
	}
	return len(v) == 1 || len(v) > 1 && v[0] != '0'
}

// appendString appends v as a JSON string. A byte that is not UTF-8 becomes U+FFFD: JSON has no other way.
func appendString(dst, v []byte) []byte {
	dst = append(dst, '"')
	plain := 0 // v[plain:i] waits to be copied as it is
	for i := 0; i < len(v); {
		size, escape := 1, ""
		switch b := v[i]; {
		case b == '"':
			escape = `\"`
		case b == '\\':
			escape = `\\`
		case b < ' ':
			escape = controls[b]
		case b >= utf8.RuneSelf:
			var r rune
			if r, size = utf8.DecodeRune(v[i:]); r == utf8.RuneError && size == 1 {
				escape = `\ufffd`
			}
		}
		if escape != "" {
			dst = append(append(dst, v[plain:i]...), escape...)
			plain = i + size
		}
		i += size
	}
	return append(append(dst, v[plain:]...), '"')
}

// controls are the escapes of the control characters, the short ones where JSON has them.
var controls = [' ']string{
	`\u0000`, `\u0001`, `\u0002`, `\u0003`, `\u0004`, `\u0005`, `\u0006`, `\u0007`,
	`\b`, `\t`, `\n`, `\u000b`, `\f`, `\r`, `\u000e`, `\u000f`,
	`\u0010`, `\u0011`, `\u0012`, `\u0013`, `\u0014`, `\u0015`, `\u0016`, `\u0017`,
	`\u0018`, `\u0019`, `\u001a`, `\u001b`, `\u001c`, `\u001d`, `\u001e`, `\u001f`,
}
