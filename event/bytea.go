package event

import (
	"bytes"
	"encoding/hex"
)

// A bytea comes as text in one of two forms, by the database's bytea_output: "hex" and "escape". See "Binary Data
// Types" in PostgreSQL's documentation. They cannot be mistaken for one another: "escape" doubles a backslash.
const hexPrefix = `\x`

// byteaLen gives how many bytes appendBytea appends at most.
func byteaLen(text []byte) int {
	if bytes.HasPrefix(text, []byte(hexPrefix)) {
		return hex.DecodedLen(len(text) - len(hexPrefix))
	}
	return len(text)
}

// appendBytea appends the bytes that text stands for.
func appendBytea(dst, text []byte) (out []byte, ok bool) {
	digits, isHex := bytes.CutPrefix(text, []byte(hexPrefix))
	if !isHex {
		return appendEscapedBytea(dst, text)
	}
	dst, err := hex.AppendDecode(dst, digits)
	return dst, err == nil
}

// appendEscapedBytea reads the "escape" form: a backslash is doubled, a byte that is not printable ASCII is a
// backslash and three octal digits.
func appendEscapedBytea(dst, text []byte) (out []byte, ok bool) {
	for len(text) > 0 {
		plain := bytes.IndexByte(text, '\\')
		if plain < 0 {
			return append(dst, text...), true
		}
		dst = append(dst, text[:plain]...)
		text = text[plain+1:]
		switch {
		case len(text) >= 1 && text[0] == '\\':
			dst = append(dst, '\\')
			text = text[1:]
		case len(text) >= 3 && isOctal(text[0], '3') && isOctal(text[1], '7') && isOctal(text[2], '7'):
			dst = append(dst, (text[0]-'0')<<6|(text[1]-'0')<<3|(text[2]-'0'))
			text = text[3:]
		default:
			return dst, false
		}
	}
	return dst, true
}

func isOctal(b, greatest byte) bool { return b >= '0' && b <= greatest }
