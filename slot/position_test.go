package slot

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tidegate-cdc/tidegate/decoder"
)

func beginAt(t testing.TB, confirmed, end decoder.LSN) *Position {
	t.Helper()
	p, err := NewPosition(confirmed, end)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantStatus(t testing.TB, p *Position, write, flush decoder.LSN) {
	t.Helper()
	w, f, a := p.Status()
	if w != write || f != flush || a != flush {
		t.Fatalf("status is write %s flush %s apply %s, want write %s flush %s", w, f, a, write, flush)
	}
}

func TestSessionBeginsWhereItsSlotIsConfirmed(t *testing.T) {
	wantStatus(t, beginAt(t, 100, 100), 100, 100)
	wantStatus(t, beginAt(t, 100, 500), 100, 100)
}

func TestSessionDoesNotBeginWithoutAConfirmedPosition(t *testing.T) {
	if _, err := NewPosition(0, 100); err == nil {
		t.Fatal("a slot without a position was accepted")
	}
}

func TestSessionDoesNotBeginBeyondTheServersWAL(t *testing.T) {
	if _, err := NewPosition(101, 100); err == nil {
		t.Fatal("a slot that is ahead of its server was accepted")
	}
}

func TestZeroIsNeverConfirmed(t *testing.T) {
	p := beginAt(t, 100, 100)
	if _, err := p.Confirm(0); err == nil {
		t.Fatal("0 was confirmed")
	}
	wantStatus(t, p, 100, 100)
}

func TestNothingBeyondTheServersWALIsConfirmed(t *testing.T) {
	p := beginAt(t, 100, 100)
	p.WALEnd(200)
	if _, err := p.Confirm(201); err == nil {
		t.Fatal("201 of 200 was confirmed")
	}
	wantStatus(t, p, 100, 100)
	if ok, err := p.Confirm(200); !ok || err != nil {
		t.Fatalf("the WAL end itself: %v, %v", ok, err)
	}
	wantStatus(t, p, 200, 200)
}

func TestConfirmedNeverFallsWithinASession(t *testing.T) {
	p := beginAt(t, 100, 300)
	for _, c := range []struct {
		lsn      decoder.LSN
		advanced bool
		flush    decoder.LSN
	}{{99, false, 100}, {100, false, 100}, {250, true, 250}, {249, false, 250}, {250, false, 250}, {300, true, 300}} {
		advanced, err := p.Confirm(c.lsn)
		if err != nil || advanced != c.advanced {
			t.Fatalf("confirm %d: %v, %v", c.lsn, advanced, err)
		}
		wantStatus(t, p, c.flush, c.flush)
	}
}

func TestReceivedIsWrittenButNotFlushed(t *testing.T) {
	p := beginAt(t, 100, 100)
	p.Received(400)
	p.Received(0)
	p.Received(300) // changes of transactions that ran side by side
	wantStatus(t, p, 400, 100)
	if p.End() != 400 {
		t.Fatalf("WAL end is %s, want 0/190", p.End())
	}
}

func TestWALEndNeverFalls(t *testing.T) {
	p := beginAt(t, 100, 200)
	p.WALEnd(150)
	if p.End() != 200 {
		t.Fatalf("WAL end is %s, want 0/C8", p.End())
	}
}

// TestEveryStatusOfASessionIsSafe drives a session with whatever a server may send and a caller may ask.
func TestEveryStatusOfASessionIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lsn := rapid.Custom(func(t *rapid.T) decoder.LSN { return decoder.LSN(rapid.Uint64Range(0, 64).Draw(t, "lsn")) })
		start := decoder.LSN(rapid.Uint64Range(1, 64).Draw(t, "start"))
		known := start + lsn.Draw(t, "end")
		p, err := NewPosition(start, known)
		if err != nil {
			t.Fatal(err)
		}
		flushed, asked := start, start
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			at := lsn.Draw(t, "at")
			switch rapid.SampledFrom([]string{"received", "wal end", "confirm"}).Draw(t, "step") {
			case "received":
				p.Received(at)
				known = max(known, at)
			case "wal end":
				p.WALEnd(at)
				known = max(known, at)
			case "confirm":
				advanced, err := p.Confirm(at)
				if (err == nil) != (at != 0 && at <= known) {
					t.Fatalf("confirm %d with WAL end %d: %v", at, known, err)
				}
				if advanced != (err == nil && at > asked) {
					t.Fatalf("confirm %d behind %d: advanced %v", at, asked, advanced)
				}
				if err == nil {
					asked = max(asked, at)
				}
			}
			write, flush, apply := p.Status()
			if flush != asked || flush < flushed || flush == 0 || flush > known || write < flush || write > known || apply != flush {
				t.Fatalf("status write %d flush %d apply %d after flush %d, asked %d, WAL end %d", write, flush, apply, flushed, asked, known)
			}
			flushed = flush
		}
	})
}
