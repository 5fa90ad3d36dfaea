package decoder_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
)

var malformed = []struct {
	name string
	data wire
	want string // in the error
}{
	{"nothing", nil, "empty message"},
	{"unknown kind", wire("Z"), "decode message of kind 'Z': not a message of protocol version 1"},
	{"streamed transaction", wire("S").u32(1).u8(1), "not a message of protocol version 1"},
	{"row of an unknown relation", wire("I").u32(5).u8('N').u16(0), "decode insert: relation not described before at byte 5 of 8"},
	{"truncate of an unknown relation", wire("T").u32(1).u8(0).u32(5), "relation not described before"},
	{"insert of an old row", wire("I").u32(relationOID).u8('O').u16(2).null().null(), "no new tuple"},
	{"update of nothing", wire("U").u32(relationOID).u8('X').u16(2).null().null(), "no new tuple"},
	{"update without a new row", wire("U").u32(relationOID).u8('K').u16(2).null().null().u8('K').u16(2).null().null(), "no new tuple"},
	{"delete of a new row", wire("D").u32(relationOID).u8('N').u16(2).null().null(), "no old tuple"},
	{"value of an unknown kind", wire("I").u32(relationOID).u8('N').u16(2).u8('x').null(), "unknown value kind"},
	{"more columns than the relation", wire("I").u32(relationOID).u8('N').u16(3).null().null().null(), "another number of columns"},
	{"fewer columns than the relation", wire("I").u32(relationOID).u8('N').u16(1).null(), "another number of columns"},
	{"more columns than bytes", wire("I").u32(relationOID).u8('N').u16(2).null(), "more columns than bytes"},
	{"negative value length", wire("I").u32(relationOID).u8('N').u16(2).u8('t').u32(1 << 31).null(), "short value"},
	{"huge value length", wire("I").u32(relationOID).u8('N').u16(2).u8('t').u32(^uint32(0)).null(), "short value"},
	{"huge relation count", wire("T").u32(^uint32(0)).u8(0).u32(relationOID), "more relations than bytes"},
	{"huge column count", wire("R").u32(9).str("a").str("b").u8('d').u16(65535).column(0, "x", 1, 1), "more columns than bytes"},
	{"one column more than there is room for", wire("R").u32(9).str("a").str("b").u8('d').u16(2).column(0, "x", 1, 1), "more columns than bytes"},
	{"huge content length", wire("M").u8(0).u64(1).str("p").u32(^uint32(0)).u8(1), "short content"},
	{"name without an end", append(wire("O").u64(1), "abc"...), "short name"},
	{"relation without a name", wire("R").u32(9).str("a"), "short name"},
}

func TestMalformedMessageIsAnError(t *testing.T) {
	for _, tt := range malformed {
		t.Run(tt.name, func(t *testing.T) {
			err := primed(t).Decode(tt.data, new(decoder.Message))
			if !errors.Is(err, decoder.ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestMessageCutAnywhereIsAnError(t *testing.T) {
	for _, tt := range valid {
		for n := range tt.data {
			if err := primed(t).Decode(tt.data[:n], new(decoder.Message)); !errors.Is(err, decoder.ErrMalformed) {
				t.Errorf("%s cut at %d: %v", tt.name, n, err)
			}
		}
	}
}

func TestTrailingBytesAreAnError(t *testing.T) {
	for _, tt := range valid {
		err := primed(t).Decode(append(tt.data[:len(tt.data):len(tt.data)], 0), new(decoder.Message))
		if !errors.Is(err, decoder.ErrMalformed) || !strings.Contains(err.Error(), "trailing bytes") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestDecoderGoesOnAfterAMalformedMessage(t *testing.T) {
	d := primed(t)
	for _, tt := range malformed {
		var m decoder.Message
		if err := d.Decode(tt.data, &m); err == nil {
			t.Fatalf("%s: no error", tt.name)
		}
		if err := d.Decode(insertOf("1", "a"), &m); err != nil || string(m.New[1].Data) != "a" {
			t.Errorf("after %s: %v %v", tt.name, m.New, err)
		}
	}
}

func TestWireLengthsDoNotDriveMemory(t *testing.T) {
	const most = 4 << 10 // an error and a short string; the lengths above claim up to 16 GiB
	for _, tt := range malformed {
		d := primed(t)
		var m decoder.Message
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := d.Decode(tt.data, &m)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%s: %d bytes allocated for a message of %d (%v)", tt.name, got, len(tt.data), err)
		}
	}
}
