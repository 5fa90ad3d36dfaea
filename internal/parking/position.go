package parking

import (
	"crypto/sha256"
	"encoding/hex"
)

const (
	tableMark = '!' // sorts before every digit
	// maxName keeps names within what an index of PostgreSQL takes: about 2,700 bytes.
	maxName = 1000
)

// TablePosition is the Position of a row that was read from its table: "!<schema.table>:<id>", printable ASCII whatever
// the id holds. Two rows of one table have the same only when they have the same id.
func TablePosition(table string, id []byte) string {
	name := appendPrintable([]byte{tableMark}, []byte(table))
	name = appendPrintable(append(name, ':'), id)
	if len(name) <= maxName {
		return string(name)
	}
	sum := sha256.Sum256(name)
	return string(name[:maxName-2*sha256.Size-1]) + "~" + hex.EncodeToString(sum[:])
}

func appendPrintable(dst, text []byte) []byte {
	const digits = "0123456789ABCDEF"
	for _, b := range text {
		if b > ' ' && b < 0x7f && b != '%' && b != '~' {
			dst = append(dst, b)
		} else {
			dst = append(dst, '%', digits[b>>4], digits[b&15])
		}
	}
	return dst
}
