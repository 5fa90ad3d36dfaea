package divergence

import (
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/publish"
)

// Stream is what was found of a stream.
type Stream struct {
	Name string
	// Lost is what was found wrong with it, nil when it has everything that the checkpoint says.
	Lost    *publish.LostError
	Missing bool
	Last    uint64
	// Before is a sequence after which every event lies that the slot may send again.
	Before  uint64
	Witness publish.Witness
}

// Finding is one thing that does not agree, and what accepting it means.
type Finding struct {
	What    string `json:"what"`
	GivenUp string `json:"given_up"`
}

// Plan is a checkpoint rebased onto what is there.
type Plan struct {
	Source   string          `json:"source"`
	Findings []Finding       `json:"findings"`
	Events   []publish.Event `json:"events"` // those that the database does not have
	From     string          `json:"continues_from"`

	Next *publish.Checkpoint `json:"-"`
}

// Rebase says what does not agree, and gives the checkpoint from which a bridge goes on: every row from the slot's
// position on is published that no stream shows to be stored. events are those that the streams hold and the server
// lacks. cp is nil where there is none.
func Rebase(source string, cp *publish.Checkpoint, s *Server, streams []Stream, events []publish.Event, now time.Time) *Plan {
	p := &Plan{Source: source, Findings: []Finding{}, Events: append([]publish.Event{}, events...), From: s.Confirmed.String()}
	p.Next = &publish.Checkpoint{
		Source: source, Identity: s.Identity, Confirmable: s.Confirmed, AcceptedAt: now, WrittenAt: now,
		Streams: map[string]publish.Mark{}, Witnesses: map[string]publish.Witness{},
	}
	marks := map[string]publish.Mark{} // that still hold
	switch {
	case cp == nil:
		p.noCheckpoint(streams)
	case cp.Identity.SystemID != s.Identity.SystemID || cp.Identity.DatabaseOID != s.Identity.DatabaseOID:
		p.otherDatabase(cp, s, streams, marks)
	default:
		p.keep(cp)
		marks = cp.Streams
		p.sameDatabase(cp, s, streams, &marks)
	}
	for _, st := range streams {
		p.stream(st, marks)
	}
	return p
}

func (p *Plan) find(givenUp, what string, args ...any) {
	p.Findings = append(p.Findings, Finding{fmt.Sprintf(what, args...), givenUp})
}

// keep takes over what stays true as long as the database is the same.
func (p *Plan) keep(cp *publish.Checkpoint) {
	n := p.Next
	n.W, n.CommittedAt, n.Subjects, n.Phase = cp.W, cp.CommittedAt, cp.Subjects, cp.Phase
	n.InitialFrom, n.OtherHistory = maps.Clone(cp.InitialFrom), maps.Clone(cp.OtherHistory)
	n.Confirmable, n.Floor = max(cp.Confirmable, n.Confirmable), cp.Floor
}

func (p *Plan) noCheckpoint(streams []Stream) {
	p.find("nothing that the streams show: rows from the slot's position on are published unless a stream holds them. Of rows that a stream has removed since, it is not known whether they were published: they are published again",
		"there is no checkpoint")
	if len(p.Events) > 0 {
		p.exact(streams)
	}
}

// otherDatabase begins anew at the slot: positions of another system tell nothing.
func (p *Plan) otherDatabase(cp *publish.Checkpoint, s *Server, streams []Stream, marks map[string]publish.Mark) {
	p.find("rows that were committed before the slot's position and are not in the streams. Positions begin anew: they do not compare with those of events that are stored already",
		"the checkpoint belongs to %s, this is %s", cp.Identity, s.Identity)
	p.exact(streams)
	for _, st := range streams {
		marks[st.Name] = publish.Mark{Seq: st.Last}
	}
}

// exact lets what is stored now show itself alone: by positions of a history that was left, rows would be taken for
// stored that are not.
func (p *Plan) exact(streams []Stream) {
	p.Next.OtherHistory = map[string]uint64{}
	for _, st := range streams {
		if !st.Missing {
			p.Next.OtherHistory[st.Name] = st.Last
		}
	}
}

func (p *Plan) sameDatabase(cp *publish.Checkpoint, s *Server, streams []Stream, marks *map[string]publish.Mark) {
	if cp.Identity.Slot != s.Identity.Slot || cp.Identity.Database != s.Identity.Database {
		p.find("", "the checkpoint belongs to %s, this is %s", cp.Identity, s.Identity)
	}
	parted := s.Parted(cp)
	switch {
	case parted != nil && s.Lacks(cp.W) == "": // only of what was parked: it comes again from the slot
		p.find("nothing: the rows that were parked come again from the slot", "%s", parted.Why)
		p.Next.W, p.Next.Confirmable, p.Next.Floor = lastBefore(s.History.At(s.Confirmed-1), s.Confirmed), s.Confirmed, 0
		*marks = nil
	case parted != nil:
		p.parted(cp, s, parted, streams, marks)
	case p.newlyLacking(cp) > 0: // published behind the checkpoint, which itself is of this history
		p.find("published events that this server does not have: they stay in the streams, for their consumers to judge",
			"%d events behind the checkpoint's position %s are of a history that this server has left", p.newlyLacking(cp), cp.W)
		p.exact(streams)
	case cp.Confirmable < s.Confirmed:
		p.find("rows committed in that range which the streams do not have: the slot does not send them again",
			"the checkpoint ends at %s (%s), but the slot was confirmed up to %s", cp.Confirmable, when(cp.CommittedAt), s.Confirmed)
	}
}

// newlyLacking counts the events that the server does not have and that were not accepted before.
func (p *Plan) newlyLacking(cp *publish.Checkpoint) int {
	n := 0
	for _, e := range p.Events {
		if e.Seq > cp.OtherHistory[e.Stream] {
			n++
		}
	}
	return n
}

// parted goes on in the server's history. What both histories share is stored.
func (p *Plan) parted(cp *publish.Checkpoint, s *Server, why *PartedError, streams []Stream, marks *map[string]publish.Mark) {
	p.find(fmt.Sprintf("%d published events that this server does not have: they stay in the streams, for their consumers to judge", len(p.Events)), "%s", why.Why)
	p.Next.Confirmable, p.Next.Floor = s.Confirmed, 0
	end, known := s.History.Switch(cp.W.Timeline)
	if known && cp.W.Timeline < s.Timeline {
		p.Next.W = lastBefore(cp.W.Timeline, end)
		if s.Confirmed > end {
			p.find("rows committed there: the slot does not send them. They are in the outbox table",
				"the slot begins at %s, and this server's own history at %s", s.Confirmed, end)
		}
		p.exact(streams) // ids of events that were lost may be used again
		return
	}
	// The two histories share positions that mean different rows: only what stands at its own position is the same.
	p.Next.W = lastBefore(s.History.At(s.Confirmed-1), s.Confirmed)
	p.exact(streams)
	*marks = nil
}

// lastBefore is the last position in front of an LSN.
func lastBefore(timeline uint32, lsn decoder.LSN) event.Position {
	return event.Position{Timeline: timeline, Commit: lsn - 1, Index: math.MaxUint32}
}

// stream gives a stream its mark: the old one while it holds, else one before everything that may come again.
func (p *Plan) stream(st Stream, marks map[string]publish.Mark) {
	if st.Lost != nil {
		p.find(fmt.Sprintf("the messages at sequences %d to %d of stream %s, as far as the stream does not hold them. Their rows are in the outbox table, if it still has them",
			st.Lost.From, st.Lost.To, st.Name), "stream %s: %s", st.Name, st.Lost.Reason)
	}
	if st.Missing {
		delete(p.Next.InitialFrom, st.Name)
		delete(p.Next.OtherHistory, st.Name)
		return
	}
	mark, known := marks[st.Name]
	if !known || st.Lost != nil {
		mark = publish.Mark{Seq: st.Before}
	}
	p.Next.Streams[st.Name] = mark
	p.Next.Witnesses[st.Name] = st.Witness
	if from, ok := p.Next.InitialFrom[st.Name]; ok && st.Lost != nil {
		p.Next.InitialFrom[st.Name] = publish.Mark{Seq: min(from.Seq, st.Last)}
	}
}

func when(t time.Time) string {
	if t.IsZero() {
		return "no row yet"
	}
	return t.UTC().Format(time.RFC3339)
}
