package slot

import (
	"encoding/hex"
	"testing"
	"time"
)

func TestStatusHasTheProtocolsBytes(t *testing.T) {
	clock := time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC)
	got := hex.EncodeToString(appendStatus(nil, 0x16B374D848, 0x16B374D840, 0x16B374D840, clock, false))
	const want = "64" + "00000026" + "72" + "00000016b374d848" + "00000016b374d840" + "00000016b374d840" + "00000000000f4240" + "00"
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	if asks := appendStatus(nil, 1, 1, 1, clock, true); asks[len(asks)-1] != 1 {
		t.Fatal("the server is not asked to reply")
	}
}

func TestStatusIsAppendedWithoutAllocation(t *testing.T) {
	buf := make([]byte, 0, 64)
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() { buf = appendStatus(buf[:0], 3, 2, 1, now, false) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
