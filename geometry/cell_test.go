package geometry

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/uber/h3-go/v4"
)

type h3Row struct {
	Lat, Lng float64
	Res      int
	Cell     string
	Int      string
	BaseCell int `json:"base_cell"`
	Pentagon bool
}

func TestCellsAreThoseOfTheH3Project(t *testing.T) {
	rows := readLines[h3Row](t, "testdata/h3_reference.jsonl")
	if len(rows) != 40 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		c, ok := Cell(row.Lng, row.Lat, row.Res)
		if math.Abs(row.Lat) > 90 { // the library answers here too
			if ok {
				t.Errorf("latitude %v has cell %v", row.Lat, c)
			}
			continue
		}
		if got := string(AppendCell(nil, uint64(c))); !ok || got != row.Cell || strconv.FormatUint(uint64(c), 10) != row.Int {
			t.Errorf("%v %v at %d: %s, want %s", row.Lng, row.Lat, row.Res, got, row.Cell)
		}
		checkTokens(t, row, uint64(c))
	}
}

func checkTokens(t *testing.T, row h3Row, cell uint64) {
	t.Helper()
	if parsed, ok := ParseCell([]byte(row.Cell)); !ok || parsed != cell {
		t.Errorf("ParseCell(%s) = %x, %v", row.Cell, parsed, ok)
	}
	for res := range MaxResolution + 1 {
		tokens := strings.Split(string(AppendCellTokens(nil, cell, res)), ".")
		if len(tokens) != res+1 || tokens[0] != strconv.Itoa(row.BaseCell) {
			t.Errorf("%s at %d: tokens %v", row.Cell, res, tokens)
		}
		parent := h3.Cell(cell)
		if res < row.Res {
			parent = parent.Parent(res)
		}
		if got := joinTokens(t, tokens); got != uint64(parent) {
			t.Errorf("%s at %d: tokens %v name %x, want %x", row.Cell, res, tokens, got, uint64(parent))
		}
	}
}

// joinTokens gives the cell that subject tokens name.
func joinTokens(t *testing.T, tokens []string) uint64 {
	t.Helper()
	if tokens[0] == "x" {
		return 0
	}
	base, err := strconv.ParseUint(tokens[0], 10, 7)
	if err != nil {
		t.Fatal(err)
	}
	res := 0
	cell := uint64(1)<<59 | base<<45 | (1<<45 - 1)
	for r, digit := range tokens[1:] {
		if digit == "x" {
			continue
		}
		d, err := strconv.ParseUint(digit, 8, 3)
		if err != nil || res != r {
			t.Fatalf("tokens %v: %v", tokens, err)
		}
		res = r + 1
		shift := 3 * (MaxResolution - res)
		cell = cell&^(7<<shift) | d<<shift
	}
	return cell | uint64(res)<<52
}

func TestTokensArePaddedAndCut(t *testing.T) {
	for _, c := range []struct {
		cell uint64
		res  int
		want string
	}{
		{0x881f1d4891fffff, 8, "15.4.3.5.2.2.1.1.0"},
		{0x881f1d4891fffff, 3, "15.4.3.5"},
		{0x881f1d4891fffff, 0, "15"},
		{0x8075fffffffffff, 8, "58.x.x.x.x.x.x.x.x"},
		{0, 2, "x.x.x"},
	} {
		if got := string(AppendCellTokens(nil, c.cell, c.res)); got != c.want {
			t.Errorf("%x at %d: %s, want %s", c.cell, c.res, got, c.want)
		}
	}
}

func TestNoCellIsMadeUp(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, p := range [][2]float64{{nan, 1}, {1, nan}, {inf, 0}, {0, -inf}, {0, 90.001}, {541, 0}, {1492237, 0}} {
		if c, ok := Cell(p[0], p[1], 8); ok {
			t.Errorf("Cell(%v) = %v", p, c)
		}
	}
	for _, res := range []int{-1, 16} {
		if c, ok := Cell(13.4, 52.5, res); ok {
			t.Errorf("resolution %d: %v", res, c)
		}
	}
	for _, s := range []string{
		"", "berlin", "881f1d4891ffff", "881f1d4891ffffff", "zzzzzzzzzzzzzzz", "0000000000000000", "ffffffffffffffff",
		"0x881f1d4891fff", "1081f1d4891fffff", "115283473fffffff", // the last one is a directed edge
	} {
		if c, ok := ParseCell([]byte(s)); ok {
			t.Errorf("ParseCell(%q) = %x", s, c)
		}
	}
	if c, ok := ParseCell([]byte("0881F1D4891FFFFF")); !ok || c != 0x881f1d4891fffff {
		t.Errorf("upper case with a leading zero: %x, %v", c, ok)
	}
}

func FuzzCellTokens(f *testing.F) {
	f.Add("881f1d4891fffff", uint8(8))
	f.Add("8075fffffffffff", uint8(15))
	f.Add("8f54c4b5391d296", uint8(3))
	f.Fuzz(func(t *testing.T, s string, res uint8) {
		cell, ok := ParseCell([]byte(s))
		if !ok {
			return
		}
		if again, ok := ParseCell(AppendCell(nil, cell)); !ok || again != cell {
			t.Fatalf("%q: %x becomes %x", s, cell, again)
		}
		want := h3.Cell(cell)
		if r := int(res % 16); r < want.Resolution() {
			want = want.Parent(r)
		}
		tokens := strings.Split(string(AppendCellTokens(nil, cell, int(res%16))), ".")
		if got := joinTokens(t, tokens); got != uint64(want) {
			t.Fatalf("%q at %d: tokens %v name %x, want %x", s, res%16, tokens, got, uint64(want))
		}
	})
}
