package publish

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/event"
)

// recorder is a Sender that remembers what was sent, or refuses to send.
type recorder struct {
	sent []nats.Msg
	err  error
}

func (r *recorder) PublishMsg(m *nats.Msg) error {
	if r.err != nil {
		return r.err
	}
	c := *m
	c.Header = nats.Header{event.HeaderMsgID: m.Header[event.HeaderMsgID]}
	c.Header[event.HeaderMsgID] = append([]string(nil), m.Header[event.HeaderMsgID]...)
	r.sent = append(r.sent, c)
	return nil
}

// take gives the messages sent since the last take.
func (r *recorder) take() []nats.Msg {
	sent := r.sent
	r.sent = nil
	return sent
}

var (
	testStream = &Stream{Name: "S", Subjects: []string{">"}, DuplicateWindow: 2 * time.Minute}
	start      = time.Unix(1_700_000_000, 0)
)

func testRow(aggregate string, n int) *Row {
	r := &Row{
		Stream: testStream, Size: 100, Position: event.Position{Timeline: 1, Commit: 7, Index: uint32(n)},
		Aggregate: event.AggregateKey(nil, "t", []byte("a"), []byte(aggregate)),
	}
	r.Msg.Subject = "x." + aggregate
	r.Msg.ID = fmt.Sprintf("src/t/%d", n)
	r.Msg.Headers = []event.Header{
		{Name: event.HeaderMsgID, Value: r.Msg.ID},
		{Name: event.HeaderAggregateType, Value: "a"},
		{Name: event.HeaderAggregateID, Value: aggregate},
		{Name: event.HeaderPosition, Value: "src/" + r.Position.String()},
	}
	return r
}

func answer(m nats.Msg, body string) *nats.Msg {
	return &nats.Msg{Subject: m.Reply, Data: []byte(body)}
}

func stored(m nats.Msg, seq int) *nats.Msg {
	return answer(m, fmt.Sprintf(`{"stream":"S","seq":%d}`, seq))
}

const streamFull = `{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S","seq":0}`

func mustAck(t *testing.T, l *Lanes, m *nats.Msg, now time.Time) *Row {
	t.Helper()
	r, err := l.Ack(m, now)
	if err != nil {
		t.Fatalf("ack %s: %v", m.Data, err)
	}
	return r
}

func wantIDs(t *testing.T, got []nats.Msg, want ...int) {
	t.Helper()
	var g, w []string
	for _, m := range got {
		g = append(g, m.Header.Get(event.HeaderMsgID))
	}
	for _, n := range want {
		w = append(w, fmt.Sprintf("src/t/%d", n))
	}
	if strings.Join(g, " ") != strings.Join(w, " ") {
		t.Fatalf("sent %v, want %v", g, w)
	}
}

func TestAggregateHasOneMessageInFlightAndKeepsItsOrder(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{})
	for n := 1; n <= 3; n++ {
		l.Add(testRow("a", n), start)
	}
	for n := 1; n <= 3; n++ {
		sent := s.take()
		wantIDs(t, sent, n)
		r := mustAck(t, l, stored(sent[0], n), start)
		if !r.Done || r.Seq != uint64(n) {
			t.Fatalf("row %d: done %v, seq %d", n, r.Done, r.Seq)
		}
	}
	if !l.Idle() {
		t.Fatal("not idle after every row is stored")
	}
}

func TestHotAggregateDoesNotStopOthers(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{MaxInFlight: 4})
	for n := 1; n <= 100; n++ {
		l.Add(testRow("hot", n), start)
	}
	for n, aggregate := range []string{"b", "c", "d", "e"} {
		l.Add(testRow(aggregate, 101+n), start)
	}
	wantIDs(t, s.take(), 1, 101, 102, 103) // the window is 4; 99 rows that wait do not count
	if aggregate, rows := l.Hottest(); aggregate != "a/hot" || rows != 100 {
		t.Fatalf("hottest is %s with %d rows", aggregate, rows)
	}
	if messages, bytes := l.InFlight(); messages != 4 || bytes != 400 || l.Waiting() != 100 {
		t.Fatalf("%d messages, %d bytes in flight, %d waiting", messages, bytes, l.Waiting())
	}
}

func TestLargeRowGoesAlone(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{MaxInFlightBytes: 250})
	large := testRow("c", 3)
	large.Size = 1000
	l.Add(testRow("a", 1), start)
	l.Add(testRow("b", 2), start)
	l.Add(large, start)
	l.Add(testRow("d", 4), start)
	sent := s.take()
	wantIDs(t, sent, 1, 2)
	mustAck(t, l, stored(sent[0], 1), start)
	wantIDs(t, s.take())
	mustAck(t, l, stored(sent[1], 2), start)
	sent = s.take()
	wantIDs(t, sent, 3)
	mustAck(t, l, stored(sent[0], 3), start)
	wantIDs(t, s.take(), 4)
}

func TestLateAckNeverCompletesANewerAttempt(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{})
	l.Add(testRow("a", 1), start)
	first := s.take()[0]
	l.Disconnected(start)
	l.Resolve(nil, start)
	second := s.take()[0]
	if first.Reply == second.Reply {
		t.Fatalf("both attempts ask for an answer at %s", first.Reply)
	}
	if r := mustAck(t, l, stored(first, 1), start); r != nil {
		t.Fatal("the first attempt's answer completed the row")
	}
	if r := mustAck(t, l, stored(second, 1), start); r == nil {
		t.Fatal("the second attempt's answer did not")
	}
	if s := l.Stats(); s.Late != 1 || s.Sent != 2 || s.Stored != 1 || s.Retries[ReasonDisconnected] != 1 {
		t.Fatalf("stats %+v", s)
	}
}

func TestAnswersThatAreNoneOfOursAreIgnored(t *testing.T) {
	l := NewLanes(&recorder{}, "in", LaneOptions{MaxInFlight: 2})
	l.Add(testRow("a", 1), start)
	for _, subject := range []string{
		"", "in", "in.", "in.0", "in.0.", "in.0.2", "in.0.1.1", "in.1.1", "in.2.1", "in.-1.1", "in.x.1",
		"in.99999999999999999999.1", "other.0.1",
	} {
		if r := mustAck(t, l, &nats.Msg{Subject: subject, Data: []byte(`{"stream":"S","seq":1}`)}, start); r != nil {
			t.Errorf("an answer at %q completed the row", subject)
		}
	}
}

func TestDuplicateOfARowNeverSentAsksForALook(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{})
	l.Add(testRow("a", 1), start)
	l.Add(testRow("a", 2), start)
	r, err := l.Ack(answer(s.take()[0], `{"stream":"S","seq":9,"duplicate":true}`), start)
	var dup *DuplicateError
	if !errors.As(err, &dup) || dup.Seq != 9 || dup.Row != r || r.Done {
		t.Fatalf("row %+v, error %v", r, err)
	}
	wantIDs(t, s.take())
	l.Confirm(dup.Row, dup.Seq, start)
	if !r.Done || !r.Duplicate || r.Seq != 9 {
		t.Fatalf("confirmed row: %+v", r)
	}
	wantIDs(t, s.take(), 2)
}

func TestDuplicateOfAnUnknownOutcomeCompletesTheRow(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{})
	l.Add(testRow("a", 1), start)
	l.Disconnected(start)
	l.Resolve(nil, start)
	r := mustAck(t, l, answer(s.take()[1], `{"stream":"S","seq":9,"duplicate":true}`), start)
	if r == nil || !r.Duplicate || l.Stats().Duplicates != 1 {
		t.Fatalf("row %+v", r)
	}
}

func TestAckOfAnotherStreamStops(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{})
	l.Add(testRow("a", 1), start)
	_, err := l.Ack(answer(s.take()[0], `{"stream":"T","seq":1}`), start)
	var foreign *ForeignAckError
	if !errors.As(err, &foreign) || foreign.Want != "S" || foreign.Got != "T" {
		t.Fatalf("error %v", err)
	}
	if class, _ := Classify(err); class != Fatal {
		t.Fatalf("class %v", class)
	}
}

func TestPoisonousRefusalHoldsTheLaneAndNoOther(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{})
	l.Add(testRow("a", 1), start)
	l.Add(testRow("a", 2), start)
	r, err := l.Ack(answer(s.take()[0], `{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}}`), start)
	if class, _ := Classify(err); class != Poison || r == nil || r.Msg.ID != "src/t/1" {
		t.Fatalf("row %v, error %v", r, err)
	}
	l.Add(testRow("b", 3), start)
	wantIDs(t, s.take(), 3)
}

// A stream that is full for a minute, with a thousand aggregates waiting, is asked a few dozen times and not 358,000.
func TestFullStreamIsProbedWithOneMessage(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{})
	now := start
	for n := range 1000 {
		l.Add(testRow(fmt.Sprint(n), n+1), now)
	}
	refuse := func() {
		for _, m := range s.take() {
			mustAck(t, l, answer(m, streamFull), now)
		}
	}
	refuse()
	for end := now.Add(time.Minute); now.Before(end); {
		if now = l.Next(); now.IsZero() {
			t.Fatal("nothing is going to be tried")
		}
		if err := l.Tick(now); err != nil {
			t.Fatal(err)
		}
		if len(s.sent) > 1 {
			t.Fatalf("%d messages sent to a full stream", len(s.sent))
		}
		refuse()
	}
	if sent := l.Stats().Sent; sent < 1020 || sent > 1060 {
		t.Fatalf("%d messages sent", sent)
	}
	if reason, since, yes := l.Probing(); !yes || reason != ReasonStreamFull || !since.Equal(start) {
		t.Fatalf("probing %v for %q since %v", yes, reason, since)
	}
	acceptAll(t, l, s, 1000)
}

// acceptAll stores everything that is sent, and wants the window to open by doubling.
func acceptAll(t *testing.T, l *Lanes, s *recorder, rows int) {
	t.Helper()
	now := l.Next()
	for seq, most := 0, 1; seq < rows; most *= 2 {
		if err := l.Tick(now); err != nil {
			t.Fatal(err)
		}
		sent := s.take()
		if len(sent) == 0 || len(sent) > most {
			t.Fatalf("%d messages sent in a round of %d", len(sent), most)
		}
		for _, m := range sent {
			seq++
			mustAck(t, l, stored(m, seq), now)
		}
	}
	if _, _, yes := l.Probing(); yes || !l.Idle() {
		t.Fatal("still probing after everything is stored")
	}
}

func TestNothingIsSentFromATimeoutUntilTheTailIsRead(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{AckTimeout: 5 * time.Second})
	l.Add(testRow("a", 1), start)
	l.Add(testRow("a", 2), start)
	l.Add(testRow("b", 3), start)
	s.take()
	if next := l.Next(); !next.Equal(start.Add(5 * time.Second)) {
		t.Fatalf("next tick at %v", next)
	}
	now := l.Next()
	if err := l.Tick(now); err != nil {
		t.Fatal(err)
	}
	if reason, yes := l.Uncertain(); !yes || reason != ReasonTimeout || !l.Next().IsZero() {
		t.Fatalf("uncertain %v: %q", yes, reason)
	}
	l.Add(testRow("c", 4), now)
	wantIDs(t, s.take())
	if after, rows := l.Unresolved(testStream); rows != 2 || after != (Mark{}) {
		t.Fatalf("%d rows unresolved after %v", rows, after)
	}

	tail := newTail(testStream, "src", 17)
	tail.take(headersOf(message{id: "src/t/1", aggregate: "a", position: event.Position{Timeline: 1, Commit: 7, Index: 1}}), 17)
	done := l.Resolve([]*Tail{tail}, now)
	if len(done) != 1 || done[0].Msg.ID != "src/t/1" || done[0].Seq != 17 {
		t.Fatalf("resolved %v", done)
	}
	sent := s.take()
	wantIDs(t, sent, 3) // what was unknown goes first, and alone
	mustAck(t, l, stored(sent[0], 18), now)
	wantIDs(t, s.take(), 2, 4)
}

// An outcome that is still unknown when the stream may have forgotten the id is read again before the row is sent.
func TestOldUnknownOutcomeIsReadAgainBeforeItIsSent(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{})
	l.Add(testRow("a", 1), start)
	l.Disconnected(start)
	l.Resolve(nil, start)
	mustAck(t, l, answer(s.take()[1], streamFull), start)
	now := start.Add(testStream.DuplicateWindow/2 + time.Second)
	if err := l.Tick(now); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, s.take())
	if reason, yes := l.Uncertain(); !yes || reason != ReasonStale {
		t.Fatalf("uncertain %v: %q", yes, reason)
	}
	if _, rows := l.Unresolved(testStream); rows != 1 {
		t.Fatalf("%d rows unresolved", rows)
	}
	l.Resolve(nil, now)
	wantIDs(t, s.take(), 1)
}

func TestRowTheClientRefusesIsReported(t *testing.T) {
	s := &recorder{err: nats.ErrMaxPayload}
	l := NewLanes(s, "in", LaneOptions{})
	l.Add(testRow("a", 1), start)
	var refused *SendError
	if err := l.Tick(start); !errors.As(err, &refused) || refused.Row.Msg.ID != "src/t/1" || !errors.Is(err, nats.ErrMaxPayload) {
		t.Fatalf("error %v", err)
	}
}

func TestRowTheClientCannotSendIsUncertain(t *testing.T) {
	s := &recorder{err: nats.ErrReconnectBufExceeded}
	l := NewLanes(s, "in", LaneOptions{})
	l.Add(testRow("a", 1), start)
	if reason, yes := l.Uncertain(); !yes || reason != ReasonDisconnected {
		t.Fatalf("uncertain %v: %q", yes, reason)
	}
	s.err = nil
	l.Resolve(nil, start)
	wantIDs(t, s.take(), 1)
}

// A long run of one aggregate at the front, more rows behind it than may be uncovered: it neither stands still nor
// needs a checkpoint for every row.
func TestCheckpointLimitNeverStopsTheRowThatTheCheckpointWaitsFor(t *testing.T) {
	s := &recorder{}
	const limit, hot, others = 64, 500, 500
	l := NewLanes(s, "in", LaneOptions{MaxUncovered: limit})
	for n := 1; n <= hot; n++ {
		l.Add(testRow("hot", n), start)
	}
	for n := hot + 1; n <= hot+others; n++ {
		l.Add(testRow(fmt.Sprint(n), n), start)
	}
	checkpoints := 0
	for seq := 1; !l.Idle(); {
		if l.ledger.uncovered > limit {
			t.Fatalf("%d rows sent beyond the checkpoint", l.ledger.uncovered)
		}
		sent := s.take()
		if len(sent) == 0 && !l.CheckpointDue() {
			t.Fatalf("stands still with %d rows waiting", l.Waiting())
		}
		for _, m := range sent {
			mustAck(t, l, stored(m, seq), start)
			seq++
		}
		if l.CheckpointDue() {
			checkpoints++
			l.Covered(l.Progress().Upto, start)
		}
	}
	if most := (hot + others) / (limit / 8); checkpoints > most {
		t.Fatalf("%d checkpoints", checkpoints)
	}
}

func TestMarkIsExactWhenNothingIsOutstanding(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{})
	cp := &Checkpoint{Streams: map[string]Mark{"S": {Seq: 40, MsgID: "src/t/0"}}}
	l.Open(cp, newTail(testStream, "src", 50))
	l.Add(testRow("a", 1), start)
	l.Add(testRow("b", 2), start)
	if p := l.Progress(); p.Marks["S"] != (Mark{Seq: 50}) || !p.W.IsZero() {
		t.Fatalf("progress %+v", p)
	}
	sent := s.take()
	mustAck(t, l, stored(sent[1], 51), start)
	if p := l.Progress(); p.Marks["S"] != (Mark{Seq: 50}) || p.Upto != 0 {
		t.Fatalf("row 2 is stored at 51 and row 1 is not: %+v", p)
	}
	mustAck(t, l, stored(sent[0], 52), start)
	p := l.Progress()
	if p.Marks["S"] != (Mark{Seq: 52, MsgID: "src/t/1"}) || p.W.Index != 2 || p.Upto != 2 {
		t.Fatalf("progress %+v", p)
	}
	if l.Highest(testStream) != p.Marks["S"] {
		t.Fatalf("highest %+v", l.Highest(testStream))
	}
}

// A verified duplicate may lie before the mark that was the newest when its row was sent: the mark steps back.
func TestMarkStepsBackForADuplicateThatLiesBeforeIt(t *testing.T) {
	s := &recorder{}
	l := NewLanes(s, "in", LaneOptions{})
	cp := &Checkpoint{Streams: map[string]Mark{"S": {Seq: 40}}}
	l.Open(cp, newTail(testStream, "src", 50))
	l.Add(testRow("a", 1), start)
	l.Add(testRow("b", 2), start)
	r, err := l.Ack(answer(s.take()[1], `{"stream":"S","seq":45,"duplicate":true}`), start)
	if err == nil {
		t.Fatal("no error for a duplicate of a row never sent")
	}
	l.Confirm(r, 45, start)
	if p := l.Progress(); p.Marks["S"].Seq != 40 {
		t.Fatalf("row 2 at 45 would not be read after %+v", p.Marks["S"])
	}
}

func TestRepeatedHeaderIsSentWithAllItsValues(t *testing.T) {
	var o outgoing
	m := event.Message{Headers: []event.Header{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "a", Value: "3"}}}
	got := o.fill(&m, "in.0.1").Header
	if fmt.Sprint(got["a"], got["b"]) != "[1 3] [2]" {
		t.Fatalf("headers %v", got)
	}
	m.Headers = m.Headers[:1]
	if got = o.fill(&m, "in.0.1").Header; fmt.Sprint(got) != "map[a:[1]]" {
		t.Fatalf("the next message's headers %v", got)
	}
}

// lastReply is a Sender that costs nothing: for measuring the lanes alone.
type lastReply struct{ replies []string }

func (s *lastReply) PublishMsg(m *nats.Msg) error {
	s.replies = append(s.replies, m.Reply)
	return nil
}

// steady is lanes with rows of so many aggregates on their way, acknowledged in some order.
type steady struct {
	sender lastReply
	lanes  *Lanes
	rows   []*Row
	ack    nats.Msg
	seq    uint64
}

func newSteady(aggregates int) *steady {
	s := &steady{}
	s.lanes = NewLanes(&s.sender, "_INBOX.abcdefghijklmnopqrstuv", LaneOptions{})
	for n := range aggregates {
		r := testRow(fmt.Sprint(rand.IntN(aggregates)), n)
		for len(r.Msg.Headers) < 10 {
			r.Msg.Headers = append(r.Msg.Headers, event.Header{Name: fmt.Sprint("h", len(r.Msg.Headers)), Value: "v"})
		}
		s.rows = append(s.rows, r)
	}
	return s
}

// turn adds one row and acknowledges one message.
func (s *steady) turn(now time.Time) {
	if n := len(s.rows); n > 0 {
		r := s.rows[n-1]
		s.rows = s.rows[:n-1]
		r.Done, r.Sent, r.unsure = false, time.Time{}, false
		s.lanes.Add(r, now)
	}
	if len(s.sender.replies) < 256 && len(s.rows) > 0 {
		return
	}
	last := len(s.sender.replies) - 1
	i := int(s.seq*2654435761) % (last + 1)
	s.ack.Subject = s.sender.replies[i]
	s.sender.replies[i] = s.sender.replies[last]
	s.sender.replies = s.sender.replies[:last]
	s.seq++
	s.ack.Data = append(s.ack.Data[:0], `{"stream":"S", "seq":`...)
	s.ack.Data = append(strconv.AppendUint(s.ack.Data, s.seq, 10), '}')
	r, err := s.lanes.Ack(&s.ack, now)
	if err != nil {
		panic(err)
	}
	s.rows = append(s.rows, r)
	if s.lanes.CheckpointDue() {
		s.lanes.Covered(s.lanes.Progress().Upto, now)
	}
}

func TestLanesAllocateTheReplyAndNothingElse(t *testing.T) {
	s := newSteady(2000)
	for range 50_000 {
		s.turn(start)
	}
	if allocs := testing.AllocsPerRun(50_000, func() { s.turn(start) }); allocs > 1 {
		t.Fatalf("%v allocations a row", allocs)
	}
}

func BenchmarkLanes(b *testing.B) {
	s := newSteady(10_000)
	for range 50_000 {
		s.turn(start)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.turn(start)
	}
}

// A row that is set aside may wait for rows that come back late: when nothing else may be sent before it is covered,
// these still are.
func TestLateRowIsSentWhileTheOldestWaitsAsideForIt(t *testing.T) {
	rec := &recorder{}
	l := NewLanes(rec, "inbox", LaneOptions{MaxUncovered: 8})
	l.SetAside(testRow("held", 1))
	for n := 2; n < 20; n++ {
		l.Add(testRow(strconv.Itoa(n), n), start)
	}
	if sent := len(rec.take()); sent != 7 {
		t.Fatalf("%d rows were sent beyond the checkpoint", sent)
	}
	late := testRow("held", 0)
	late.Late = true
	l.Add(late, start)
	if sent := rec.take(); len(sent) != 1 || sent[0].Header[event.HeaderMsgID][0] != late.Msg.ID {
		t.Fatalf("sent %v", sent)
	}
}
