// Package decoder turns the bytes of the pgoutput plug-in into messages.
//
// Protocol: PostgreSQL documentation, "Logical Replication Message Formats", protocol version 1
// without streaming, as spoken by PostgreSQL 13 to 18.
package decoder

import (
	"fmt"
	"time"
)

// Kind is the byte that a pgoutput message begins with.
type Kind byte

// The messages of protocol version 1.
const (
	KindBegin    Kind = 'B'
	KindCommit   Kind = 'C'
	KindOrigin   Kind = 'O'
	KindRelation Kind = 'R'
	KindType     Kind = 'Y'
	KindInsert   Kind = 'I'
	KindUpdate   Kind = 'U'
	KindDelete   Kind = 'D'
	KindTruncate Kind = 'T'
	KindLogical  Kind = 'M'
)

// String gives the name that PostgreSQL's documentation uses, in lower case.
func (k Kind) String() string {
	switch k {
	case KindBegin:
		return "begin"
	case KindCommit:
		return "commit"
	case KindOrigin:
		return "origin"
	case KindRelation:
		return "relation"
	case KindType:
		return "type"
	case KindInsert:
		return "insert"
	case KindUpdate:
		return "update"
	case KindDelete:
		return "delete"
	case KindTruncate:
		return "truncate"
	case KindLogical:
		return "logical message"
	}
	return fmt.Sprintf("message of kind %q", byte(k))
}

// Message is one decoded message. Only the fields of its Kind are meaningful. It is made to be used again: every
// slice in it aliases the bytes given to Decode or memory of the Decoder, and is valid until the next Decode.
// Relations are the exception: they live as long as somebody holds them and are never changed.
type Message struct {
	Kind Kind

	Begin   Begin
	Commit  Commit
	Origin  Origin
	Type    Type
	Logical Logical

	// Relation is the table of Relation, Insert, Update and Delete.
	Relation *Relation
	// New is the new row of Insert and Update.
	New Tuple
	// OldKind says what Old holds for Update and Delete: OldNone, OldKey or OldFull.
	OldKind OldKind
	Old     Tuple
	// Truncated lists the tables of Truncate.
	Truncated       []*Relation
	TruncateCascade bool
	TruncateRestart bool
}

// Begin opens a transaction. FinalLSN is where its commit record begins: the commit's identity, known before its end.
type Begin struct {
	FinalLSN   LSN
	CommitTime time.Time
	XID        uint32
}

// Commit closes a transaction. EndLSN is the first byte behind its commit record: what may be confirmed.
type Commit struct {
	Flags      byte
	CommitLSN  LSN
	EndLSN     LSN
	CommitTime time.Time
}

// Origin names the node on which the transaction was first made.
type Origin struct {
	CommitLSN LSN
	Name      []byte
}

// Type describes a data type that is not built in. For a domain the name is that of the type beneath it; Namespace is
// empty for pg_catalog.
type Type struct {
	OID             uint32
	Namespace, Name []byte
}

// Logical is what pg_logical_emit_message wrote.
type Logical struct {
	Transactional bool
	LSN           LSN
	Prefix        []byte
	Content       []byte
}

// Relation describes a table as it was when the rows that follow were written. Namespace is empty for pg_catalog.
type Relation struct {
	OID             uint32
	Namespace, Name string
	ReplicaIdentity byte
	Columns         []Column
}

// Column is one published column of a Relation.
type Column struct {
	Name         string
	Key          bool
	TypeOID      uint32
	TypeModifier int32
	// BaseType is the name, in pg_catalog, of the type beneath the domain that the column has; otherwise empty.
	BaseType string
}

// OldKind says what is known of a row before its change.
type OldKind byte

// What Message.Old holds.
const (
	OldNone OldKind = 0
	OldKey  OldKind = 'K'
	OldFull OldKind = 'O'
)

// Tuple is a row, one value a column of its Relation, in order.
type Tuple []Value

// ValueKind is how a column's value was sent.
type ValueKind byte

// The ways in which a value is sent.
const (
	ValueNull      ValueKind = 'n'
	ValueUnchanged ValueKind = 'u' // TOASTed and not changed: the value was not sent
	ValueText      ValueKind = 't'
	ValueBinary    ValueKind = 'b'
)

// Value is one column of a Tuple. Data is nil unless Kind is ValueText or ValueBinary, and then never nil.
type Value struct {
	Kind ValueKind
	Data []byte
}
