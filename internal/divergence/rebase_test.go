package divergence

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

var (
	me       = publish.Identity{SystemID: "7", DatabaseOID: 5, Database: "app", Slot: "tidegate"}
	accepted = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
)

func pos(timeline uint32, commit decoder.LSN) event.Position {
	return event.Position{Timeline: timeline, Commit: commit}
}

func before(timeline uint32, lsn decoder.LSN) event.Position {
	return event.Position{Timeline: timeline, Commit: lsn - 1, Index: math.MaxUint32}
}

// The server is on timeline 3; the slot was confirmed up to 0/5100, the WAL ends at 0/8000.
func TestCheckpointIsRebasedSoThatNothingIsLostOrDoubledFromTheSlotOn(t *testing.T) {
	history, err := slot.ParseHistory(3, "1\t0/2000\tx\n2\t0/4000\tx\n")
	if err != nil {
		t.Fatal(err)
	}
	mark := publish.Mark{Seq: 40, MsgID: "app/t/40"}
	whole := Stream{Name: "S", Last: 50, Before: 45}
	lost := whole
	lost.Lost = &publish.LostError{Stream: "S", From: 1, To: 40, Reason: "it was made again"}
	lost.Last, lost.Before = 3, 3
	gone := Stream{Name: "S", Missing: true, Lost: &publish.LostError{Stream: "S", From: 1, To: 40, Reason: "gone"}}
	for _, tc := range []struct {
		name        string
		none        bool
		identity    publish.Identity
		w           event.Position
		confirmable decoder.LSN
		stream      Stream
		events      []publish.Event
		wantW       event.Position
		wantUpto    decoder.LSN
		wantMarks   map[string]publish.Mark
		wantOther   map[string]uint64
		says        string
	}{
		{name: "all agree", identity: me, w: pos(3, 0x5000), confirmable: 0x5200, stream: whole, wantW: pos(3, 0x5000), wantUpto: 0x5200, wantMarks: map[string]publish.Mark{"S": mark}},
		{name: "stream made again", identity: me, w: pos(3, 0x5000), confirmable: 0x5200, stream: lost, wantW: pos(3, 0x5000), wantUpto: 0x5200, wantMarks: map[string]publish.Mark{"S": {Seq: 3}}, says: "1 to 40"},
		{name: "stream gone", identity: me, w: pos(3, 0x5000), confirmable: 0x5200, stream: gone, wantW: pos(3, 0x5000), wantUpto: 0x5200, wantMarks: map[string]publish.Mark{}, says: "1 to 40"},
		{name: "checkpoint gone", none: true, stream: whole, wantUpto: 0x5100, wantMarks: map[string]publish.Mark{"S": {Seq: 45}}, says: "no checkpoint"},
		{name: "checkpoint gone, database restored", none: true, stream: whole, events: []publish.Event{{}}, wantUpto: 0x5100, wantMarks: map[string]publish.Mark{"S": {Seq: 45}}, wantOther: map[string]uint64{"S": 50}, says: "no checkpoint"},
		{name: "checkpoint behind the slot", identity: me, w: pos(3, 0x4800), confirmable: 0x4900, stream: whole, wantW: pos(3, 0x4800), wantUpto: 0x5100, wantMarks: map[string]publish.Mark{"S": mark}, says: "0/4900"},
		{name: "promoted, the slot new", identity: me, w: pos(2, 0x4500), confirmable: 0x4600, stream: whole, wantW: before(2, 0x4000), wantUpto: 0x5100, wantMarks: map[string]publish.Mark{"S": mark}, wantOther: map[string]uint64{"S": 50}, says: "the slot begins at 0/5100"},
		{name: "restored", identity: me, w: pos(3, 0x9000), confirmable: 0x9100, stream: whole, wantW: before(3, 0x5100), wantUpto: 0x5100, wantMarks: map[string]publish.Mark{"S": {Seq: 45}}, wantOther: map[string]uint64{"S": 50}, says: "WAL ends at 0/8000"},
		{name: "restored to before a promotion", identity: me, w: pos(4, 0x5050), confirmable: 0x9100, stream: whole, wantW: before(3, 0x5100), wantUpto: 0x5100, wantMarks: map[string]publish.Mark{"S": {Seq: 45}}, wantOther: map[string]uint64{"S": 50}, says: "timeline 4"},
		{name: "upgraded", identity: publish.Identity{SystemID: "6", DatabaseOID: 5, Database: "app", Slot: "tidegate"}, w: pos(9, 0x9000), confirmable: 0x9100, stream: whole, wantUpto: 0x5100, wantMarks: map[string]publish.Mark{"S": {Seq: 50}}, wantOther: map[string]uint64{"S": 50}, says: "system 6"},
		{name: "another slot", identity: publish.Identity{SystemID: "7", DatabaseOID: 5, Database: "app", Slot: "old"}, w: pos(3, 0x5000), confirmable: 0x5200, stream: whole, wantW: pos(3, 0x5000), wantUpto: 0x5200, wantMarks: map[string]publish.Mark{"S": mark}, says: "slot old"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var cp *publish.Checkpoint
			if !tc.none {
				cp = &publish.Checkpoint{Source: "app", Identity: tc.identity, W: tc.w, Confirmable: tc.confirmable, Streams: map[string]publish.Mark{"S": mark}}
			}
			s := &Server{Identity: me, Timeline: 3, WALEnd: 0x8000, Confirmed: 0x5100, History: history}
			p := Rebase("app", cp, s, []Stream{tc.stream}, tc.events, accepted)
			n := p.Next
			if n.W != tc.wantW || n.Confirmable != tc.wantUpto || !reflect.DeepEqual(n.Streams, tc.wantMarks) || !reflect.DeepEqual(n.OtherHistory, tc.wantOther) {
				t.Errorf("got W %s, confirmable %s, marks %v, other history %v", n.W, n.Confirmable, n.Streams, n.OtherHistory)
			}
			if n.Identity != me || n.AcceptedAt != accepted || s.Parted(n) != nil || n.Confirmable < s.Confirmed {
				t.Errorf("a bridge would refuse %+v", n)
			}
			var found strings.Builder
			for _, f := range p.Findings {
				found.WriteString(f.What + f.GivenUp)
			}
			if (tc.says == "") != (len(p.Findings) == 0) || !strings.Contains(found.String(), tc.says) {
				t.Errorf("found %q, want %q", found.String(), tc.says)
			}
		})
	}
}

// What was parked by a commit that the promoted server lacks comes again from its slot: it must not count as finished.
func TestRowsWhoseParkingWasLostAreNotTakenForFinished(t *testing.T) {
	me := publish.Identity{SystemID: "7", DatabaseOID: 5, Database: "app", Slot: "tidegate"}
	s := &Server{Identity: me, Timeline: 3, WALEnd: 0x4700, Confirmed: 0x4200}
	cp := &publish.Checkpoint{
		Source: "app", Identity: me, W: event.Position{Timeline: 3, Commit: 0x4500}, Confirmable: 0x4300, Floor: 0x4800,
		Streams: map[string]publish.Mark{"S": {Seq: 40}},
	}
	if parted := s.Parted(cp); parted == nil || !strings.Contains(parted.Why, "parked") {
		t.Fatalf("got %v", parted)
	}
	n := Rebase("app", cp, s, []Stream{{Name: "S", Last: 50, Before: 45}}, nil, time.Now()).Next
	if n.W.Compare(event.Position{Timeline: 3, Commit: 0x4200}) >= 0 || n.Floor != 0 || n.Streams["S"].Seq != 45 {
		t.Fatalf("got %+v", n)
	}
	passed := *cp
	passed.Confirmable = 0x4800
	if parted := s.Parted(&passed); parted != nil {
		t.Fatalf("the slot had come past it: %v", parted)
	}
}
