package relay

import (
	"fmt"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/divergence"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// The phases of a first start, as the checkpoint records them, so that a start that was cut short is taken up again.
const (
	phaseCreating = "creating" // the slot is about to be made, and no older row is wanted
	phaseInitial  = "initial"  // rows older than the slot are being published from its snapshot
)

// step is what a start has to do before rows can flow.
type step int

const (
	stepResume step = iota // slot and checkpoint are there
	stepAdopt              // the slot was made by somebody else, or by a start that was cut short: begin there
	stepCreate             // make the slot, begin there
	stepCopy               // make the slot, publish from its snapshot what is older, then begin there
)

// situation is what a start finds.
type situation struct {
	slotName   string
	slot       *slot.State
	checkpoint *publish.Checkpoint
	// here is where the slot is, or would be; its system is empty when the role may not read that.
	here     publish.Identity
	create   bool   // slot.create
	snapshot string // slot.snapshot
	// rows counts the outboxes' rows; it is asked only when no checkpoint says what became of them.
	rows func() (total int64, perTable string, err error)
}

// decide says how to start. Nothing that was there before is ever made again silently: a checkpoint whose slot is gone
// is a gap in the events, and rows older than a first slot are the operator's to decide about.
func (s situation) decide() (step, error) {
	cp := s.checkpoint
	switch {
	case cp != nil && s.isCopy():
		return 0, ofAnother(cp, s.here)
	case cp != nil && cp.Phase == phaseInitial && s.snapshot != "skip":
		return stepCopy, nil
	case cp != nil && cp.Phase != "" && s.slot != nil:
		return stepAdopt, nil
	case cp != nil && cp.Phase == "" && s.slot == nil:
		return 0, s.dropped()
	case cp != nil && cp.Phase == "":
		return stepResume, nil
	case s.slot == nil && !s.create:
		return 0, &exit.Error{Code: exit.SlotLost, Err: &slot.MissingSlotError{Slot: s.slotName}, Hint: fmt.Sprintf(
			"slot.create is false: make the publication first, then SELECT pg_create_logical_replication_slot('%s', '%s')", s.slotName, slot.Plugin)}
	}
	return s.first()
}

// isCopy reports whether the checkpoint is of another database. It is asked before a missing slot is taken for a dropped
// one: the advice that follows from that would make a copy publish as its original.
func (s situation) isCopy() bool {
	known, here := s.checkpoint.Identity, s.here
	if here.SystemID == "" {
		here.SystemID = known.SystemID
	}
	return known.DatabaseOID != 0 && here.DatabaseOID != 0 && known != here
}

// first decides about rows that are older than the slot. That there is none now proves nothing about a slot that is still
// to be made: making it waits for the open transactions, and what they commit is older too. So its snapshot is read,
// unless such rows are to be left alone.
func (s situation) first() (step, error) {
	begin := stepCreate
	if s.slot != nil {
		begin = stepAdopt
	}
	if s.snapshot == "skip" {
		return begin, nil
	}
	total, perTable, err := s.rows()
	switch {
	case err != nil:
		return 0, err
	case total == 0 && s.slot != nil:
		return stepAdopt, nil
	case total == 0:
		return stepCopy, nil
	case s.snapshot == "":
		return 0, &exit.Error{
			Code: exit.Usage,
			Err:  fmt.Errorf("start source for the first time: the outboxes already have rows (%s)", perTable),
			Hint: "set slot.snapshot to publish (they are published first, marked Tidegate-Late: initial) or to skip (they are left alone)",
		}
	case s.slot != nil:
		return 0, &exit.Error{
			Code: exit.Usage,
			Err:  fmt.Errorf("publish the rows that are older than slot %s (%s): its snapshot was gone when the command that made it ended", s.slotName, perTable),
			Hint: fmt.Sprintf("let the bridge make the slot: SELECT pg_drop_replication_slot('%s') and start again; or set slot.snapshot: skip", s.slotName),
		}
	}
	return stepCopy, nil
}

// dropped names the gap that a dropped slot leaves.
func (s situation) dropped() error {
	cp := s.checkpoint
	return &exit.Error{
		Code: exit.SlotLost,
		Err: fmt.Errorf("resume slot %s: it does not exist any more, but the checkpoint names it: events committed after %s (%s) and before now may be missing",
			s.slotName, cp.Confirmable, cp.CommittedAt.UTC().Format(time.RFC3339)),
		Hint: "find out who dropped it. Nothing is made again silently; the rows of that time are in the outbox table. " + makeSlotAgain(s.slotName) +
			". To publish the whole table again: docs/operations.md, \"The slot was dropped\"",
	}
}

// makeSlotAgain is the way on for a source that has lost its slot.
func makeSlotAgain(name string) string {
	return fmt.Sprintf("To go on from now: SELECT pg_create_logical_replication_slot('%s', '%s'), then tidegate accept", name, slot.Plugin)
}

// compare checks that the checkpoint and the server belong to one history. It is asked on every connect, as a standby
// may have been promoted, or a backup restored, under a living process.
func compare(cp *publish.Checkpoint, s *divergence.Server) error {
	if cp.Identity != s.Identity {
		return ofAnother(cp, s.Identity)
	}
	if parted := s.Parted(cp); parted != nil {
		return parted
	}
	if cp.Confirmable < s.Confirmed {
		return &exit.Error{
			Code: exit.NATS,
			Err: fmt.Errorf("compare checkpoint of source %q: it ends at %s (%s), but the slot was confirmed up to %s: NATS has lost what it acknowledged between the two",
				cp.Source, cp.Confirmable, cp.CommittedAt.UTC().Format(time.RFC3339), s.Confirmed),
			Hint: "was NATS restored from a backup, or the slot moved? " + acceptHint,
		}
	}
	return nil
}

// acceptHint is the way on where nothing better can be had again.
const acceptHint = "tidegate accept shows what is given up, and with --yes lets the bridge go on from the slot; the rows are still in the outbox table"

// ofAnother is the error of a checkpoint that belongs to another database or slot.
func ofAnother(cp *publish.Checkpoint, here publish.Identity) error {
	return &exit.Error{
		Code: exit.Drift,
		Err: fmt.Errorf("compare checkpoint of source %q: it belongs to %s, this is %s",
			cp.Source, cp.Identity, here),
		Hint: "two databases into one NATS need two names: set source.name; a copy of production must not publish as production. " +
			"Only where this is the same database after an upgrade: tidegate accept",
	}
}
