package slot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// message is one protocol message in wire form.
func message(kind byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(body))), body...)
}

// pattern is a body whose every byte depends on its place and on the message it belongs to.
func pattern(seed, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

// eachFrame reads src to its end.
func eachFrame(f *frames, src io.Reader, take func(frame)) error {
	for {
		m, ok, err := f.next()
		switch {
		case err != nil:
			return err
		case ok:
			take(m)
			continue
		}
		if _, err := f.fill(src); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// ragged gives reads of uneven length.
type ragged struct {
	src  io.Reader
	size func() int
}

func (r ragged) Read(p []byte) (int, error) { return r.src.Read(p[:min(len(p), max(1, r.size()))]) }

func TestFramesAreTheMessagesHoweverTheBytesArrive(t *testing.T) {
	const limit = 700_000
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, limit), rapid.IntRange(limit+1, 3*limit)), 1, 12).Draw(t, "sizes")
		var wire []byte
		for i, size := range sizes {
			wire = append(wire, message('d', pattern(i, size))...)
		}
		reads := rapid.SliceOfN(rapid.IntRange(1, 300_000), 1, 8).Draw(t, "reads")
		n := 0
		src := ragged{bytes.NewReader(wire), func() int { n++; return reads[n%len(reads)] }}
		got := 0
		f := newFrames(limit)
		err := eachFrame(f, src, func(m frame) {
			want := pattern(got, sizes[got])
			if m.kind != 'd' || m.size != len(want) || m.cut != (len(want) > limit) {
				t.Fatalf("message %d: type %q, %d bytes, cut %v; want %d", got, m.kind, m.size, m.cut, len(want))
			}
			if m.cut {
				want = want[:prefixLen]
			}
			if !bytes.Equal(m.body, want) {
				t.Fatalf("message %d: body differs", got)
			}
			got++
		})
		if err != nil || got != len(sizes) {
			t.Fatalf("%d of %d messages, %v", got, len(sizes), err)
		}
		if most := headerLen + limit + minRead; len(f.buf) > max(most, baseBuffer) {
			t.Fatalf("the buffer grew to %d bytes, a message needs %d", len(f.buf), most)
		}
	})
}

func TestFramesSurviveReadsOfOneByte(t *testing.T) {
	wire := append(message('d', pattern(1, 50)), message('N', pattern(2, 3))...)
	var got []string
	err := eachFrame(newFrames(20), iotest.OneByteReader(bytes.NewReader(wire)), func(m frame) {
		got = append(got, fmt.Sprintf("%c %d %v", m.kind, len(m.body), m.cut))
	})
	if want := "[d 50 true N 3 false]"; err != nil || fmt.Sprint(got) != want {
		t.Fatalf("got %v, %v, want %s", got, err, want)
	}
}

func TestImpossibleLengthsAreMalformed(t *testing.T) {
	for name, head := range map[string][]byte{
		"below its own size":   {'d', 0, 0, 0, 3},
		"negative":             {'d', 0xff, 0xff, 0xff, 0xff},
		"a huge control":       {'E', 0x7f, 0xff, 0xff, 0xff},
		"text instead of data": []byte("HTTP/1.1 400 Bad Request"),
	} {
		err := eachFrame(newFrames(1<<20), bytes.NewReader(head), func(frame) {})
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
}

func TestBufferReturnsToItsFirstSizeAfterALargeMessage(t *testing.T) {
	f := newFrames(4 << 20)
	src := bytes.NewReader(append(message('d', pattern(1, 3<<20)), message('d', pattern(2, 100))...))
	if err := eachFrame(f, src, func(frame) {}); err != nil {
		t.Fatal(err)
	}
	if len(f.buf) < 3<<20 {
		t.Fatalf("the buffer has %d bytes", len(f.buf))
	}
	f.shrink() // a large message came since the last time
	if len(f.buf) == baseBuffer {
		t.Fatal("the buffer shrank although it was just needed")
	}
	f.shrink()
	if len(f.buf) != baseBuffer {
		t.Fatalf("the buffer still has %d bytes", len(f.buf))
	}
	got := 0
	err := eachFrame(f, bytes.NewReader(message('d', pattern(3, 100))), func(m frame) {
		got++
		if !bytes.Equal(m.body, pattern(3, 100)) {
			t.Error("body differs after shrinking")
		}
	})
	if err != nil || got != 1 {
		t.Fatalf("%d messages, %v", got, err)
	}
}

func TestShrinkingKeepsUnreadBytes(t *testing.T) {
	f := newFrames(4 << 20)
	whole := message('d', pattern(2, 1000))
	src := bytes.NewReader(append(message('d', pattern(1, 3<<20)), whole[:500]...))
	if err := eachFrame(f, src, func(frame) {}); err != nil {
		t.Fatal(err)
	}
	f.shrink()
	f.shrink()
	got := 0
	err := eachFrame(f, bytes.NewReader(whole[500:]), func(m frame) {
		got++
		if !bytes.Equal(m.body, pattern(2, 1000)) {
			t.Error("body differs")
		}
	})
	if len(f.buf) != baseBuffer || err != nil || got != 1 {
		t.Fatalf("buffer %d bytes, %d messages, %v", len(f.buf), got, err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(append(message('d', pattern(1, 90)), message('d', []byte{'k', 0})...), 7)
	f.Add(append(message('w', nil), 'd', 0x7f, 0xff, 0xff, 0xff, 1, 2), 1)
	f.Fuzz(func(t *testing.T, wire []byte, read int) {
		fs := newFrames(64)
		_ = eachFrame(fs, ragged{bytes.NewReader(wire), func() int { return read }}, func(m frame) {
			_, _, _ = walData(m.body)
			_, _, _ = keepaliveData(m.body)
			insertPrefix(m.body)
			if len(m.body) > m.size {
				t.Fatalf("body of %d bytes in a message of %d", len(m.body), m.size)
			}
		})
		if len(fs.buf) > headerLen+maxControl+minRead {
			t.Fatalf("the buffer grew to %d bytes", len(fs.buf))
		}
	})
}
