package decoder_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// session draws messages as a server might send them: every row behind the relation it refers to.
type session struct {
	t       *rapid.T
	columns map[uint32]int
	oids    []uint32
}

func (s *session) message() wire {
	kinds := []string{"B", "C", "O", "R", "Y", "M"}
	if len(s.oids) > 0 {
		kinds = append(kinds, "I", "I", "I", "U", "D", "T")
	}
	switch kind := rapid.SampledFrom(kinds).Draw(s.t, "kind"); kind {
	case "B":
		return wire(kind).u64(s.u64()).u64(s.u64()).u32(s.u32())
	case "C":
		return wire(kind).u8(0).u64(s.u64()).u64(s.u64()).u64(s.u64())
	case "O":
		return wire(kind).u64(s.u64()).str(s.name())
	case "R":
		return s.relation()
	case "Y":
		return wire(kind).u32(s.u32()).str(s.name()).str(s.name())
	case "M":
		content := s.blob()
		w := wire(kind).u8(s.oneOf("\x00\x01")).u64(s.u64()).str(s.name()).u32(uint32(len(content)))
		return append(w, content...)
	case "T":
		return s.truncate()
	default:
		return s.row(kind)
	}
}

func (s *session) relation() wire {
	oid := rapid.Uint32Range(1, 4).Draw(s.t, "oid") // few, so that tables change
	n := rapid.IntRange(0, 5).Draw(s.t, "columns")
	if _, known := s.columns[oid]; !known {
		s.oids = append(s.oids, oid)
	}
	s.columns[oid] = n
	w := wire("R").u32(oid).str(s.name()).str(s.name()).u8(s.oneOf("dnfi")).u16(n)
	for range n {
		w = w.column(s.oneOf("\x00\x01"), s.name(), s.u32(), int32(s.u32()))
	}
	return w
}

func (s *session) truncate() wire {
	oids := rapid.SliceOfN(rapid.SampledFrom(s.oids), 0, 4).Draw(s.t, "truncated")
	w := wire("T").u32(uint32(len(oids))).u8(s.oneOf("\x00\x01\x02\x03"))
	for _, oid := range oids {
		w = w.u32(oid)
	}
	return w
}

func (s *session) row(kind string) wire {
	oid := rapid.SampledFrom(s.oids).Draw(s.t, "row of")
	n := s.columns[oid]
	w := wire(kind).u32(oid)
	if kind == "D" || kind == "U" && rapid.Bool().Draw(s.t, "with old row") {
		w = s.tuple(w.u8(s.oneOf("KO")), n)
	}
	if kind == "D" {
		return w
	}
	return s.tuple(w.u8('N'), n)
}

func (s *session) tuple(w wire, n int) wire {
	w = w.u16(n)
	for range n {
		switch s.oneOf("ttttnub") {
		case 't':
			w = w.text(s.blob())
		case 'b':
			w = w.bytes(s.blob())
		case 'n':
			w = w.null()
		case 'u':
			w = w.unchanged()
		}
	}
	return w
}

func (s *session) u32() uint32  { return rapid.Uint32().Draw(s.t, "u32") }
func (s *session) u64() uint64  { return rapid.Uint64().Draw(s.t, "u64") }
func (s *session) name() string { return rapid.StringMatching(`[^\x00]{0,12}`).Draw(s.t, "name") }
func (s *session) blob() string { return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(s.t, "blob")) }

func (s *session) oneOf(bytes string) byte {
	return rapid.SampledFrom([]byte(bytes)).Draw(s.t, fmt.Sprintf("one of %q", bytes))
}

func TestGeneratedSessionsReadLikePglogrepl(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &session{t: t, columns: make(map[uint32]int)}
		d := decoder.New()
		var m decoder.Message
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			data := s.message()
			if err := d.Decode(data, &m); err != nil {
				t.Fatalf("%x: %v", data, err)
			}
			if err := differs(data, &m); err != nil {
				t.Fatalf("%x: %v", data, err)
			}
		}
	})
}
