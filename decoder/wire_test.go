package decoder_test

import "encoding/binary"

// wire writes messages as the server does.
type wire []byte

func (w wire) u8(b byte) wire      { return append(w, b) }
func (w wire) u16(n int) wire      { return binary.BigEndian.AppendUint16(w, uint16(n)) }
func (w wire) u32(n uint32) wire   { return binary.BigEndian.AppendUint32(w, n) }
func (w wire) u64(n uint64) wire   { return binary.BigEndian.AppendUint64(w, n) }
func (w wire) str(s string) wire   { return append(append(w, s...), 0) }
func (w wire) null() wire          { return w.u8('n') }
func (w wire) unchanged() wire     { return w.u8('u') }
func (w wire) text(s string) wire  { return append(w.u8('t').u32(uint32(len(s))), s...) }
func (w wire) bytes(s string) wire { return append(w.u8('b').u32(uint32(len(s))), s...) }

// column writes one column of a relation.
func (w wire) column(flags byte, name string, oid uint32, modifier int32) wire {
	return w.u8(flags).str(name).u32(oid).u32(uint32(modifier))
}

const relationOID = 16401

// twoColumns is the relation that most tests use: public.outbox (id bigint key, payload text).
func twoColumns() wire {
	return wire("R").u32(relationOID).str("public").str("outbox").u8('d').u16(2).
		column(1, "id", 20, -1).column(0, "payload", 25, -1)
}

func insertOf(id, payload string) wire {
	return wire("I").u32(relationOID).u8('N').u16(2).text(id).text(payload)
}
