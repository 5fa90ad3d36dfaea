package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/tidegate-cdc/tidegate/event"
)

// model is a source, a stream with a duplicate window and an unreliable way between them. It is the Sender of the
// lanes under test and plays the loop that owns them, through any number of sessions.
type model struct {
	t   *rapid.T
	now time.Time

	stream  *Stream
	stored  []message // sequence is index + 1
	recent  map[string]time.Time
	full    bool
	down    bool // no connection
	wire    []sent
	stuck   []sent // on a connection that is gone
	answers []*nats.Msg

	rows    []message // the source: what was committed, in order
	next    int       // the first row that this session has not handed over
	lanes   *Lanes
	tail    *Tail
	written Checkpoint

	kept    map[string]bool   // poison rows that are durable elsewhere
	aside   []*Row            // those that are not yet, of this session
	waiting map[string][]*Row // behind them, by aggregate

	sessions int
}

type message struct {
	id        string
	aggregate string
	position  event.Position
	poison    poison
}

// poison says how a row comes to be set aside: it is known beforehand, or the stream refuses it for good.
type poison int

const (
	sound poison = iota
	knownPoison
	refusedPoison
)

type sent struct {
	message
	reply string
	at    time.Time
}

const (
	modelWindow   = time.Minute
	modelLifetime = 20 * time.Second // how long a message may be stuck on the way and still arrive
)

func newModel(t *rapid.T) *model {
	m := &model{t: t, now: time.Unix(1e9, 0), recent: map[string]time.Time{}, kept: map[string]bool{}}
	m.stream = &Stream{Name: "S", Subjects: []string{">"}, DuplicateWindow: modelWindow}
	m.begin()
	return m
}

// kill ends a session: the stream still gets some of what was on its way.
func (m *model) kill() {
	m.down = true
	for range rapid.IntRange(0, len(m.wire)).Draw(m.t, "messages that still arrive") {
		m.arrive()
	}
	m.wire, m.stuck = nil, nil
	m.begin()
}

// begin starts a session as the relay does: from the checkpoint, with the tail after its mark.
func (m *model) begin() {
	m.sessions++
	m.lanes = NewLanes(m, fmt.Sprintf("inbox%d", m.sessions), LaneOptions{
		MaxInFlight:  rapid.IntRange(1, 8).Draw(m.t, "max in flight"),
		MaxUncovered: rapid.IntRange(2, 24).Draw(m.t, "max uncovered"),
	})
	m.down, m.answers, m.next = false, nil, 0
	m.aside, m.waiting = nil, map[string][]*Row{}
	from := m.written.Streams["S"]
	m.checkMark(from)
	m.tail = m.readTail(from.Seq)
	m.lanes.Open(&m.written, m.tail)
}

func (m *model) readTail(after uint64) *Tail {
	t := newTail(m.stream, "src", uint64(len(m.stored)))
	for seq := after + 1; seq <= t.Last; seq++ {
		t.take(headersOf(m.stored[seq-1]), seq)
	}
	return t
}

func headersOf(r message) nats.Header {
	return nats.Header{
		event.HeaderMsgID:         {r.id},
		event.HeaderAggregateType: {"a"},
		event.HeaderAggregateID:   {r.aggregate},
		event.HeaderPosition:      {"src/" + r.position.String()},
	}
}

func (m *model) commit() {
	n := len(m.rows) + 1
	m.rows = append(m.rows, message{
		id:        fmt.Sprintf("src/t/%d", n),
		aggregate: rapid.SampledFrom([]string{"hot", "hot", "hot", "b", "c", "d", "e", "f"}).Draw(m.t, "aggregate"),
		position:  event.Position{Timeline: 1, Commit: 100, Index: uint32(n)},
		poison:    rapid.SampledFrom([]poison{sound, sound, sound, sound, sound, sound, knownPoison, refusedPoison}).Draw(m.t, "poison"),
	})
}

// handOver gives the next row to the lanes, or skips it by the three rules.
func (m *model) handOver() {
	if m.next == len(m.rows) {
		return
	}
	in := m.rows[m.next]
	m.next++
	r := &Row{
		Stream: m.stream, Position: in.position, Size: 1,
		Aggregate: event.AggregateKey(nil, "t", []byte("a"), []byte(in.aggregate)),
	}
	r.Msg.ID, r.Msg.Subject = in.id, "x"
	for name, values := range headersOf(in) {
		r.Msg.Headers = append(r.Msg.Headers, event.Header{Name: name, Value: values[0]})
	}
	if in.position.Compare(m.written.W) <= 0 {
		return
	}
	if _, ok := m.tail.Stored(r); ok {
		m.lanes.Skip(m.stream, in.position)
		return
	}
	switch {
	case m.kept[in.id] || in.poison == knownPoison:
		m.lanes.SetAside(r)
		m.setAside(r, in.aggregate)
	case m.waits(in.aggregate):
		m.lanes.SetAside(r)
		m.waiting[in.aggregate] = append(m.waiting[in.aggregate], r)
	default:
		m.lanes.Add(r, m.now)
	}
}

func (m *model) setAside(r *Row, aggregate string) {
	m.aside = append(m.aside, r)
	if !m.waits(aggregate) {
		m.waiting[aggregate] = []*Row{}
	}
}

// waits reports whether later rows of an aggregate wait for a poison row to be kept.
func (m *model) waits(aggregate string) bool { return m.waiting[aggregate] != nil }

// refused takes a row that the stream will never have, and what is behind it, out of the lanes.
func (m *model) refused(r *Row) {
	in := m.rowOf(r)
	rows := m.lanes.Withdraw(r)
	m.setAside(r, in.aggregate)
	m.waiting[in.aggregate] = append(rows[1:], m.waiting[in.aggregate]...) // these were handed over before
}

func (m *model) rowOf(r *Row) message {
	for _, in := range m.rows {
		if in.id == r.Msg.ID {
			return in
		}
	}
	m.t.Fatalf("%s is no row", r.Msg.ID)
	return message{}
}

// keep makes the oldest poison row durable elsewhere and lets go what waits for it.
func (m *model) keep() {
	if len(m.aside) == 0 {
		return
	}
	r := m.aside[0]
	m.aside = m.aside[1:]
	in := m.rowOf(r)
	m.kept[in.id] = true
	m.lanes.Kept(r)
	for _, other := range m.aside {
		if m.rowOf(other).aggregate == in.aggregate {
			return
		}
	}
	rows := m.waiting[in.aggregate]
	delete(m.waiting, in.aggregate)
	for _, behind := range rows {
		m.lanes.Requeue(behind, m.now)
	}
}

func (m *model) PublishMsg(msg *nats.Msg) error {
	id := msg.Header.Get(event.HeaderMsgID)
	var row message
	for _, r := range m.rows {
		if r.id == id {
			row = r
		}
	}
	for _, w := range m.wire {
		if w.aggregate == row.aggregate && w.id != id && w.at.Add(modelLifetime).After(m.now) && m.lanes.flight.find(w.reply) != nil {
			m.t.Fatalf("%s is sent while %s of the same aggregate is in flight", id, w.id)
		}
	}
	if m.down {
		return nats.ErrReconnectBufExceeded
	}
	m.wire = append(m.wire, sent{row, msg.Reply, m.now})
	return nil
}

// arrive lets the stream have one message: it is stored or refused, and the answer arrives or is lost.
func (m *model) arrive() {
	m.expire()
	if len(m.wire) == 0 {
		return
	}
	w := m.wire[0]
	m.wire = m.wire[1:]
	m.reach(w)
}

func (m *model) reach(w sent) {
	answer := m.answerTo(w)
	if rapid.IntRange(0, 9).Draw(m.t, "answer lost") > 0 && !m.down {
		answer.Subject = w.reply
		m.answers = append(m.answers, answer)
	}
}

func (m *model) answerTo(w sent) *nats.Msg {
	if w.poison == refusedPoison {
		return &nats.Msg{Data: []byte(`{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}}`)}
	}
	if at, ok := m.recent[w.id]; ok && m.now.Sub(at) < modelWindow {
		return ackMsg(m.seqOf(w.id), true)
	}
	if m.full {
		return &nats.Msg{Data: []byte(`{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"}}`)}
	}
	if rapid.IntRange(0, 14).Draw(m.t, "no leader") == 0 {
		return &nats.Msg{Header: nats.Header{"Status": {"503"}}}
	}
	m.stored = append(m.stored, w.message)
	m.recent[w.id] = m.now
	return ackMsg(uint64(len(m.stored)), false)
}

func (m *model) seqOf(id string) uint64 {
	for i, r := range m.stored {
		if r.id == id {
			return uint64(i + 1)
		}
	}
	return 0
}

func ackMsg(seq uint64, duplicate bool) *nats.Msg {
	data, err := json.Marshal(map[string]any{"stream": "S", "seq": seq, "duplicate": duplicate})
	if err != nil {
		panic(err)
	}
	return &nats.Msg{Data: data}
}

// acknowledge delivers any one of the answers.
func (m *model) acknowledge() {
	if len(m.answers) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.answers)-1).Draw(m.t, "answer")
	a := m.answers[i]
	m.answers = append(m.answers[:i], m.answers[i+1:]...)
	row, err := m.lanes.Ack(a, m.now)
	if dup := (*DuplicateError)(nil); errors.As(err, &dup) {
		m.lanes.Confirm(dup.Row, dup.Seq, m.now)
	} else if class, _ := Classify(err); err != nil && class == Poison {
		m.refused(row)
		return
	} else if err != nil {
		m.t.Fatalf("acknowledge: %v", err)
	}
	if row != nil && m.seqOf(row.Msg.ID) == 0 {
		m.t.Fatalf("%s is done and not stored", row.Msg.ID)
	}
}

func (m *model) disconnect() {
	m.down, m.answers = true, nil
	m.stuck, m.wire = append(m.stuck, m.wire...), nil
	m.lanes.Disconnected(m.now)
}

// arriveLate lets the stream have a message of a connection that is gone, any of them.
func (m *model) arriveLate() {
	m.expire()
	if len(m.stuck) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.stuck)-1).Draw(m.t, "stuck message")
	w := m.stuck[i]
	m.stuck = append(m.stuck[:i], m.stuck[i+1:]...)
	m.answerTo(w)
}

// outage lasts longer than the duplicate window.
func (m *model) outage() {
	m.disconnect()
	m.now = m.now.Add(2 * modelWindow)
	m.expire()
}

// reconcile reconnects if need be and resolves what is unknown.
func (m *model) reconcile() {
	m.down = false
	if _, yes := m.lanes.Uncertain(); !yes {
		return
	}
	m.checkMark(m.lanes.Highest(m.stream))
	after, _ := m.lanes.Unresolved(m.stream)
	for _, r := range m.lanes.Resolve([]*Tail{m.readTail(after.Seq)}, m.now) {
		if !r.Done || m.seqOf(r.Msg.ID) == 0 {
			m.t.Fatalf("%s is resolved and not stored", r.Msg.ID)
		}
	}
}

func (m *model) checkMark(mark Mark) {
	if mark.MsgID != "" && m.stored[mark.Seq-1].id != mark.MsgID {
		m.t.Fatalf("mark %+v names %s", mark, m.stored[mark.Seq-1].id)
	}
}

func (m *model) elapse(most time.Duration) {
	m.now = m.now.Add(time.Duration(rapid.Int64Range(0, int64(most)).Draw(m.t, "elapsed")))
	if err := m.lanes.Tick(m.now); err != nil {
		m.t.Fatalf("tick: %v", err)
	}
}

// expire drops what was on the way for too long.
func (m *model) expire() {
	late := func(w sent) bool { return m.now.Sub(w.at) > modelLifetime }
	m.wire = slices.DeleteFunc(m.wire, late)
	m.stuck = slices.DeleteFunc(m.stuck, late)
}

func (m *model) checkpoint() {
	p := m.lanes.Progress()
	if p.W.Compare(m.written.W) > 0 {
		m.written.W = p.W
	}
	m.written.Streams = p.Marks
	m.lanes.Covered(p.Upto, m.now)
	for _, r := range m.rows {
		seq := m.seqOf(r.id)
		if r.position.Compare(m.written.W) <= 0 && seq == 0 && !m.kept[r.id] {
			m.t.Fatalf("checkpoint covers %s, which is not stored", r.id)
		}
		if r.position.Compare(m.written.W) > 0 && seq > 0 && seq <= p.Marks["S"].Seq {
			m.t.Fatalf("checkpoint at %v, sequence %d hides %s at %d", m.written.W, p.Marks["S"].Seq, r.id, seq)
		}
	}
}

// check is what holds at any time: nothing stored twice, every aggregate in its order.
func (m *model) check() {
	last := map[string]event.Position{}
	for _, r := range m.stored {
		if r.position.Compare(last[r.aggregate]) <= 0 {
			m.t.Fatalf("%s of %s is stored out of order or twice", r.id, r.aggregate)
		}
		last[r.aggregate] = r.position
	}
	rows, _ := m.lanes.InFlight()
	if rows > m.lanes.opts.MaxInFlight {
		m.t.Fatalf("%d rows in flight", rows)
	}
	if m.lanes.ledger.uncovered > m.lanes.opts.MaxUncovered+1+len(m.tail.seqs) {
		m.t.Fatalf("%d rows sent beyond the checkpoint", m.lanes.ledger.uncovered)
	}
}

// finish lets everything go well from here on, and wants every row stored.
func (m *model) finish() {
	m.full = false
	for range 100 * (len(m.rows) + 10) {
		if m.next == len(m.rows) && m.lanes.Idle() && len(m.aside) == 0 {
			m.checkpoint()
			m.check()
			if len(m.stored)+len(m.kept) != len(m.rows) {
				m.t.Fatalf("%d of %d rows stored, %d kept", len(m.stored), len(m.rows), len(m.kept))
			}
			return
		}
		m.handOver()
		m.keep()
		m.reconcile()
		m.arrive()
		m.acknowledge()
		if m.lanes.CheckpointDue() {
			m.checkpoint()
		}
		m.now = m.now.Add(100 * time.Millisecond)
		if err := m.lanes.Tick(m.now); err != nil {
			m.t.Fatalf("tick: %v", err)
		}
	}
	m.t.Fatalf("no end: %d of %d rows stored, %d waiting, due %v", len(m.stored), len(m.rows), m.lanes.Waiting(), m.lanes.CheckpointDue())
}
