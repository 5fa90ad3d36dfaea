package event

// SchemaError says that a table cannot serve as the outbox that the configuration describes. It is found in the
// table's description, before any of its rows.
type SchemaError struct {
	Table  string
	Column string // "" when it is not about one column
	Reason string
}

func (e *SchemaError) Error() string {
	if e.Column == "" {
		return "bind table " + e.Table + ": " + e.Reason
	}
	return "bind table " + e.Table + ": column " + e.Column + ": " + e.Reason
}

// PoisonError says that one row can never be published as it is, while the rows around it can.
type PoisonError struct {
	Table  string
	Column string // "" when it is not about one column
	ID     string // the outbox id, "" when that is what is wrong
	Reason string
}

func (e *PoisonError) Error() string {
	s := "publish row "
	if e.ID != "" {
		s += e.ID + " "
	}
	s += "of " + e.Table + ": "
	if e.Column != "" {
		s += "column " + e.Column + ": "
	}
	return s + e.Reason
}
