package event

import (
	"encoding/binary"
	"strings"
)

// AggregateKey appends a key to dst that two rows share exactly when they are of one aggregate of one table: what must
// be published in order.
func AggregateKey(dst []byte, table string, aggType, aggID []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(table)))
	dst = append(dst, table...)
	dst = binary.AppendUvarint(dst, uint64(len(aggType)))
	dst = append(dst, aggType...)
	return append(dst, aggID...)
}

// AppendMsgID appends "<source>/<schema.table>/<outbox id>" to dst, the Nats-Msg-Id of a row. Source and table are
// percent-encoded like a header value and at '/' too, so that the parts can be told apart; the id like a header value.
func AppendMsgID(dst []byte, source, table string, id []byte) []byte {
	dst = appendEscaped(dst, source, true)
	dst = append(dst, '/')
	dst = appendEscaped(dst, table, true)
	dst = append(dst, '/')
	return appendEscaped(dst, id, false)
}

// SplitMsgID gives the parts that AppendMsgID was given; ok is false when s is not of that form.
func SplitMsgID(s string) (source, table, id string, ok bool) {
	source, rest, ok1 := strings.Cut(s, "/")
	table, id, ok2 := strings.Cut(rest, "/")
	if !ok1 || !ok2 {
		return "", "", "", false
	}
	source, ok1 = DecodeHeaderValue(source)
	table, ok2 = DecodeHeaderValue(table)
	id, ok = DecodeHeaderValue(id)
	if !ok || !ok1 || !ok2 {
		return "", "", "", false
	}
	return source, table, id, true
}
