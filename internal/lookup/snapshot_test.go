package lookup

import "testing"

func TestSnapshotSeesWhatHadEndedWhenItWasTaken(t *testing.T) {
	tests := []struct {
		snapshot string
		xid      uint32
		want     bool
	}{
		{"728:728:", 727, true},
		{"728:728:", 728, false},
		{"728:728:", 729, false},
		{"700:728:700,710", 699, true},
		{"700:728:700,710", 700, false},
		{"700:728:700,710", 705, true},
		{"700:728:700,710", 710, false},
		{"4294967290:4294967300:4294967295,4294967298", 0xFFFFFFFA, true},
		{"4294967290:4294967300:4294967295,4294967298", 0xFFFFFFFF, false},
		{"4294967290:4294967300:4294967295,4294967298", 2, false},
		{"4294967290:4294967300:4294967295,4294967298", 3, true},
		{"4294967290:4294967300:4294967295,4294967298", 4, false},
	}
	for _, tt := range tests {
		var s snapshot
		if err := s.parse(tt.snapshot); err != nil {
			t.Fatal(err)
		}
		if got := s.sees(tt.xid); got != tt.want {
			t.Errorf("%s sees %d: %v, want %v", tt.snapshot, tt.xid, got, tt.want)
		}
	}
}

func TestMalformedSnapshotIsAnError(t *testing.T) {
	for _, text := range []string{"", "1:2", "1:x:", "1:2:x", "1:2:3,", "1:2:3,x"} {
		var s snapshot
		if err := s.parse(text); (err == nil) != (text == "1:2:3,") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func TestVersionsAreComparedByValue(t *testing.T) {
	ordered := [][]string{
		{"-10", "-9.5", "-9", "0", "1", "1.05", "1.5", "9", "10", "10.5", "9007199254740993", "99999999999999999999999999"},
		{"2026-11-30 22:53:39+00", "2026-11-30 22:53:39.1+00", "2026-12-01 00:00:00+00"},
		{"10", "9a", "a", "b"},
	}
	for _, list := range ordered {
		for i, a := range list {
			for j, b := range list {
				if got := compareVersions([]byte(a), []byte(b)); sign(got) != sign(i-j) {
					t.Errorf("compare %s with %s: %d", a, b, got)
				}
			}
		}
	}
	for _, pair := range [][2]string{{"007", "7"}, {"-0", "0"}, {"1.50", "1.5"}, {"2.0", "2"}} {
		if compareVersions([]byte(pair[0]), []byte(pair[1])) != 0 {
			t.Errorf("%s is not %s", pair[0], pair[1])
		}
	}
}

func sign(n int) int { return min(1, max(-1, n)) }
