package event

import "github.com/tidegate-cdc/tidegate/decoder"

// Columns names the table's column for each part of an Event; "" where there is none.
type Columns struct {
	ID          string
	EventType   string
	CreatedAt   string
	Traceparent string

	// Of kind event.
	AggregateType string
	AggregateID   string
	Payload       string
	Version       string
	Headers       string

	// Of kind feature.
	FeatureID      string
	FeatureVersion string
	RoutingKey     string
	SchemaVersion  string
}

// DefaultColumns are the names that the project's own migrations give.
func DefaultColumns(k Kind) Columns {
	if k == KindFeature {
		return Columns{
			ID:             "id",
			FeatureID:      "feature_id",
			FeatureVersion: "feature_version",
			EventType:      "event_type",
			RoutingKey:     "routing_key",
			SchemaVersion:  "schema_version",
			CreatedAt:      "created_at",
		}
	}
	return Columns{
		ID:            "id",
		AggregateType: "aggregate_type",
		AggregateID:   "aggregate_id",
		EventType:     "event_type",
		Payload:       "payload",
		CreatedAt:     "created_at",
	}
}

// debeziumColumns are the names that Debezium's outbox event router expects.
func debeziumColumns() Columns {
	return Columns{
		ID:            "id",
		AggregateType: "aggregatetype",
		AggregateID:   "aggregateid",
		EventType:     "type",
		Payload:       "payload",
	}
}

// Table is an outbox as configured. It is not changed while it is in use.
type Table struct {
	Name string // "schema.table"
	Kind Kind
	// Columns left zero means: the default names or, where a table of kind event has those and not the default ones,
	// the names of Debezium's outbox.
	Columns Columns
	// Collection is the aggregate type of every row of kind feature.
	Collection string
}

// Column is a column of a table that is read by SQL, its values as text. TypeOID is its type or, when that is a domain,
// the type beneath it.
type Column struct {
	Name    string
	TypeOID uint32
}

// Bind finds the table's columns in a relation of the stream. An error is a *SchemaError.
func (t *Table) Bind(rel *decoder.Relation) (*Binding, error) {
	cols := make([]Column, len(rel.Columns))
	for i, c := range rel.Columns {
		cols[i] = Column{Name: c.Name, TypeOID: typeOf(c)}
	}
	return t.BindColumns(cols)
}

// BindColumns finds the table's columns in the result of a query. An error is a *SchemaError.
func (t *Table) BindColumns(cols []Column) (*Binding, error) {
	b := &Binding{table: t, width: len(cols), columns: cols, collection: []byte(t.Collection)}
	for p := range b.at {
		b.at[p] = -1
	}
	for _, w := range wanted(t.Kind, t.effective(cols)) {
		i, err := w.find(t.Name, cols)
		if err != nil {
			return nil, err
		}
		b.at[w.part] = i
		b.name[w.part] = w.column
		b.notNull[w.part] = w.must == notNull
		if w.part == partPayload {
			b.payload = cols[i].TypeOID
		}
	}
	return b, nil
}

// effective gives the names to look for in a table that has cols.
func (t *Table) effective(cols []Column) Columns {
	if t.Columns != (Columns{}) {
		return t.Columns
	}
	ours, theirs := DefaultColumns(t.Kind), debeziumColumns()
	if t.Kind == KindEvent && !ours.aggregateIn(cols) && theirs.aggregateIn(cols) {
		return theirs
	}
	return ours
}

// aggregateIn reports whether the columns that differ between the two conventions are all there.
func (c Columns) aggregateIn(cols []Column) bool {
	return index(cols, c.AggregateType) >= 0 && index(cols, c.AggregateID) >= 0 && index(cols, c.EventType) >= 0
}

func index(cols []Column, name string) int {
	for i := range cols {
		if cols[i].Name == name {
			return i
		}
	}
	return -1
}
