package event

// want is a part of an Event, the configuration key that names its column, and what that column must be.
type want struct {
	part    part
	key     string
	column  string
	must    need
	refuses func(oid uint32) string // why a column of that type cannot be used, or ""
}

// need says how much a part is needed.
type need uint8

const (
	optional need = iota
	mapped        // a column must be there; its value may be NULL
	notNull       // the same, and NULL makes the row poison
)

// wanted lists the parts that an outbox of kind k has.
func wanted(k Kind, c Columns) []want {
	ws := []want{
		{partID, "id", c.ID, notNull, notText},
		{partEventType, "event_type", c.EventType, notNull, notText},
		{partCreatedAt, "created_at", c.CreatedAt, optional, notTimestamp},
		{partTraceparent, "traceparent", c.Traceparent, optional, notText},
		{partHeaders, "headers", c.Headers, optional, notJSONText},
	}
	if k == KindFeature {
		return append(ws,
			want{partAggregateID, "feature_id", c.FeatureID, notNull, notText},
			want{partVersion, "feature_version", c.FeatureVersion, notNull, notText},
			want{partRoutingKey, "routing_key", c.RoutingKey, optional, notText},
			want{partSchemaVersion, "schema_version", c.SchemaVersion, optional, notText},
		)
	}
	return append(ws,
		want{partAggregateType, "aggregate_type", c.AggregateType, notNull, notText},
		want{partAggregateID, "aggregate_id", c.AggregateID, notNull, notText},
		want{partVersion, "version", c.Version, optional, notText},
		want{partPayload, "payload", c.Payload, mapped, nil},
	)
}

// find gives the index of the wanted column in cols, -1 when none is wanted.
func (w want) find(table string, cols []Column) (int, error) {
	if w.column == "" {
		if w.must == optional {
			return -1, nil
		}
		return -1, &SchemaError{Table: table, Reason: "no column for " + w.key + ": name one as columns." + w.key}
	}
	i := index(cols, w.column)
	if i < 0 {
		return -1, &SchemaError{
			Table: table, Column: w.column,
			Reason: "missing: add it, or name another as columns." + w.key,
		}
	}
	if w.refuses != nil {
		if why := w.refuses(cols[i].TypeOID); why != "" {
			return -1, &SchemaError{Table: table, Column: w.column, Reason: why + " as " + w.key}
		}
	}
	return i, nil
}
