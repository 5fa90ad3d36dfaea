package decoder_test

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// differs says where pglogrepl's parser, which shares no code with ours, reads data otherwise than the message m that
// Decode made of it; nil where they agree. Only well-formed data may be given to it.
func differs(data []byte, m *decoder.Message) error {
	if tooShortForPglogrepl(m) {
		return nil
	}
	parsed, err := pglogrepl.Parse(data)
	if err != nil {
		return fmt.Errorf("pglogrepl refuses it: %w", err)
	}
	switch p := parsed.(type) {
	case *pglogrepl.BeginMessage:
		b := m.Begin
		return same(m, decoder.KindBegin, uint64(b.FinalLSN) == uint64(p.FinalLSN), b.XID == p.Xid, sameTime(b.CommitTime, p.CommitTime))
	case *pglogrepl.CommitMessage:
		c := m.Commit
		return same(m, decoder.KindCommit, c.Flags == p.Flags, uint64(c.CommitLSN) == uint64(p.CommitLSN),
			uint64(c.EndLSN) == uint64(p.TransactionEndLSN), sameTime(c.CommitTime, p.CommitTime))
	case *pglogrepl.OriginMessage:
		return same(m, decoder.KindOrigin, uint64(m.Origin.CommitLSN) == uint64(p.CommitLSN), string(m.Origin.Name) == p.Name)
	case *pglogrepl.TypeMessage:
		t := m.Type
		return same(m, decoder.KindType, t.OID == p.DataType, string(t.Namespace) == p.Namespace, string(t.Name) == p.Name)
	case *pglogrepl.RelationMessage:
		return same(m, decoder.KindRelation, sameRelation(m.Relation, p))
	case *pglogrepl.InsertMessage:
		return same(m, decoder.KindInsert, m.Relation.OID == p.RelationID, sameTuple(m.New, p.Tuple))
	case *pglogrepl.UpdateMessage:
		return same(m, decoder.KindUpdate, m.Relation.OID == p.RelationID, byte(m.OldKind) == p.OldTupleType,
			sameTuple(m.Old, p.OldTuple), sameTuple(m.New, p.NewTuple))
	case *pglogrepl.DeleteMessage:
		return same(m, decoder.KindDelete, m.Relation.OID == p.RelationID, byte(m.OldKind) == p.OldTupleType, sameTuple(m.Old, p.OldTuple))
	case *pglogrepl.TruncateMessage:
		return same(m, decoder.KindTruncate, sameOIDs(m.Truncated, p.RelationIDs),
			m.TruncateCascade == (p.Option&1 != 0), m.TruncateRestart == (p.Option&2 != 0))
	case *pglogrepl.LogicalDecodingMessage:
		l := m.Logical
		return same(m, decoder.KindLogical, l.Transactional == (data[1]&1 != 0), uint64(l.LSN) == uint64(p.LSN),
			string(l.Prefix) == p.Prefix, bytes.Equal(l.Content, p.Content))
	}
	return fmt.Errorf("pglogrepl gives %T", parsed)
}

// tooShortForPglogrepl reports the valid messages that pglogrepl refuses: a row without columns, a truncate of nothing.
func tooShortForPglogrepl(m *decoder.Message) bool {
	switch m.Kind {
	case decoder.KindInsert:
		return len(m.New) == 0
	case decoder.KindTruncate:
		return len(m.Truncated) == 0
	}
	return false
}

var errDiffers = errors.New("differs from pglogrepl")

func same(m *decoder.Message, kind decoder.Kind, facts ...bool) error {
	if m.Kind != kind {
		return fmt.Errorf("kind %v, want %v: %w", m.Kind, kind, errDiffers)
	}
	for i, fact := range facts {
		if !fact {
			return fmt.Errorf("%v, fact %d: %w", kind, i, errDiffers)
		}
	}
	return nil
}

// sameTime compares times of this age; pglogrepl counts nanoseconds, which end in 1708 and 2262.
func sameTime(ours, theirs time.Time) bool {
	return ours.Year() < 1709 || ours.Year() > 2261 || ours.Equal(theirs)
}

func sameRelation(r *decoder.Relation, p *pglogrepl.RelationMessage) bool {
	if r.OID != p.RelationID || r.Namespace != p.Namespace || r.Name != p.RelationName ||
		r.ReplicaIdentity != p.ReplicaIdentity || len(r.Columns) != len(p.Columns) {
		return false
	}
	for i, c := range r.Columns {
		q := p.Columns[i]
		if c.Name != q.Name || c.Key != (q.Flags&1 != 0) || c.TypeOID != q.DataType || c.TypeModifier != q.TypeModifier {
			return false
		}
	}
	return true
}

func sameTuple(row decoder.Tuple, p *pglogrepl.TupleData) bool {
	if p == nil {
		return row == nil
	}
	if len(row) != len(p.Columns) {
		return false
	}
	for i, v := range row {
		q := p.Columns[i]
		if byte(v.Kind) != q.DataType || !bytes.Equal(v.Data, q.Data) || (v.Data == nil) != (q.Data == nil) {
			return false
		}
	}
	return true
}

func sameOIDs(rels []*decoder.Relation, oids []uint32) bool {
	if len(rels) != len(oids) {
		return false
	}
	for i, r := range rels {
		if r.OID != oids[i] {
			return false
		}
	}
	return true
}
