package slot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// wal puts pgoutput messages into XLogData into CopyData.
type wal struct{ bytes.Buffer }

func (w *wal) put(lsn uint64, data ...any) {
	body := binary.BigEndian.AppendUint64([]byte{'w'}, lsn)
	body = append(body, make([]byte, 16)...)
	for _, d := range data {
		switch d := d.(type) {
		case string:
			body = append(body, d...)
		default:
			body, _ = binary.Append(body, binary.BigEndian, d)
		}
	}
	w.Write(message('d', body))
}

func (w *wal) relation() {
	w.put(0, "R", uint32(16400), "public\x00outbox\x00", byte('d'), uint16(2),
		byte(1), "id\x00", uint32(20), int32(-1), byte(0), "payload\x00", uint32(25), int32(-1))
}

// transaction writes rows of 316 bytes.
func (w *wal) transaction(lsn uint64, rows int) {
	payload := strings.Repeat("x", 316)
	w.put(lsn, "B", lsn+1000, uint64(0), uint32(7))
	for range rows {
		w.put(lsn, "I", uint32(16400), "N", uint16(2), "t", uint32(7), "1234567", "t", uint32(len(payload)), payload)
	}
	w.put(lsn+1100, "C", byte(0), lsn+1000, lsn+1100, uint64(0))
}

// counter is the least that a Handler can do.
type counter struct{ rows, commits int }

func (c *counter) Handle(m *decoder.Message, _ decoder.LSN) error {
	switch m.Kind {
	case decoder.KindInsert:
		c.rows++
	case decoder.KindCommit:
		c.commits++
	}
	return nil
}
func (c *counter) Idle(decoder.LSN) {}
func (c *counter) Full() bool       { return false }
func (c *counter) Flush()           {}

// offline is a session without a server.
func offline(t testing.TB) *Stream {
	s := &Stream{dec: decoder.New(), tables: map[uint32]*decoder.Relation{}, frames: newFrames(DefaultMaxRow)}
	s.pos = beginAt(t, 1, 1)
	s.cfg.Publication = "p"
	s.log = s.cfg.logger()
	return s
}

// replay hands over what src holds.
func (s *Stream) replay(src io.Reader, h Handler) error {
	for {
		if _, err := s.drain(h); err != nil {
			return err
		}
		if _, err := s.frames.fill(src); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestRowsAreHandedOverWithoutAllocation(t *testing.T) {
	var w wal
	w.relation()
	w.transaction(0x1000, 1000)
	s, src, h := offline(t), bytes.NewReader(w.Bytes()), &counter{}
	once := func() {
		src.Reset(w.Bytes())
		if err := s.replay(src, h); err != nil {
			t.Fatal(err)
		}
	}
	once()
	if h.rows != 1000 || h.commits != 1 {
		t.Fatalf("%d rows, %d commits", h.rows, h.commits)
	}
	if n := testing.AllocsPerRun(20, once); n > 8 {
		t.Fatalf("%v allocations for 1000 rows and a relation", n)
	}
}

func BenchmarkFrameAndDecode(b *testing.B) {
	for name, rows := range map[string]int{"1 row a transaction": 1, "100 rows a transaction": 100} {
		b.Run(name, func(b *testing.B) {
			var w wal
			w.relation()
			for i := range 10_000 / rows {
				w.transaction(uint64(0x1000+i*2000), rows)
			}
			s, src, h := offline(b), bytes.NewReader(nil), &counter{}
			b.SetBytes(int64(w.Len()))
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(w.Bytes())
				if err := s.replay(src, h); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(h.rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(h.rows), "ns/row")
		})
	}
}
