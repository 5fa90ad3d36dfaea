package parking_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/parking"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestListIsInOrderFilteredAndCut(t *testing.T) {
	s, url := store(t)
	other := row(4, "a", parking.StateParked)
	other.Table = "public.other"
	park(t, s, row(2, "a", parking.StateHeld), row(1, "a", parking.StateParked), fromTable(-1, "b", parking.StateParked), row(3, "a/b", parking.StateDiscarded), other)
	testkit.Exec(t, url, "INSERT INTO tidegate.parked (source, position, table_name, row_id, state) VALUES ('other', 'x', 'public.outbox', 'z', 'parked')")
	d := desk(t, url)
	for _, tt := range []struct {
		filter parking.Filter
		want   string
		more   int
	}{
		{parking.Filter{}, "old-1:parked row-1:parked row-2:held row-3:discarded row-4:parked", 0},
		{parking.Filter{Limit: 2}, "old-1:parked row-1:parked", 3},
		{parking.Filter{Limit: 5}, "old-1:parked row-1:parked row-2:held row-3:discarded row-4:parked", 0},
		{parking.Filter{States: []parking.State{parking.StateHeld, parking.StateDiscarded}}, "row-2:held row-3:discarded", 0},
		{parking.Filter{Aggregate: "order/a"}, "row-1:parked row-2:held row-4:parked", 0},
		{parking.Filter{Aggregate: "order/a/b"}, "row-3:discarded", 0},
		{parking.Filter{Aggregate: "order/a", Table: "public.other"}, "row-4:parked", 0},
		{parking.Filter{Table: "public.none"}, "", 0},
	} {
		rows, more, err := d.List(t.Context(), tt.filter)
		must(t, err)
		if names(rows) != tt.want || more != tt.more {
			t.Errorf("%+v: %s and %d more, want %s and %d", tt.filter, names(rows), more, tt.want, tt.more)
		}
	}
}

func TestRowIsFoundByItsNumberAndByItsTable(t *testing.T) {
	s, url := store(t)
	again := row(9, "a", parking.StateParked)
	again.RowID = []byte("row-1")
	park(t, s, row(1, "a", parking.StateDiscarded), again, row(2, "a", parking.StateHeld))
	d := desk(t, url)
	for _, ref := range []string{"2", "public.outbox:row-1"} {
		got, err := d.Find(t.Context(), ref)
		must(t, err)
		if got.Position != at(9) || len(got.Columns) != 1 {
			t.Errorf("%s: got %+v", ref, got)
		}
	}
	var none *parking.NotFoundError
	for _, ref := range []string{"77", "public.outbox:row-77", "public.none:row-1"} {
		if _, err := d.Find(t.Context(), ref); !errors.As(err, &none) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, ref := range []string{"", "row", ":", "public.outbox:"} {
		if _, err := d.Find(t.Context(), ref); !errors.Is(err, parking.ErrUsage) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	testkit.Exec(t, url, "UPDATE tidegate.parked SET state = 'parked'")
	var ambiguous *parking.AmbiguousError
	if _, err := d.Find(t.Context(), "public.outbox:row-1"); !errors.As(err, &ambiguous) || !strings.HasSuffix(ambiguous.Hint(), "one of 1 2") {
		t.Errorf("twice: %v", err)
	}
}

func TestWishIsGrantedByState(t *testing.T) {
	retry := func(d *parking.Desk) error { _, err := d.Retry(background(), "2"); return err }
	s, url := store(t)
	discard := func(d *parking.Desk) error { _, err := d.Discard(background(), "2"); return err }
	for _, tt := range []struct {
		state   parking.State
		before  parking.State // of the row before it in its aggregate
		wish    func(*parking.Desk) error
		want    parking.State
		refusal string
	}{
		{parking.StateParked, parking.StateParked, retry, parking.StateRetry, ""},
		{parking.StateRetry, parking.StateRetry, retry, parking.StateRetry, ""},
		{parking.StateDiscard, parking.StateRetry, retry, parking.StateRetry, ""},
		{parking.StateParked, parking.StateRetry, discard, parking.StateDiscard, ""},
		{parking.StateRetry, parking.StateRetry, discard, parking.StateDiscard, ""},
		{parking.StateHeld, parking.StateParked, retry, "", "retry parked row 2: it waits behind parked row 1"},
		{parking.StateHeld, parking.StateParked, discard, "", "discard parked row 2: it waits behind parked row 1"},
		{parking.StateHeld, parking.StateRetry, retry, "", "retry parked row 2: it is held, and goes on by itself"},
		{parking.StateReleasing, parking.StateRetry, retry, "", "retry parked row 2: it is being published right now"},
		{parking.StateReleasing, parking.StateParked, discard, "", "discard parked row 2: it waits behind parked row 1"}, // its turn was over
		{parking.StateDiscarded, parking.StateParked, retry, "", "retry parked row 2: it was discarded already"},
		{parking.StateReleasing, parking.StateRetry, discard, "", "discard parked row 2: it is being published right now"},
		{parking.StateDiscarded, parking.StateRetry, retry, "", "retry parked row 2: it was discarded already"},
		{parking.StateDiscarded, parking.StateRetry, discard, "", "discard parked row 2: it was discarded already"},
	} {
		testkit.Exec(t, url, "TRUNCATE tidegate.parked RESTART IDENTITY")
		park(t, s, row(1, "a", tt.before), row(2, "a", tt.state))
		err := tt.wish(desk(t, url))
		want := tt.state
		if tt.refusal == "" {
			must(t, err)
			want = tt.want
		} else if err == nil || err.Error() != tt.refusal {
			t.Errorf("got %v, want %s", err, tt.refusal)
		}
		if got := testkit.Value[string](t, url, "SELECT state FROM tidegate.parked WHERE id = 2"); got != string(want) {
			t.Errorf("%s became %s, want %s", tt.state, got, want)
		}
	}
}

func TestRetryOfAnAggregateTakesEveryParkedRowOfIt(t *testing.T) {
	s, url := store(t)
	park(t, s, row(3, "a", parking.StateParked), row(1, "a", parking.StateParked), row(2, "a", parking.StateHeld), row(4, "b", parking.StateParked), row(5, "a", parking.StateDiscard))
	d := desk(t, url)
	rows, err := d.RetryAggregate(t.Context(), "order/a")
	must(t, err)
	if names(rows) != "row-1:retry row-3:retry" {
		t.Errorf("gave %s", names(rows))
	}
	if got := list(t, url); got != "row-1:retry row-2:held row-3:retry row-4:parked row-5:discard" {
		t.Errorf("rows %s", got)
	}
	var none *parking.NotFoundError
	if _, err := d.RetryAggregate(t.Context(), "order/a"); !errors.As(err, &none) || !strings.Contains(err.Error(), "order/a") {
		t.Errorf("again: %v", err)
	}
}

func TestDeskSeesWhatBecomesOfRowsAndWhatWaits(t *testing.T) {
	s, url := store(t)
	park(t, s, row(1, "a", parking.StateParked), row(2, "a", parking.StateHeld), row(3, "a", parking.StateHeld), row(4, "b", parking.StateReleasing))
	d := desk(t, url)
	first, err := d.Find(t.Context(), "1")
	must(t, err)
	if n, err := d.HeldBehind(t.Context(), first); err != nil || n != 2 {
		t.Errorf("%d wait behind it, %v", n, err)
	}
	third, err := d.Find(t.Context(), "3")
	must(t, err)
	if id, err := d.Behind(t.Context(), third); err != nil || id != 1 {
		t.Errorf("it waits behind %d, %v", id, err)
	}
	must(t, s.Released(t.Context(), []int64{4}))
	now, err := d.Watch(t.Context(), []int64{1, 4})
	must(t, err)
	if _, there := now[4]; there || len(now) != 1 || now[1].State != parking.StateParked {
		t.Errorf("now %+v", now)
	}
}
