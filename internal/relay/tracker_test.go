package relay

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/publish"
)

func TestNothingIsConfirmableBeforeEverythingInFrontIsStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr tracker
		type mark struct {
			lsn  decoder.LSN
			rows int // rows in front of it
			idle bool
		}
		var rows []*publish.Row
		var marks []mark
		freed := 0
		lsn := decoder.LSN(100)
		steps := rapid.IntRange(1, 200).Draw(t, "steps")
		for range steps {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				r := &publish.Row{}
				rows = append(rows, r)
				tr.addRow(r, time.Unix(int64(len(rows)), 0))
			case 2:
				lsn += decoder.LSN(rapid.IntRange(1, 50).Draw(t, "bytes"))
				idle := rapid.Bool().Draw(t, "idle")
				marks = append(marks, mark{lsn, len(rows), idle})
				end := lsn
				if idle {
					end = 0
				}
				tr.addMark(lsn, end)
			case 3:
				if len(rows) > 0 {
					rows[rapid.IntRange(0, len(rows)-1).Draw(t, "stored")].Done = true
				}
			case 4:
				tr.advance(func(*publish.Row) { freed++ })
			}
		}
		tr.advance(func(*publish.Row) { freed++ })

		prefix := 0
		for prefix < len(rows) && rows[prefix].Done {
			prefix++
		}
		var confirmable, ended decoder.LSN
		for _, m := range marks {
			if m.rows <= prefix {
				confirmable = m.lsn
				if !m.idle {
					ended = m.lsn
				}
			}
		}
		if tr.confirmable != confirmable || tr.ended != ended {
			t.Fatalf("confirmable %s ended %s, want %s and %s", tr.confirmable, tr.ended, confirmable, ended)
		}
		if freed != prefix || tr.rows != len(rows)-prefix {
			t.Fatalf("freed %d with %d left, want %d and %d", freed, tr.rows, prefix, len(rows)-prefix)
		}
	})
}

func TestTrackerMemoryFollowsItsLength(t *testing.T) {
	var tr tracker
	row := &publish.Row{Done: true}
	for range 100_000 {
		tr.addRow(row, time.Time{})
		tr.addMark(1, 1)
		tr.advance(func(*publish.Row) {})
	}
	if got := cap(tr.entries); got > 1024 {
		t.Fatalf("%d entries are kept for an empty queue", got)
	}
}
