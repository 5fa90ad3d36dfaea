package publish

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
)

func readTail(t *testing.T, c *Conn, s *Stream, after uint64) *Tail {
	t.Helper()
	ctx, cancel := context.WithTimeout(testContext(t), 10*time.Second)
	defer cancel()
	tail, err := c.ReadTail(ctx, s, after, "src")
	if err != nil {
		t.Fatal(err)
	}
	return tail
}

func TestTailOfAnEmptyRangeIsEmpty(t *testing.T) {
	c := connect(t, startServer(t, nil))
	s := ensure(t, c, StreamConfig{Name: "S"}, "x.*")
	if tail := readTail(t, c, s, 0); tail.Count != 0 || tail.Mark() != (Mark{}) {
		t.Fatalf("of an empty stream: %+v", tail)
	}
	seq := put(t, c, rowFor(s, "a", 1))
	if tail := readTail(t, c, s, seq); tail.Count != 0 || tail.Last != 1 {
		t.Fatalf("after the last message: %+v", tail)
	}
}

func TestTailAnswersByIDAndByPositionOfTheAggregate(t *testing.T) {
	c := connect(t, startServer(t, nil))
	s := ensure(t, c, StreamConfig{Name: "S"}, "x.*")
	put(t, c, rowFor(s, "a", 1))
	put(t, c, rowFor(s, "a", 5))
	putForeign(t, c, "x.theirs")
	other := rowFor(s, "a", 9)
	other.Msg.ID, other.Msg.Headers[0].Value = "src2/t/9", "src2/t/9" // another source whose name begins like ours
	put(t, c, other)
	put(t, c, rowFor(s, "b", 6))

	tail := readTail(t, c, s, 1)
	if tail.Count != 2 || tail.Last != 5 || tail.Highest.Index != 6 || tail.Mark() != (Mark{Seq: 5, MsgID: "src/t/6"}) {
		t.Fatalf("tail %+v", tail)
	}
	for _, c := range []struct {
		aggregate string
		n         int
		seq       uint64
		ok        bool
		why       string
	}{
		{"a", 5, 2, true, "its id was read"},
		{"a", 3, 0, true, "a later row of its aggregate was read"},
		{"a", 7, 0, false, "it is later than what was read of its aggregate"},
		{"c", 4, 0, false, "nothing of its aggregate was read"},
		{"b", 6, 5, true, "its id was read"},
	} {
		r := rowFor(s, c.aggregate, c.n)
		if seq, ok := tail.Stored(r); seq != c.seq || ok != c.ok {
			t.Errorf("row %d of %s: %d, %v: %s", c.n, c.aggregate, seq, ok, c.why)
		}
		if seq, ok := tail.Has([]byte(r.Msg.ID), r.Aggregate, r.Position); seq != c.seq || ok != c.ok {
			t.Errorf("by its parts, row %d of %s: %d, %v: %s", c.n, c.aggregate, seq, ok, c.why)
		}
	}
	unplaced := rowFor(s, "a", 3)
	unplaced.Position = event.Position{}
	if _, ok := tail.Stored(unplaced); ok {
		t.Error("a row without a position is known by its id alone")
	}
}

func TestTailWithGapsAndPurgesEnds(t *testing.T) {
	c := connect(t, startServer(t, nil))
	s := ensure(t, c, StreamConfig{Name: "S"}, "x.*")
	ctx := testContext(t)
	for n := 1; n <= 20; n++ {
		put(t, c, rowFor(s, fmt.Sprint(n), n))
	}
	js, err := c.JetStream().Stream(ctx, "S")
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{3, 10, 11, 19, 20} {
		if err := js.DeleteMsg(ctx, seq); err != nil {
			t.Fatal(err)
		}
	}
	if tail := readTail(t, c, s, 2); tail.Count != 13 || tail.Last != 20 || tail.Mark().MsgID != "" {
		t.Fatalf("with messages deleted: %d read, last %d", tail.Count, tail.Last)
	}
	if tail := readTail(t, c, s, 18); tail.Count != 0 {
		t.Fatalf("%d read where nothing is left", tail.Count)
	}
	if err := js.Purge(ctx); err != nil {
		t.Fatal(err)
	}
	if tail := readTail(t, c, s, 2); tail.Count != 0 || tail.Last != 20 {
		t.Fatalf("purged: %d read, last %d", tail.Count, tail.Last)
	}
}

func TestTailReadsMoreThanOneBatch(t *testing.T) {
	c := connect(t, startServer(t, nil))
	s := ensure(t, c, StreamConfig{Name: "S"}, "x.*")
	const rows = tailBatch*2 + 500
	fill(t, c, s, rows)
	if tail := readTail(t, c, s, 0); tail.Count != rows || tail.Highest.Index != rows {
		t.Fatalf("%d of %d read", tail.Count, rows)
	}
}

// fill stores rows 1 to n, pipelined.
func fill(t testing.TB, c *Conn, s *Stream, n int) {
	t.Helper()
	acks, err := c.Acks(n + 1)
	if err != nil {
		t.Fatal(err)
	}
	l := NewLanes(c, acks.Inbox, LaneOptions{MaxUncovered: 2 * n})
	for i := 1; i <= n; i++ {
		l.Add(rowFor(s, fmt.Sprint(i%1000), i), time.Now())
	}
	for !l.Idle() {
		if _, err := l.Ack(<-acks.C, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := acks.Close(); err != nil {
		t.Fatal(err)
	}
}

// Only the subjects of now and of when the checkpoint was written are read: others' messages cost nothing.
func TestTailReadsOwnSubjectsOfNowAndThen(t *testing.T) {
	c := connect(t, startServer(t, nil))
	ensure(t, c, StreamConfig{Name: "S"}, "x.*", "theirs.>")
	s := ensure(t, c, StreamConfig{Name: "S"}, "y.*")
	put(t, c, rowFor(s, "a", 1)) // under x.*, as the template was
	for range 50 {
		putForeign(t, c, "theirs.b")
	}
	s.ReadOnly([]string{"x.*"})
	tail := readTail(t, c, s, 0)
	if _, ok := tail.Stored(rowFor(s, "a", 1)); !ok || tail.Count != 1 || tail.Last != 51 {
		t.Fatalf("tail %+v", tail)
	}
	want := "[y.* x.*]"
	if !c.atLeast(2, 10) { // its consumers take one subject at most
		want = "[>]"
	}
	if got := c.tailFilter(s); fmt.Sprint(got) != want {
		t.Fatalf("reads %v, want %s", got, want)
	}
	s.ReadOnly(nil)
	if got := c.tailFilter(s); fmt.Sprint(got) != "[>]" {
		t.Fatalf("reads %v when it is not known what was written", got)
	}
}

// TestTailOfOneSubjectIsRead is the ordinary case: one outbox. Every server has to take that filter.
func TestTailOfOneSubjectIsRead(t *testing.T) {
	c := connect(t, startServer(t, nil))
	s := ensure(t, c, StreamConfig{Name: "S"}, "x.*")
	for n := 1; n <= 3; n++ {
		put(t, c, rowFor(s, "a", n))
	}
	s.ReadOnly([]string{"x.*"})
	if one, several := c.consumerFilter(s); one != "x.*" || several != nil {
		t.Fatalf("reads %q and %v", one, several)
	}
	if tail := readTail(t, c, s, 0); tail.Count != 3 || tail.Last != 3 {
		t.Fatalf("tail %+v", tail)
	}
}

func TestTailOfAWorkQueueIsReadWithoutAConsumer(t *testing.T) {
	c := connect(t, startServer(t, nil))
	ctx := testContext(t)
	if _, err := c.JetStream().CreateStream(ctx, jetstream.StreamConfig{
		Name: "S", Subjects: []string{"x.*"},
		Retention: jetstream.WorkQueuePolicy,
	}); err != nil {
		t.Fatal(err)
	}
	s := ensure(t, c, StreamConfig{Name: "S"}, "x.*")
	for n := 1; n <= 5; n++ {
		put(t, c, rowFor(s, "a", n))
	}
	js, err := c.JetStream().Stream(ctx, "S")
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteMsg(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if tail := readTail(t, c, s, 1); tail.Count != 3 || tail.Highest.Index != 5 {
		t.Fatalf("tail %+v", tail)
	}
}

func TestMarkIsVerified(t *testing.T) {
	c := connect(t, startServer(t, nil))
	s := ensure(t, c, StreamConfig{Name: "S"}, "x.*")
	ctx := testContext(t)
	for n := 1; n <= 3; n++ {
		put(t, c, rowFor(s, "a", n))
	}
	mark := Mark{Seq: 3, MsgID: "src/t/3"}
	var lost *LostError
	for _, m := range []Mark{{}, {Seq: 3}, mark} {
		if err := c.VerifyMark(ctx, s, m); err != nil {
			t.Errorf("mark %+v: %v", m, err)
		}
	}
	if err := c.VerifyMark(ctx, s, Mark{Seq: 5, MsgID: "src/t/5"}); !errors.As(err, &lost) || lost.From != 4 || lost.To != 5 {
		t.Errorf("a stream that ends before its mark: %v", err)
	}
	if err := c.VerifyMark(ctx, s, Mark{Seq: 3, MsgID: "src/t/8"}); !errors.As(err, &lost) || lost.To != 3 {
		t.Errorf("a stream with another message at its mark: %v", err)
	}
	js, err := c.JetStream().Stream(ctx, "S")
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteMsg(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if err := c.VerifyMark(ctx, s, mark); err != nil {
		t.Errorf("the message at the mark was removed: %v", err)
	}
	if err := c.JetStream().DeleteStream(ctx, "S"); err != nil {
		t.Fatal(err)
	}
	if err := c.VerifyMark(ctx, s, mark); !errors.As(err, &lost) || lost.From != 1 || lost.To != 3 {
		t.Errorf("a stream that was deleted: %v", err)
	}
	_, err = c.EnsureStream(ctx, StreamConfig{Name: "S", Create: true}, []string{"x.*"}, true)
	if !errors.As(err, &lost) {
		t.Errorf("a deleted stream that a checkpoint names was made again: %v", err)
	}
}

// Two histories of a database share positions that mean different rows.
func TestMessagesOfAnotherHistoryShowThemselvesAlone(t *testing.T) {
	s := &Stream{Name: "S"}
	s.KnowExactly(2)
	tail := newTail(s, "src", 3)
	at := func(n uint32) event.Position { return event.Position{Timeline: 1, Commit: 7, Index: n} }
	for seq, n := range []uint32{5, 9, 6} {
		tail.take(headersOf(message{id: fmt.Sprint("src/t/", n), aggregate: fmt.Sprint("a", seq/2), position: at(n)}), uint64(seq+1))
	}
	if tail.Highest != at(9) || tail.Count != 3 {
		t.Fatalf("%+v", tail)
	}
	for _, tc := range []struct {
		id, aggregate string
		p             event.Position
		stored        bool
	}{
		{"src/t/5", "a0", at(5), true},  // itself
		{"src/t/5", "a0", at(4), false}, // another row that was given the same id
		{"src/t/4", "a0", at(4), false}, // passed by its aggregate in the other history
		{"src/t/3", "a1", at(3), true},  // passed in ours
		{"src/t/6", "a1", at(6), true},
	} {
		key := event.AggregateKey(nil, "t", []byte("a"), []byte(tc.aggregate))
		if _, ok := tail.Has([]byte(tc.id), key, tc.p); ok != tc.stored {
			t.Errorf("%s at %s: stored %v", tc.id, tc.p, ok)
		}
	}
}
