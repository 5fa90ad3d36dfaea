package publish

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
)

// Checkpoint is what is known to be stored of one source. It is written before the slot is told, so that the slot
// never stands beyond it.
type Checkpoint struct {
	Source   string
	Identity Identity
	// W: every row up to it is stored or parked.
	W           event.Position
	CommittedAt time.Time // of W's transaction
	// Confirmable is the LSN that may be confirmed to the slot.
	Confirmable decoder.LSN
	// Floor is the LSN up to which rows that W counts were made durable in the database itself: where it is beyond
	// Confirmable, a server that does not reach it may lack them.
	Floor decoder.LSN
	// Streams gives each stream's mark: its rows beyond W lie after it.
	Streams map[string]Mark
	// Subjects gives what was published to each stream when this was written.
	Subjects map[string][]string
	// Phase is "initial" while rows older than the slot are published from their tables.
	Phase string
	// InitialFrom gives where each stream stood when that phase began.
	InitialFrom map[string]Mark
	// Witnesses gives for each stream what it was last seen to hold.
	Witnesses map[string]Witness
	// OtherHistory gives the sequences up to which streams may hold events that the database does not have: those that
	// were stored before AcceptedAt, when the checkpoint was rebased. Neither is there while that never happened.
	OtherHistory map[string]uint64
	AcceptedAt   time.Time
	WrittenAt    time.Time
}

// Behind reports whether cp is older than what was known before: a source only ever goes on.
func (cp *Checkpoint) Behind(known *Checkpoint) bool {
	if c := cp.AcceptedAt.Compare(known.AcceptedAt); c != 0 {
		return c < 0
	}
	return cp.Confirmable < known.Confirmable || cp.W.Compare(known.W) < 0
}

// Identity is the slot that a source's positions belong to. A copy of the database has another.
type Identity struct {
	SystemID    string `json:"system_id"`
	DatabaseOID uint32 `json:"database_oid"`
	Database    string `json:"database"`
	Slot        string `json:"slot"`
}

// String names the slot for an operator.
func (i Identity) String() string {
	return fmt.Sprintf("system %s, database %s (%d), slot %s", i.SystemID, i.Database, i.DatabaseOID, i.Slot)
}

// PhaseInitial is the Phase of a first start that publishes existing rows.
const PhaseInitial = "initial"

const checkpointVersion = 1

// checkpointEntry is a Checkpoint as it stands in NATS, to be read by people too.
type checkpointEntry struct {
	Version      int                 `json:"version"`
	Source       string              `json:"source"`
	Identity     Identity            `json:"identity"`
	W            string              `json:"w,omitempty"`
	CommittedAt  *time.Time          `json:"committed_at,omitempty"`
	Confirmable  string              `json:"confirmable"`
	Floor        string              `json:"floor,omitempty"`
	Streams      map[string]Mark     `json:"streams"`
	Subjects     map[string][]string `json:"subjects,omitempty"`
	Phase        string              `json:"phase,omitempty"`
	InitialFrom  map[string]Mark     `json:"initial_from,omitempty"`
	Witnesses    map[string]Witness  `json:"witnesses,omitempty"`
	OtherHistory map[string]uint64   `json:"other_history,omitempty"`
	AcceptedAt   time.Time           `json:"accepted_at,omitzero"`
	WrittenAt    time.Time           `json:"written_at"`
	Writer       string              `json:"writer"` // one process
}

func (cp *Checkpoint) encode(writer string) ([]byte, error) {
	e := checkpointEntry{
		Version:     checkpointVersion,
		Source:      cp.Source,
		Identity:    cp.Identity,
		Confirmable: cp.Confirmable.String(),
		Streams:     cp.Streams,
		Subjects:    cp.Subjects,
		Phase:       cp.Phase,
		InitialFrom: cp.InitialFrom,
		Witnesses:   cp.Witnesses, OtherHistory: cp.OtherHistory, AcceptedAt: cp.AcceptedAt,
		WrittenAt: cp.WrittenAt,
		Writer:    writer,
	}
	if !cp.W.IsZero() {
		e.W = cp.W.String()
	}
	if cp.Floor > 0 {
		e.Floor = cp.Floor.String()
	}
	if !cp.CommittedAt.IsZero() {
		e.CommittedAt = &cp.CommittedAt
	}
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode checkpoint of source %q: %w", cp.Source, err)
	}
	return data, nil
}

func decodeCheckpoint(data []byte) (cp *Checkpoint, writer string, err error) {
	var e checkpointEntry
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, "", fmt.Errorf("decode checkpoint: %w", err)
	}
	if e.Version != checkpointVersion {
		return nil, "", fmt.Errorf("decode checkpoint of source %q: version %d is not %d",
			e.Source, e.Version, checkpointVersion)
	}
	cp = &Checkpoint{
		Source: e.Source, Identity: e.Identity, Streams: e.Streams, Subjects: e.Subjects,
		Phase: e.Phase, InitialFrom: e.InitialFrom, Witnesses: e.Witnesses, OtherHistory: e.OtherHistory,
		AcceptedAt: e.AcceptedAt, WrittenAt: e.WrittenAt,
	}
	if e.CommittedAt != nil {
		cp.CommittedAt = *e.CommittedAt
	}
	if cp.Confirmable, err = decoder.ParseLSN(e.Confirmable); err != nil {
		return nil, "", fmt.Errorf("decode checkpoint of source %q: %w", e.Source, err)
	}
	if e.Floor != "" {
		if cp.Floor, err = decoder.ParseLSN(e.Floor); err != nil {
			return nil, "", fmt.Errorf("decode checkpoint of source %q: %w", e.Source, err)
		}
	}
	if e.W == "" {
		return cp, e.Writer, nil
	}
	if cp.W, err = event.ParsePosition(e.W); err != nil {
		return nil, "", fmt.Errorf("decode checkpoint of source %q: %w", e.Source, err)
	}
	return cp, e.Writer, nil
}
