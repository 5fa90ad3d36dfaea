package slot

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

const insertLarge = `INSERT INTO outbox (payload) SELECT string_agg(md5(i::text), '') FROM generate_series(1, $1::int) i`

func TestLargeRowArrivesWhole(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	k := &taker{confirms: true}
	r := begin(t, c, k)
	insert(t, c, "before")
	testkit.Exec(t, c.URL, insertLarge, 10<<20/32)
	insert(t, c, "behind")
	rows := awaitRows(t, k, 3)
	if rows[0] != "before" || rows[2] != "behind" || k.sizes[1] != 10<<20 || !strings.HasPrefix(rows[1], "c4ca4238a0b923820dcc509a6f75849b") {
		t.Fatalf("rows of %v bytes: %v", k.sizes, rows)
	}
	r.stop(t)
}

func TestRowAboveTheLimitStopsTheStreamAndIsNamed(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	c.MaxRow = 1 << 20
	k := &taker{confirms: true}
	r := begin(t, c, k)
	insert(t, c, "before")
	awaitRows(t, k, 1)
	before := lsnOf(t, c, currentLSN)
	testkit.Exec(t, c.URL, insertLarge, 3<<20/32)
	err := r.ended(t)
	var large *TooLargeError
	if !errors.As(err, &large) {
		t.Fatalf("Run: %v", err)
	}
	if id, ok := large.Column("id"); !ok || string(id) != "2" || large.Size < 3<<20 || large.LSN < before || large.XID == 0 || large.Commit < large.LSN {
		t.Fatalf("%+v", large)
	}
	if text := err.Error(); !strings.Contains(text, "public.outbox") || !strings.Contains(text, `id "2"`) {
		t.Fatalf("the row is not named: %s", text)
	}
	if err := r.Finish(t.Context()); err != nil {
		t.Fatalf("the stream cannot be finished behind the row: %v", err)
	}
	if got := confirmedFlush(t, c); got >= large.Commit {
		t.Fatalf("confirmed %s, the row's commit is at %s", got, large.Commit)
	}
}

func TestStreamGoesOnBehindARowAboveTheLimit(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	c.MaxRow = 1 << 20
	k := &taker{confirms: true}
	k.stream = startStream(t, c)
	r := launch(t, k.stream, goesOn{k})
	insert(t, c, "before")
	testkit.Exec(t, c.URL, insertLarge, 5<<20/32)
	testkit.Exec(t, c.URL, `SELECT pg_logical_emit_message(true, 'other', repeat('x', 3000000))`)
	insert(t, c, "behind")
	wantRows(t, awaitRows(t, k, 2), "before", "behind")
	if len(k.oversize) != 1 {
		t.Fatalf("%d oversized rows", len(k.oversize))
	}
	r.stop(t)
}
