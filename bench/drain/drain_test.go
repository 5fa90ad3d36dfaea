package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestMain lets the test binary be the child processes of the benchmark too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestEveryContenderDrainsTheWholeBacklog(t *testing.T) {
	temp := t.TempDir()
	if err := os.Chmod(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	var out bytes.Buffer
	if err := run([]string{"-rows", "20000", "-rounds", "1", "-json"}, nil, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Shapes) != len(shapes) {
		t.Fatalf("measured %d shapes, want %d", len(r.Shapes), len(shapes))
	}
	for _, s := range r.Shapes {
		for i, want := range []string{nameBridge, nameRecvlogical, nameRaw} {
			if c := s.Contenders[i]; c.Name != want || len(c.Rounds) != 1 || c.Rounds[0].RowsPerSec <= 0 || c.Rounds[0].CPU < 0 {
				t.Errorf("shape %s, contender %d: %+v, want one round of %s", s.Shape, i, c, want)
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(temp, "tidegate-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestRatioComparesTurnsOfTheSameRound(t *testing.T) {
	of := result{Name: "a", Rounds: []figures{{RowsPerSec: 10}, {RowsPerSec: 30}, {RowsPerSec: 60}}}
	to := result{Name: "b", Rounds: []figures{{RowsPerSec: 10}, {RowsPerSec: 60}, {RowsPerSec: 30}}}
	if got, want := compare(of, to), (ratio{Of: "a", To: "b", Min: 0.5, Median: 1, Max: 2}); got != want {
		t.Errorf("compare = %+v, want %+v", got, want)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"-rows", "0"}, {"-shapes", "X"}, {"-payload", "10"}, {"-also", "name"}, {"surplus"},
	} {
		if _, err := parse(args, t.Output()); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
