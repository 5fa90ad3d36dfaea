package event

import (
	"encoding/hex"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// Row gives back the columns and values that ev was filled from, as far as they are mapped, as copies: filled into an
// Event again they make the same one. It is for a row that has to wait longer than its memory may.
func (ev *Event) Row() ([]Column, decoder.Tuple) {
	var (
		columns []Column
		values  decoder.Tuple
	)
	for p, i := range ev.from.at {
		if i < 0 || index(columns, ev.from.name[p]) >= 0 { // one column may serve as two parts
			continue
		}
		oid, text := ev.part(part(p))
		value := decoder.Value{Kind: decoder.ValueNull}
		if text != nil {
			value = decoder.Value{Kind: decoder.ValueText, Data: append([]byte{}, text...)}
		}
		columns = append(columns, Column{Name: ev.from.name[p], TypeOID: oid})
		values = append(values, value)
	}
	return columns, values
}

// part gives a type of which the part may be, and the part as text; nil is NULL.
func (ev *Event) part(p part) (oid uint32, text []byte) {
	switch p {
	case partID:
		return oidText, ev.ID
	case partAggregateType:
		return oidText, ev.AggregateType
	case partAggregateID:
		return oidText, ev.AggregateID
	case partEventType:
		return oidText, ev.EventType
	case partVersion:
		return oidText, ev.Version
	case partPayload:
		return ev.from.payload, ev.payloadText()
	case partCreatedAt:
		return oidTimestamptz, timestampText(ev.CreatedAt)
	case partHeaders:
		return oidText, ev.Headers
	case partTraceparent:
		return oidText, ev.Traceparent
	case partRoutingKey:
		return oidText, ev.RoutingKey
	case partSchemaVersion:
		return oidText, ev.SchemaVersion
	}
	return 0, nil
}

func (ev *Event) payloadText() []byte {
	if ev.from.payload != oidBytea || ev.PayloadNull {
		return ev.Payload
	}
	return hex.AppendEncode([]byte(hexPrefix), ev.Payload)
}

// timestampText writes what parseTimestamp reads.
func timestampText(at time.Time) []byte {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	era := ""
	if at.Year() <= 0 {
		at, era = time.Date(1-at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC), " BC"
	}
	return []byte(at.Format("2006-01-02 15:04:05.999999+00") + era)
}
