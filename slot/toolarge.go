package slot

import (
	"encoding/binary"
	"fmt"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// TooLargeError is a row above Config.MaxRow. It was not handed to Handle; the stream goes on behind it.
type TooLargeError struct {
	Relation *decoder.Relation // nil when its description never came
	LSN      decoder.LSN       // of the row
	Commit   decoder.LSN       // where its transaction's commit record begins
	XID      uint32
	Size     int           // bytes of the whole message
	Max      int           // Config.MaxRow
	Prefix   decoder.Tuple // the leading columns that lie wholly within the first 64 KiB, copied
}

func (e *TooLargeError) Error() string {
	table, id := "of an unknown table", ""
	if e.Relation != nil {
		table = "of " + e.Relation.Namespace + "." + e.Relation.Name
	}
	if v, ok := e.Column("id"); ok {
		id = fmt.Sprintf(" with id %.128q", v)
	}
	return fmt.Sprintf("read row %s%s at %s: %d bytes are more than max_row, %d", table, id, e.LSN, e.Size, e.Max)
}

// Hint names the setting.
func (e *TooLargeError) Hint() string {
	return fmt.Sprintf("raise publish.max_row above %d, or store the payload elsewhere; nothing behind the row is confirmed", e.Size)
}

// Column gives the text of a column, if it is within the prefix and not NULL.
func (e *TooLargeError) Column(name string) ([]byte, bool) {
	if e.Relation == nil {
		return nil, false
	}
	for i, col := range e.Relation.Columns {
		if i < len(e.Prefix) && col.Name == name && e.Prefix[i].Data != nil {
			return e.Prefix[i].Data, true
		}
	}
	return nil, false
}

// insertHeader is what precedes the columns of an Insert: 'I', the relation's OID, 'N', the number of columns.
const insertHeader = 1 + 4 + 1 + 2

// insertPrefix reads the relation and the whole columns of an Insert whose end is not there.
func insertPrefix(data []byte) (oid uint32, row decoder.Tuple) {
	if len(data) < insertHeader {
		return 0, nil
	}
	oid = binary.BigEndian.Uint32(data[1:])
	columns := int(binary.BigEndian.Uint16(data[6:]))
	data = data[insertHeader:]
	for range columns {
		v, size, ok := leadingValue(data)
		if !ok {
			break
		}
		row = append(row, v)
		data = data[size:]
	}
	return oid, row
}

// leadingValue copies the column value that data begins with, ok false when its end is not there.
func leadingValue(data []byte) (v decoder.Value, size int, ok bool) {
	if len(data) < 1 {
		return v, 0, false
	}
	v.Kind = decoder.ValueKind(data[0])
	if v.Kind == decoder.ValueNull || v.Kind == decoder.ValueUnchanged {
		return v, 1, true
	}
	if len(data) < 5 {
		return v, 0, false
	}
	n := uint64(binary.BigEndian.Uint32(data[1:]))
	if n > uint64(len(data)-5) {
		return v, 0, false
	}
	v.Data = append([]byte{}, data[5:5+n]...)
	return v, int(5 + n), true
}
