package oracle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/oracle"
)

// msgID is the id of row n.
func msgID(n int) string { return fmt.Sprintf("app/public.outbox/%d", n) }

// committed writes down rows 1 to 6: the odd ones of order A, the even ones of order B.
func committed(t *testing.T) *oracle.Ledger {
	t.Helper()
	var ledger oracle.Ledger
	for n := 1; n <= 6; n++ {
		if err := ledger.Commit(msgID(n), string(event.AggregateKey(nil, "public.outbox", []byte("order"), []byte(owner(n))))); err != nil {
			t.Fatal(err)
		}
	}
	return &ledger
}

func owner(n int) string { return []string{"B", "A"}[n%2] }

// stored gives the messages of rows; a negative number is a row published late.
func stored(rows ...int) []oracle.Message {
	var all []oracle.Message
	for i, n := range rows {
		m := oracle.Message{Sequence: uint64(i + 1), AggregateType: "order"}
		if n < 0 {
			n, m.Late = -n, "repair"
		}
		m.ID, m.AggregateID = msgID(n), owner(n)
		all = append(all, m)
	}
	return all
}

func TestEveryPlantedFaultIsCountedOnceAndNamed(t *testing.T) {
	for name, c := range map[string]struct {
		messages []oracle.Message
		want     oracle.Report
		example  string
	}{
		"nothing":                   {stored(1, 2, 3, 4, 5, 6), oracle.Report{}, ""},
		"aggregates interleave":     {stored(2, 4, 6, 1, 3, 5), oracle.Report{}, ""},
		"lost":                      {stored(1, 2, 4, 5, 6), oracle.Report{Missing: 1}, "missing: " + msgID(3)},
		"lost at the end":           {stored(1, 2, 3, 4), oracle.Report{Missing: 2}, "missing: " + msgID(5)},
		"all lost":                  {nil, oracle.Report{Missing: 6}, "missing: " + msgID(1)},
		"invented":                  {stored(1, 2, 3, 9, 4, 5, 6), oracle.Report{Extra: 1}, `extra: "` + msgID(9) + `" at 4`},
		"doubled":                   {stored(1, 2, 3, 1, 4, 5, 6), oracle.Report{Duplicate: 1}, "duplicate: " + msgID(1) + " at 4, first at 1"},
		"tripled":                   {stored(1, 1, 1, 2, 3, 4, 5, 6), oracle.Report{Duplicate: 2}, ""},
		"swapped":                   {stored(1, 2, 5, 4, 3, 6), oracle.Report{OutOfOrder: 1}, "out of order: " + msgID(3) + " at 5, after the later " + msgID(5) + " at 3"},
		"the first comes last":      {stored(3, 5, 2, 4, 6, 1), oracle.Report{OutOfOrder: 1}, ""},
		"the last comes first":      {stored(5, 1, 3, 2, 4, 6), oracle.Report{OutOfOrder: 2}, ""},
		"swapped in both":           {stored(3, 1, 5, 4, 2, 6), oracle.Report{OutOfOrder: 2}, ""},
		"late and saying so":        {stored(3, 2, 4, 5, 6, -1), oracle.Report{Late: 1}, ""},
		"late does not move order":  {stored(-5, 1, 2, 3, 4, 6), oracle.Report{Late: 1}, ""},
		"late again":                {stored(1, 2, 3, 4, 5, 6, -1), oracle.Report{Late: 1, Duplicate: 1}, ""},
		"late of no row":            {stored(1, 2, 3, 4, 5, 6, -9), oracle.Report{Late: 1, Extra: 1}, ""},
		"without an id":             {append(stored(1, 2, 3, 4, 5, 6), oracle.Message{Sequence: 7, Subject: "s"}), oracle.Report{Extra: 1}, `extra: "" at 7 on "s"`},
		"lost, doubled and swapped": {stored(3, 1, 2, 2, 4, 6), oracle.Report{Missing: 1, Duplicate: 1, OutOfOrder: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ledger := committed(t)
			for _, m := range c.messages {
				ledger.Store(m)
			}
			got := ledger.Report()
			c.want.Committed, c.want.Stored = 6, len(c.messages)
			if counts(got) != counts(c.want) {
				t.Errorf("got  %s\nwant %s", got.String(), counts(c.want))
			}
			faults := c.want.Missing + c.want.Extra + c.want.Duplicate + c.want.OutOfOrder
			if got.Clean() != (faults == 0) {
				t.Errorf("Clean is %v with %d faults", got.Clean(), faults)
			}
			named := func(s string) bool { return strings.HasPrefix(s, c.example) }
			if c.example != "" && !slices.ContainsFunc(got.Examples, named) {
				t.Errorf("examples %q, want %q", got.Examples, c.example)
			}
		})
	}
}

// counts is the report without its examples.
func counts(r oracle.Report) string {
	line, _, _ := strings.Cut(r.String(), "\n")
	return line
}

func TestMessageUnderAnotherAggregateIsMisplaced(t *testing.T) {
	ledger := committed(t)
	for i, m := range stored(1, 2, 3, 4, 5, 6) {
		if i == 2 {
			m.AggregateID = "B"
		}
		if i == 3 {
			m.AggregateType = "invoice"
		}
		ledger.Store(m)
	}
	got := ledger.Report()
	if got.Misplaced != 2 || got.Clean() {
		t.Errorf("misplaced %d, clean %v, want 2 and not clean", got.Misplaced, got.Clean())
	}
}

func TestExamplesAreFewOfEachKind(t *testing.T) {
	ledger := committed(t)
	for i := range 100 {
		ledger.Store(oracle.Message{Sequence: uint64(i + 1), ID: "x"})
	}
	for range 2 { // asking again changes nothing
		got := ledger.Report()
		if len(got.Examples) != 10 || got.Extra != 100 || got.Missing != 6 {
			t.Errorf("%d examples, extra %d, missing %d, want 10, 100 and 6", len(got.Examples), got.Extra, got.Missing)
		}
	}
}

func TestTwoRowsOfOneIDAreRefused(t *testing.T) {
	ledger := committed(t)
	if err := ledger.Commit(msgID(1), "another"); err == nil {
		t.Error("a second row with the same id was accepted")
	}
}

// What is older than the slot comes late, but first and in its order: an initial copy that is sorted wrongly is a fault.
func TestInitialRowsKeepTheirOrder(t *testing.T) {
	ledger := committed(t)
	for _, m := range stored(3, 1, 2, 4, 5, 6) {
		m.Late = "initial"
		ledger.Store(m)
	}
	if r := ledger.Report(); r.OutOfOrder != 1 || r.Late != 6 || r.Missing != 0 {
		t.Fatal(r.String())
	}
}

// In a stream that others publish to as well, theirs is told from what is invented in the source's name.
func TestForeignMessagesAreToldFromInvented(t *testing.T) {
	all := append(stored(1, 2, 3, 4, 5, 6),
		oracle.Message{Subject: "no headers"},
		oracle.Message{ID: "an id of another kind"},
		oracle.Message{ID: "other/public.outbox/1", Marked: true},                            // another source's bridge
		oracle.Message{ID: "app2/public.outbox/1", Marked: true},                             // whose name begins as ours
		oracle.Message{ID: "app/public.outbox/99", Marked: true},                             // invented
		oracle.Message{ID: "app/public.outbox/98"},                                           // invented, without our headers
		oracle.Message{Marked: true},                                                         // of nobody, as only a bridge writes
		oracle.Message{ID: msgID(1), AggregateType: "order", AggregateID: "A", Marked: true}, // doubled
	)
	ledger := committed(t)
	ledger.Source = "app"
	for i, m := range all {
		m.Sequence = uint64(i + 1)
		ledger.Store(m)
	}
	got := ledger.Report()
	if got.Foreign != 4 || got.Extra != 3 || got.Duplicate != 1 || got.Missing != 0 {
		t.Errorf("foreign 4, extra 3 and duplicate 1 were planted: %s", got.String())
	}
}

// Nothing overtakes a row that is held: what is published of it late is in its order.
func TestParkedRowsKeepTheirOrderWhereTheyAreHeld(t *testing.T) {
	for _, hold := range []bool{false, true} {
		ledger := committed(t)
		ledger.Hold = hold
		all := stored(1, 2, -5, 4, -3, 6)
		for i, m := range all {
			m.Sequence = uint64(i + 1)
			if m.Late != "" {
				m.Late = "parked"
			}
			ledger.Store(m)
		}
		want := 0
		if hold {
			want = 1
		}
		if r := ledger.Report(); r.OutOfOrder != want || r.Late != 2 || r.Missing != 0 {
			t.Errorf("hold %v: out of order %d is expected: %s", hold, want, r.String())
		}
	}
}
