package decoder_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// FuzzDecode reads one message after the relations of the recorded session. What is accepted must be read in the same
// way by pglogrepl, and hold nothing that is not in the message.
func FuzzDecode(f *testing.F) {
	for _, tt := range valid {
		f.Add([]byte(tt.data))
	}
	for _, tt := range malformed {
		f.Add([]byte(tt.data))
	}
	messages := recorded(f)
	for _, data := range messages {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := primed(t)
		var m decoder.Message
		for _, known := range messages {
			if err := d.Decode(known, &m); err != nil {
				t.Fatal(err)
			}
		}
		m = decoder.Message{}
		before := bytes.Clone(data)
		err := d.Decode(data, &m)
		if !bytes.Equal(before, data) {
			t.Fatal("Decode wrote into the message")
		}
		if err != nil {
			if !errors.Is(err, decoder.ErrMalformed) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		if held := held(&m); held > len(data) {
			t.Fatalf("%d bytes out of a message of %d", held, len(data))
		}
		if err := differs(data, &m); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzSession reads several messages, each behind two bytes of length, with one Decoder: what it remembers of one
// message must not make it trip over the next.
func FuzzSession(f *testing.F) {
	var whole []byte
	for _, data := range recorded(f) {
		if len(data) < 1000 { // the one large value would only slow the mutator down
			whole = appendMessage(whole, data)
		}
	}
	f.Add(whole)
	f.Add(appendMessage(appendMessage(appendMessage(nil, twoColumns()), insertOf("1", "a")), twoColumns()))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := decoder.New()
		var m decoder.Message
		for len(data) >= 2 {
			n := min(int(binary.BigEndian.Uint16(data)), len(data)-2)
			message := data[2 : 2+n]
			data = data[2+n:]
			if err := d.Decode(message, &m); err != nil {
				continue
			}
			if err := differs(message, &m); err != nil {
				t.Fatalf("%x: %v", message, err)
			}
		}
	})
}

func appendMessage(dst, data []byte) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(data))), data...)
}

// held counts the bytes of a message's own values.
func held(m *decoder.Message) int {
	n := 0
	switch m.Kind {
	case decoder.KindInsert, decoder.KindUpdate, decoder.KindDelete:
		for _, v := range append(m.New[:len(m.New):len(m.New)], m.Old...) {
			n += len(v.Data)
		}
	case decoder.KindRelation:
		n = len(m.Relation.Namespace) + len(m.Relation.Name)
		for _, c := range m.Relation.Columns {
			n += 9 + len(c.Name)
		}
	case decoder.KindTruncate:
		n = 4 * len(m.Truncated)
	case decoder.KindLogical:
		n = len(m.Logical.Prefix) + len(m.Logical.Content)
	case decoder.KindOrigin:
		n = len(m.Origin.Name)
	case decoder.KindType:
		n = len(m.Type.Namespace) + len(m.Type.Name)
	}
	return n
}
