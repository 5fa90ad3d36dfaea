package publish

import (
	"hash/maphash"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/event"
)

// Sender puts one message on the wire. It keeps nothing of the message after it returns: its memory is used again.
// An error means that the message may or may not have been sent.
type Sender interface {
	PublishMsg(m *nats.Msg) error
}

// LaneOptions bound what is on its way. Fields that are zero take the defaults of the configuration.
type LaneOptions struct {
	MaxInFlight      int           // messages sent and not yet acknowledged
	MaxInFlightBytes int64         // their sizes; a larger row goes alone
	AckTimeout       time.Duration // after which an outcome is unknown
	MaxUncovered     int           // rows sent beyond the last written checkpoint: what a restart has to read
}

func (o *LaneOptions) setDefaults() {
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 4096
	}
	if o.MaxInFlightBytes <= 0 {
		o.MaxInFlightBytes = 64 << 20
	}
	if o.AckTimeout <= 0 {
		o.AckTimeout = 5 * time.Second
	}
	if o.MaxUncovered <= 0 {
		o.MaxUncovered = 16384
	}
}

// Lanes stores rows so that each aggregate keeps its order: at most one message of an aggregate is in flight, and as
// many aggregates as the windows allow. It has one owner, who also brings the clock; nothing in it locks or waits.
//
// A message that was refused for now is tried again with the same id, one message at a time until one succeeds. Once
// an outcome is unknown nothing is sent until the owner has read what the streams hold and calls Resolve.
type Lanes struct {
	sender Sender
	opts   LaneOptions
	seed   maphash.Seed

	lanes map[uint64]*lane
	spare *lane    // emptied lanes, linked by next
	ready laneHeap // their heads were never sent
	retry laneList // their heads were sent before

	flight  flight
	pace    pace
	ledger  ledger
	waiting int

	uncertain  string // the cause, while nothing may be sent
	resolvedAt time.Time
	broken     *SendError

	out   outgoing
	stats Stats
}

// NewLanes makes lanes that send through s and ask for acknowledgements at "<inbox>.<slot>.<generation>".
func NewLanes(s Sender, inbox string, o LaneOptions) *Lanes {
	o.setDefaults()
	return &Lanes{
		sender: s,
		opts:   o,
		seed:   maphash.MakeSeed(),
		lanes:  make(map[uint64]*lane),
		flight: newFlight(inbox, o.MaxInFlight),
		pace:   pace{window: o.MaxInFlight},
		ledger: newLedger(o.MaxUncovered),
		stats:  Stats{Retries: make(map[string]uint64)},
	}
}

// Open begins with a stream in a session: cp is the checkpoint that the session starts from, nil if there is none, and
// t what was read after its mark. It must come before the first Add or Skip for the stream.
func (l *Lanes) Open(cp *Checkpoint, t *Tail) {
	var none Checkpoint
	if cp == nil {
		cp = &none
	}
	l.ledger.open(t, cp.Streams[t.Stream.Name], cp.W)
}

// Add takes a row over. Rows must come in the order in which a checkpoint is to cover them: that of their positions. A
// Late row may come at any time.
func (l *Lanes) Add(r *Row, now time.Time) {
	l.SetAside(r)
	l.queue(r, now)
}

// queue puts a row that the ledger knows at the end of its aggregate's lane.
func (l *Lanes) queue(r *Row, now time.Time) {
	l.waiting++
	key := maphash.Bytes(l.seed, r.Aggregate)
	la := l.lanes[key]
	if la == nil {
		la = l.newLane(key)
	}
	r.lane = la
	la.push(r)
	if la.head == r {
		l.ready.push(la)
		l.pump(now)
	}
}

// Skip takes note, instead of Add, of a row beyond the checkpoint that its stream already holds, so that no checkpoint
// leaves the row's message out of what the next session reads before the row itself is covered.
func (l *Lanes) Skip(s *Stream, p event.Position) { l.ledger.skip(s, p) }

// Ack takes a message that came to the inbox. It gives the row that this completes, or nothing: the answer came late,
// or the row will be tried again. With an error the row, not Done, is the one that the error is about, and its lane
// stands still: Classify tells what the error means; after a *DuplicateError the lane goes on with Confirm.
func (l *Lanes) Ack(m *nats.Msg, now time.Time) (*Row, error) {
	r := l.flight.find(m.Subject)
	if r == nil {
		l.stats.Late++
		return nil, nil
	}
	ack, err := readAck(m)
	if err != nil {
		return l.refuse(r, err, now)
	}
	if string(ack.stream) != r.Stream.Name {
		l.hold(r)
		return r, &ForeignAckError{Subject: r.Msg.Subject, Want: r.Stream.Name, Got: string(ack.stream)}
	}
	if ack.duplicate && !r.unsure {
		l.hold(r)
		return r, &DuplicateError{Row: r, Seq: ack.seq}
	}
	r.Duplicate = ack.duplicate
	l.pace.succeeded(r, l.opts.MaxInFlight)
	l.complete(r, ack.seq)
	l.pump(now)
	return r, nil
}

// Confirm completes a row that Ack returned with a *DuplicateError, once VerifyDuplicate has found it to be the same.
func (l *Lanes) Confirm(r *Row, seq uint64, now time.Time) {
	r.Duplicate = true
	l.pace.succeeded(r, l.opts.MaxInFlight)
	l.complete(r, seq)
	l.pump(now)
}

// Tick does what is due: it declares overdue outcomes unknown and sends what waited for its time. Its error is a
// *SendError and stays.
func (l *Lanes) Tick(now time.Time) error {
	if r := l.flight.first; r != nil && l.uncertain == "" && now.Sub(r.sentAt) >= l.opts.AckTimeout {
		l.stats.Timeouts++
		l.doubt(ReasonTimeout)
	}
	l.pump(now)
	if l.broken != nil {
		return l.broken
	}
	return nil
}

// Next is when Tick will have something to do; zero when only an acknowledgement or another call can bring it about.
func (l *Lanes) Next() time.Time {
	if l.uncertain != "" {
		return time.Time{}
	}
	var next time.Time
	if r := l.flight.first; r != nil {
		next = r.sentAt.Add(l.opts.AckTimeout)
	}
	due := l.pace.notBefore
	if due.IsZero() || l.retry.first == nil || l.flight.rows >= l.pace.window {
		return next
	}
	if next.IsZero() || due.Before(next) {
		next = due
	}
	return next
}

// refuse deals with an error that came as the answer to r.
func (l *Lanes) refuse(r *Row, err error, now time.Time) (*Row, error) {
	class, reason := Classify(err)
	l.stats.Retries[reason]++
	l.hold(r)
	if class != Transient {
		return r, err
	}
	r.unsure = r.unsure || reason == ReasonDuplicateInProcess
	l.retry.pushBack(r.lane)
	l.pace.failed(r, reason, now)
	l.pump(now)
	return nil, nil
}

// hold takes r out of flight and leaves it at the head of its lane.
func (l *Lanes) hold(r *Row) {
	l.flight.remove(r)
	l.waiting++
}

// complete ends r's way: it is stored at seq, 0 where the sequence is not known.
func (l *Lanes) complete(r *Row, seq uint64) {
	if r.inFlight {
		l.hold(r)
	}
	l.waiting--
	r.Done, r.Seq = true, seq
	l.stats.Stored++
	if r.Duplicate {
		l.stats.Duplicates++
	}
	l.ledger.done(r, seq)
	l.advance(r.lane)
}

// advance takes the finished head off its lane.
func (l *Lanes) advance(la *lane) {
	r := la.pop()
	r.lane, r.book = nil, nil
	if la.head != nil {
		l.ready.push(la)
		return
	}
	l.drop(la)
}

// drop ends an empty lane.
func (l *Lanes) drop(la *lane) {
	delete(l.lanes, la.key)
	la.next, l.spare = l.spare, la
}

func (l *Lanes) newLane(key uint64) *lane {
	la := l.spare
	if la == nil {
		la = new(lane)
	} else {
		l.spare = la.next
	}
	*la = lane{key: key}
	l.lanes[key] = la
	return la
}
