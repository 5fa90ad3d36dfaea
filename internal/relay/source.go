package relay

import (
	"log/slog"
	"sync/atomic"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/slot"
)

// source turns what the walsender sends into items. It runs on the replication connection's goroutine, so it only
// copies what is kept and hands it on: a slow sink must not keep the connection from sending its status.
type source struct {
	outboxes map[string]*outbox
	oids     map[uint32]*outbox // by what the tables were when the session began: a renamed table keeps its OID
	timeline func(decoder.LSN) uint32
	done     event.Position // rows up to it are stored: the checkpoint's W
	out      *queue
	budget   *budget
	pool     *rowPool
	metrics  *Metrics
	log      *slog.Logger
	gate     atomic.Bool // open while rows of the stream may come
	enough   atomic.Bool // more rows than can be sent at once are ready: reading on would only fill memory

	pending []item // handed on when the connection has used up what it read
	bound   map[uint32]*bound
	foreign map[string]bool // tables of the publication that are not configured, reported once

	open  bool
	begin decoder.Begin
	at    event.Position // of the next insert
}

// bound is a table as the last Relation message described it.
type bound struct {
	relation *decoder.Relation
	outbox   *outbox // nil: not configured
	binding  *event.Binding
	// drift says why the outbox cannot be read in this shape. It ends the session at the first row of the shape that is
	// not stored yet: what was written before the change is published first, or it could never be.
	drift error
}

// Handle takes one message of the stream.
func (s *source) Handle(m *decoder.Message, _ decoder.LSN) error {
	switch m.Kind {
	case decoder.KindBegin:
		s.open, s.begin = true, m.Begin
		s.at = event.Position{Timeline: s.timeline(m.Begin.FinalLSN), Commit: m.Begin.FinalLSN}
	case decoder.KindRelation:
		s.bind(m.Relation)
	case decoder.KindInsert:
		s.insert(m)
	case decoder.KindCommit:
		s.open = false
		s.pending = appendMark(s.pending, m.Commit.EndLSN, m.Commit.EndLSN)
	case decoder.KindUpdate, decoder.KindDelete, decoder.KindTruncate:
		s.ignore(m)
	case decoder.KindOrigin, decoder.KindType, decoder.KindLogical:
	}
	return nil
}

// Oversize takes a row that was framed past because it is larger than publish.max_row.
func (s *source) Oversize(e *slot.TooLargeError) error {
	at := s.at
	s.at.Index++
	if at.Compare(s.done) <= 0 {
		return nil
	}
	r := s.pool.get()
	if e.Relation != nil {
		b := s.bind(e.Relation)
		if b.outbox == nil {
			s.pool.put(r)
			return nil
		}
		r.outbox = b.outbox
		if r.poison = b.drift; b.drift == nil { // what is there of the row names it
			all := make(decoder.Tuple, len(e.Relation.Columns))
			for i := copy(all, e.Prefix); i < len(all); i++ {
				all[i].Kind = decoder.ValueNull
			}
			_ = b.binding.Fill(&r.event, all)
		}
	}
	r.pub.Position = at
	r.event.Position, r.event.CommittedAt, r.event.XID, r.event.Late = at, s.begin.CommitTime, s.begin.XID, ""
	if r.poison == nil {
		r.poison = e
	}
	s.hold(r)
	return nil
}

// Idle takes the end of the server's WAL at a moment when no transaction is open in the stream.
func (s *source) Idle(walEnd decoder.LSN) {
	s.pending = appendMark(s.pending, walEnd, 0)
}

// Flush hands on what was taken since the last Flush.
func (s *source) Flush() {
	s.out.put(s.pending...)
	clear(s.pending)
	s.pending = s.pending[:0]
}

// Full reports whether reading must pause: until memory is given back, or until the session opens the gate.
func (s *source) Full() bool { return !s.gate.Load() || s.enough.Load() || s.budget.full() }

func (s *source) insert(m *decoder.Message) {
	at := s.at
	s.at.Index++
	b := s.bind(m.Relation)
	switch {
	case b.outbox == nil:
		return
	case at.Compare(s.done) <= 0:
		s.metrics.skipped.Inc()
		return
	}
	r := s.pool.get()
	r.outbox = b.outbox
	r.pub.Position = at
	if r.poison = b.drift; r.poison == nil {
		r.fill(b.binding, m.New)
	}
	r.event.Position, r.event.CommittedAt, r.event.XID, r.event.Late = at, s.begin.CommitTime, s.begin.XID, ""
	s.hold(r)
}

func (s *source) hold(r *row) {
	r.pub.Size = r.memory()
	s.budget.take(r.pub.Size)
	s.pending = append(s.pending, item{row: r})
}

// bind gives what is known of a relation, learning it when it is new or has changed.
func (s *source) bind(rel *decoder.Relation) *bound {
	if b := s.bound[rel.OID]; b != nil && b.relation == rel {
		return b
	}
	name := rel.Namespace + "." + rel.Name
	b := &bound{relation: rel, outbox: s.outboxes[name]}
	switch {
	case b.outbox != nil:
		b.binding, b.drift = b.outbox.table.Bind(rel)
	case s.oids[rel.OID] != nil:
		b.outbox = s.oids[rel.OID]
		b.drift = &event.SchemaError{Table: b.outbox.table.Name, Reason: "it was renamed to " + name}
	case !s.foreign[name]:
		s.foreign[name] = true
		s.log.Warn("publication has a table that no outbox names; its rows are not published", "table", name)
	}
	s.bound[rel.OID] = b
	return b
}

// ignore passes over changes that the publication should not send. An outbox is only ever inserted into.
func (s *source) ignore(m *decoder.Message) {
	name := "(several)"
	if m.Relation != nil {
		name = m.Relation.Namespace + "." + m.Relation.Name
	}
	key := name + "/" + string(rune(m.Kind))
	if !s.foreign[key] {
		s.foreign[key] = true
		s.log.Warn("publication sends changes that are not inserts; they are not published", "table", name, "message", string(rune(m.Kind)))
	}
}
