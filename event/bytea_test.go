package event

import (
	"bytes"
	"fmt"
	"testing"
)

func TestByteaIsReadInBothForms(t *testing.T) {
	for text, want := range map[string]string{
		`\x`:           "",
		`\x00ff5c78`:   "\x00\xff\\x",
		`\xDEADBEEF`:   "\xde\xad\xbe\xef",
		``:             "",
		`plain`:        "plain",
		`\\x41`:        `\x41`,
		`a\000\377\\b`: "a\x00\xff\\b",
		`\001tail`:     "\x01tail",
	} {
		got, ok := appendBytea(nil, []byte(text))
		if !ok || string(got) != want {
			t.Errorf("%q: got %q, %t, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{`\x0`, `\xzz`, `\`, `\4`, `\400`, `\08`, `\0 0`, `\01`, `\018`, `a\'`} {
		if got, ok := appendBytea(nil, []byte(text)); ok {
			t.Errorf("%q was read as %q", text, got)
		}
	}
}

// FuzzBytea writes bytes in both of PostgreSQL's forms and reads them back; byteaLen must not be less than they need.
func FuzzBytea(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("\x00\\x\xff'\\\\plain"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var escaped bytes.Buffer
		for _, b := range raw {
			switch {
			case b == '\\':
				escaped.WriteString(`\\`)
			case b < ' ' || b > '~':
				fmt.Fprintf(&escaped, `\%03o`, b)
			default:
				escaped.WriteByte(b)
			}
		}
		for _, text := range [][]byte{fmt.Appendf(nil, `\x%x`, raw), escaped.Bytes()} {
			got, ok := appendBytea(nil, text)
			if !ok || !bytes.Equal(got, raw) || len(got) > byteaLen(text) {
				t.Errorf("%q: got %q, %t, want %q", text, got, ok, raw)
			}
		}
		if got, ok := appendBytea(nil, raw); ok && len(got) > byteaLen(raw) {
			t.Errorf("%q: %d bytes, promised at most %d", raw, len(got), byteaLen(raw))
		}
	})
}
