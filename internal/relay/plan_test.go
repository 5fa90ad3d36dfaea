package relay

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/divergence"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

func TestNothingIsMadeAgainSilently(t *testing.T) {
	aSlot := &slot.State{Plugin: slot.Plugin}
	at := func(phase string) *publish.Checkpoint {
		return &publish.Checkpoint{Source: "app", Phase: phase, Confirmable: 0x1000, CommittedAt: time.Unix(0, 0)}
	}
	for _, tc := range []struct {
		name       string
		slot       *slot.State
		checkpoint *publish.Checkpoint
		create     bool
		snapshot   string
		rows       int64
		want       step
		code       int
		says       string
	}{
		{name: "both there", slot: aSlot, checkpoint: at(""), create: true, want: stepResume},
		{name: "slot dropped", checkpoint: at(""), create: true, code: exit.SlotLost, says: "committed after 0/1000"},
		{name: "slot dropped, rows wanted", checkpoint: at(""), create: true, snapshot: "publish", rows: 5, code: exit.SlotLost, says: "0/1000"},
		{name: "first start, empty outbox", create: true, want: stepCopy},
		{name: "first start, rows undecided", create: true, rows: 7, code: exit.Usage, says: "public.outbox: 7"},
		{name: "first start, rows left alone", create: true, snapshot: "skip", rows: 7, want: stepCreate},
		{name: "first start, rows published", create: true, snapshot: "publish", rows: 7, want: stepCopy},
		{name: "first start, none may be made", create: false, code: exit.SlotLost, says: "does not exist"},
		{name: "slot made by the DBA", slot: aSlot, want: stepAdopt},
		{name: "slot made by the DBA, rows undecided", slot: aSlot, rows: 7, code: exit.Usage, says: "public.outbox: 7"},
		{name: "slot made by the DBA, rows left alone", slot: aSlot, snapshot: "skip", rows: 7, want: stepAdopt},
		{name: "slot made by the DBA, rows wanted", slot: aSlot, snapshot: "publish", rows: 7, code: exit.Usage, says: "older than slot"},
		{name: "cut short before the slot", checkpoint: at(phaseCreating), create: true, snapshot: "skip", rows: 7, want: stepCreate},
		{name: "cut short before the slot, empty outbox", checkpoint: at(phaseCreating), create: true, want: stepCopy},
		{name: "cut short before the slot, rows undecided", checkpoint: at(phaseCreating), create: true, rows: 7, code: exit.Usage, says: "public.outbox: 7"},
		{name: "cut short before the slot, none may be made", checkpoint: at(phaseCreating), code: exit.SlotLost, says: "does not exist"},
		{name: "cut short after the slot", slot: aSlot, checkpoint: at(phaseCreating), rows: 7, want: stepAdopt},
		{name: "cut short while copying", slot: aSlot, checkpoint: at(phaseInitial), rows: 7, want: stepCopy},
		{name: "cut short before the copy's slot", checkpoint: at(phaseInitial), rows: 7, want: stepCopy},
		{name: "cut short while copying, rows to be left alone now", slot: aSlot, checkpoint: at(phaseInitial), snapshot: "skip", rows: 7, want: stepAdopt},
		{name: "cut short before the copy's slot, rows to be left alone now", checkpoint: at(phaseInitial), create: true, snapshot: "skip", rows: 7, want: stepCreate},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := situation{
				slotName: "tidegate", slot: tc.slot, checkpoint: tc.checkpoint, create: tc.create, snapshot: tc.snapshot,
				rows: func() (int64, string, error) { return tc.rows, "public.outbox: 7", nil },
			}.decide()
			var coded *exit.Error
			switch {
			case tc.code == 0 && (err != nil || got != tc.want):
				t.Fatalf("got step %d, error %v; want step %d", got, err, tc.want)
			case tc.code != 0 && (!errors.As(err, &coded) || coded.Code != tc.code || coded.Hint == "" || !strings.Contains(err.Error(), tc.says)):
				t.Fatalf("got step %d, error %#v; want exit %d that says %q and what to do", got, err, tc.code, tc.says)
			}
		})
	}
}

func TestCopyOfADatabaseIsNotTakenForOneWhoseSlotWasDropped(t *testing.T) {
	original := publish.Identity{SystemID: "7", DatabaseOID: 5, Database: "app", Slot: "tidegate"}
	for _, tc := range []struct {
		name string
		here publish.Identity
		code int
	}{
		{"the same", original, exit.SlotLost},
		{"the same, seen by a role that may not read the system", publish.Identity{DatabaseOID: 5, Database: "app", Slot: "tidegate"}, exit.SlotLost},
		{"another system", publish.Identity{SystemID: "8", DatabaseOID: 5, Database: "app", Slot: "tidegate"}, exit.Drift},
		{"another database", publish.Identity{SystemID: "7", DatabaseOID: 6, Database: "app", Slot: "tidegate"}, exit.Drift},
		{"another slot", publish.Identity{SystemID: "7", DatabaseOID: 5, Database: "app", Slot: "other"}, exit.Drift},
	} {
		for _, phase := range []string{"", phaseInitial, phaseCreating} {
			_, err := situation{
				slotName: "tidegate", create: true, snapshot: "publish", here: tc.here,
				checkpoint: &publish.Checkpoint{Source: "app", Identity: original, Phase: phase},
				rows:       func() (int64, string, error) { return 0, "", nil },
			}.decide()
			if got := exit.Code(err); got != tc.code && (phase == "" || tc.code == exit.Drift) {
				t.Errorf("%s, phase %q: exit %d with %v, want %d", tc.name, phase, got, err, tc.code)
			}
		}
	}
}

func TestCheckpointOfAnotherHistoryIsRefused(t *testing.T) {
	me := publish.Identity{SystemID: "7", DatabaseOID: 5, Database: "app", Slot: "tidegate"}
	history, err := slot.ParseHistory(3, "1\t0/2000\tno recovery target specified\n2\t0/4000\tno recovery target specified\n")
	if err != nil {
		t.Fatal(err)
	}
	pos := func(timeline uint32, commit decoder.LSN) event.Position {
		return event.Position{Timeline: timeline, Commit: commit}
	}
	for _, tc := range []struct {
		name        string
		identity    publish.Identity
		w           event.Position
		confirmable decoder.LSN
		code        int
		says        string
	}{
		{name: "same timeline", identity: me, w: pos(3, 0x5000), confirmable: 0x5100},
		{name: "no row yet", identity: me, confirmable: 0x5100},
		{name: "promoted behind the last event", identity: me, w: pos(2, 0x3fff), confirmable: 0x5100},
		{name: "promoted in front of the last event", identity: me, w: pos(2, 0x4000), confirmable: 0x5100, code: exit.Drift, says: "timeline 2 ended at 0/4000"},
		{name: "two promotions", identity: me, w: pos(1, 0x1fff), confirmable: 0x5100},
		{name: "two promotions, first in front", identity: me, w: pos(1, 0x2100), confirmable: 0x5100, code: exit.Drift, says: "timeline 1 ended at 0/2000"},
		{name: "older timeline than published", identity: me, w: pos(4, 0x3000), confirmable: 0x5100, code: exit.Drift, says: "timeline 3"},
		{name: "backup restored", identity: me, w: pos(3, 0x9000), confirmable: 0x9100, code: exit.Drift, says: "WAL ends at 0/8000"},
		{name: "NATS restored", identity: me, w: pos(3, 0x5000), confirmable: 0x50ff, code: exit.NATS, says: "NATS has lost"},
		{name: "clone of production", identity: publish.Identity{SystemID: "8", DatabaseOID: 5, Database: "app", Slot: "tidegate"}, w: pos(3, 0x5000), confirmable: 0x5100, code: exit.Drift, says: "system 7"},
		{name: "copied database", identity: publish.Identity{SystemID: "7", DatabaseOID: 6, Database: "app", Slot: "tidegate"}, w: pos(3, 0x5000), confirmable: 0x5100, code: exit.Drift, says: "(5)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cp := &publish.Checkpoint{Source: "app", Identity: me, W: tc.w, Confirmable: tc.confirmable}
			err := compare(cp, &divergence.Server{Identity: tc.identity, Timeline: 3, WALEnd: 0x8000, Confirmed: 0x5100, History: history})
			if err != nil {
				err = failure(err)
			}
			var coded *exit.Error
			switch {
			case tc.code == 0 && err != nil:
				t.Fatal(err)
			case tc.code != 0 && (!errors.As(err, &coded) || coded.Code != tc.code || coded.Hint == "" || !strings.Contains(err.Error(), tc.says)):
				t.Fatalf("got %v, want exit %d that says %q and what to do", err, tc.code, tc.says)
			}
		})
	}
}
