package slot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
)

func TestBytesThatAreNoStreamEndIt(t *testing.T) {
	row := func(data string) []byte { return message('d', []byte("w"+strings.Repeat("\x00", 24)+data)) }
	for name, wire := range map[string][]byte{
		"empty CopyData":     message('d', nil),
		"unknown CopyData":   message('d', []byte("x")),
		"short XLogData":     message('d', []byte("w123")),
		"short keepalive":    message('d', []byte("k123")),
		"unknown message":    message('!', nil),
		"unknown pgoutput":   row("?"),
		"row of no relation": row("I\x00\x00\x00\x01N\x00\x00"),
		"broken error":       message('E', []byte("S")),
		"copy done":          message('c', nil),
	} {
		if err := offline(t).replay(bytes.NewReader(wire), &counter{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestNoticeOfASkippedPublicationIsDrift(t *testing.T) {
	notice := func(code, text string) []byte {
		return message('N', []byte("SWARNING\x00VWARNING\x00C"+code+"\x00M"+text+"\x00\x00"))
	}
	s := offline(t)
	if err := s.replay(bytes.NewReader(notice("01000", "anything else")), &counter{}); err != nil {
		t.Fatal(err)
	}
	err := s.replay(bytes.NewReader(notice("55000", `skipped loading publication "p"`)), &counter{})
	var drift *DriftError
	if !errors.As(err, &drift) || drift.Object != "publication p" {
		t.Fatalf("%v", err)
	}
}

// TestKeepaliveInsideATransactionIsNotIdle: a long transaction is interleaved with keepalives.
func TestKeepaliveInsideATransactionIsNotIdle(t *testing.T) {
	keepaliveAt := func(lsn uint64) []byte {
		return message('d', append(binary.BigEndian.AppendUint64([]byte{'k'}, lsn), make([]byte, 9)...))
	}
	var w wal
	w.put(0x10, "B", uint64(0x50), uint64(0), uint32(7))
	w.Write(keepaliveAt(0x40))
	w.put(0x60, "C", byte(0), uint64(0x50), uint64(0x60), uint64(0))
	w.Write(keepaliveAt(0x70))
	h := &idler{}
	s := offline(t)
	if err := s.replay(&w, h); err != nil {
		t.Fatal(err)
	}
	if len(h.idle) != 1 || h.idle[0] != 0x70 {
		t.Fatalf("idle at %v, want only 0/70", h.idle)
	}
	wantStatus(t, s.pos, 0x70, 1)
}

type idler struct {
	counter
	idle []decoder.LSN
}

func (i *idler) Idle(lsn decoder.LSN) { i.idle = append(i.idle, lsn) }
