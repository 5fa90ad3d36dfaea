package decoder

import (
	"errors"
	"fmt"
	"time"
)

// ErrMalformed is wrapped by every error of Decode: the bytes are not a message of the protocol, or they name a table
// that no Relation message has described. The stream cannot be read on from there.
var ErrMalformed = errors.New("malformed pgoutput message")

// Decoder reads the messages of one replication session, in the order in which they were sent: rows refer to Relation
// messages before them, so a new session needs a new Decoder. Not safe for concurrent use.
type Decoder struct {
	relations map[uint32]description
	bases     map[uint32]string // by the OID of a domain, the built-in type beneath it
	last      *Relation         // most rows are of the same table as the row before

	newTuple, oldTuple Tuple
	truncated          []*Relation
}

// New gives a Decoder that knows no relation yet.
func New() *Decoder {
	return &Decoder{relations: make(map[uint32]description), bases: make(map[uint32]string)}
}

// Decode reads data, which is exactly one message, into m. A row costs no allocation; what m then holds is described
// at Message. A Relation message that repeats the last one of its table gives the same *Relation again, so that a
// pointer is enough to know that a table has not changed.
//
// Decode never panics, and allocates by a length on the wire only when that many bytes are there. After an error,
// which wraps ErrMalformed, m means nothing and the relations are as they were before.
func (d *Decoder) Decode(data []byte, m *Message) error {
	c := cursor{data: data}
	m.Kind = Kind(c.uint8("empty message"))
	switch m.Kind {
	case KindInsert:
		d.insert(&c, m)
	case KindBegin:
		begin(&c, &m.Begin)
	case KindCommit:
		commit(&c, &m.Commit)
	case KindRelation:
		d.relation(&c, m)
	case KindUpdate:
		d.update(&c, m)
	case KindDelete:
		d.delete(&c, m)
	case KindTruncate:
		d.truncate(&c, m)
	case KindType:
		d.typ(&c, &m.Type)
	case KindOrigin:
		origin(&c, &m.Origin)
	case KindLogical:
		logical(&c, &m.Logical)
	default:
		c.fail("not a message of protocol version 1")
	}
	c.end()
	if c.fault != "" {
		return fmt.Errorf("decode %v: %s at byte %d of %d: %w", m.Kind, c.fault, c.off, len(data), ErrMalformed)
	}
	return nil
}

func begin(c *cursor, b *Begin) {
	b.FinalLSN = LSN(c.uint64("short final LSN"))
	b.CommitTime = timestamp(c, "short commit time")
	b.XID = c.uint32("short transaction id")
}

func commit(c *cursor, m *Commit) {
	m.Flags = c.uint8("short flags")
	m.CommitLSN = LSN(c.uint64("short commit LSN"))
	m.EndLSN = LSN(c.uint64("short end LSN"))
	m.CommitTime = timestamp(c, "short commit time")
}

func origin(c *cursor, o *Origin) {
	o.CommitLSN = LSN(c.uint64("short commit LSN"))
	o.Name = c.cstring("short name")
}

func logical(c *cursor, l *Logical) {
	const transactional = 1
	l.Transactional = c.uint8("short flags")&transactional != 0
	l.LSN = LSN(c.uint64("short LSN"))
	l.Prefix = c.cstring("short prefix")
	l.Content = c.bytes(c.uint32("short content length"), "short content")
}

// timestamp reads microseconds since the beginning of 2000, UTC, without loss over the whole range of the wire.
func timestamp(c *cursor, short string) time.Time {
	const epoch = 946_684_800 // 2000-01-01 in seconds since 1970
	us := int64(c.uint64(short))
	return time.Unix(epoch+us/1e6, us%1e6*1e3).UTC()
}
