package slot

import (
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
)

const history = "1\t0/3000000\tno recovery target specified\n\n# a comment\n2\t0/5000028\tbefore 2026-11-30 12:00:00+00\n"

func TestHistoryTellsTheTimelineOfAnLSN(t *testing.T) {
	h, err := ParseHistory(3, history)
	if err != nil {
		t.Fatal(err)
	}
	for lsn, want := range map[decoder.LSN]uint32{
		0: 1, 0x2FFFFFF: 1, 0x3000000: 2, 0x5000027: 2, 0x5000028: 3, 0xFFFFFFFFFF: 3,
	} {
		if got := h.At(lsn); got != want {
			t.Errorf("%s: timeline %d, want %d", lsn, got, want)
		}
	}
	if at, ok := h.Switch(2); !ok || at != 0x5000028 {
		t.Errorf("timeline 2 ended at %s, %v", at, ok)
	}
	for _, never := range []uint32{3, 4} {
		if at, ok := h.Switch(never); ok {
			t.Errorf("timeline %d ended at %s", never, at)
		}
	}
	if h.Current() != 3 {
		t.Errorf("current timeline %d", h.Current())
	}
}

func TestFirstTimelineHasNoHistory(t *testing.T) {
	h, err := ParseHistory(1, "")
	if err != nil || h.At(0x42) != 1 {
		t.Fatalf("timeline %d, %v", h.At(0x42), err)
	}
}

func TestHistoryThatMakesNoSenseIsAnError(t *testing.T) {
	for _, content := range []string{"1", "x\t0/1\t", "1\tzero\t", "3\t0/1\t", "1\t0/9\t\n2\t0/8\t"} {
		if h, err := ParseHistory(3, content); err == nil {
			t.Errorf("%q: %v", content, h)
		}
	}
}
