package relay

import (
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/publish"
)

// tracker knows how far everything is finished. Rows and marks stand in it in the order of the WAL; acknowledgements
// come in any order. What it says is about the contiguous finished prefix only:
//
//   - confirmable: every transaction whose commit ends at or before this LSN is stored;
//     Where rows were set aside, it is also beyond the commits that keep these;
//   - ended: the last of these that is a transaction's own end, and not the end of an idle server's WAL.
//
// How far rows are stored inside a transaction is counted by publish.Lanes. It belongs to one goroutine.
type tracker struct {
	entries []entry // a queue: live ones from head on
	head    int
	rows    int

	// floor is what an LSN must reach to be confirmable, whatever is finished.
	floor    decoder.LSN
	finished decoder.LSN // as confirmable would be without a floor

	confirmable decoder.LSN
	ended       decoder.LSN
	committedAt time.Time // of the last row that is finished
}

// entry is a row, or a mark: the LSN that may be confirmed once everything in front of it is finished.
type entry struct {
	row  *publish.Row
	mark decoder.LSN
	end  decoder.LSN // the last transaction's end among the marks that are one
	at   time.Time
}

func (t *tracker) addRow(r *publish.Row, committedAt time.Time) {
	t.entries = append(t.entries, entry{row: r, at: committedAt})
	t.rows++
}

// addMark records that lsn may be confirmed when all that was added before is finished: a transaction's end, or the
// end of the server's WAL when nothing is open. end is the last transaction's end among what lsn stands for, or 0.
// Marks with no row between them are one.
func (t *tracker) addMark(lsn, end decoder.LSN) {
	if n := len(t.entries); n == t.head || t.entries[n-1].row != nil {
		t.entries = append(t.entries, entry{})
	}
	e := &t.entries[len(t.entries)-1]
	e.mark = max(e.mark, lsn)
	e.end = max(e.end, end)
}

// oldest gives the first row that is not finished, nil when there is none. It is asked after advance.
func (t *tracker) oldest() *publish.Row {
	if t.head == len(t.entries) {
		return nil
	}
	return t.entries[t.head].row
}

// advance moves over what is finished and gives each row that is behind it to free.
func (t *tracker) advance(free func(*publish.Row)) {
	for t.head < len(t.entries) {
		e := &t.entries[t.head]
		if e.row == nil {
			t.finish(e)
		} else {
			if !e.row.Done {
				break
			}
			if !e.at.IsZero() {
				t.committedAt = e.at
			}
			free(e.row)
			t.rows--
		}
		*e = entry{}
		t.head++
	}
	t.compact()
}

func (t *tracker) finish(e *entry) {
	t.finished = max(t.finished, e.mark)
	if e.mark >= t.floor {
		t.confirmable = max(t.confirmable, e.mark)
		t.ended = max(t.ended, e.end)
	}
}

// barrier lets nothing below lsn become confirmable from now on: a row was made durable at the source itself, by a commit
// that ends there at the latest, and the slot must not forget the row before that commit is behind it.
func (t *tracker) barrier(lsn decoder.LSN) { t.floor = max(t.floor, lsn) }

// compact gives the room in front of head back when it is the larger part, so that the queue's memory follows its
// length and each entry is moved at most once on average.
func (t *tracker) compact() {
	if t.head < 64 || t.head < len(t.entries)/2 {
		return
	}
	n := copy(t.entries, t.entries[t.head:])
	clear(t.entries[n:])
	t.entries, t.head = t.entries[:n], 0
}
