package decoder

func (d *Decoder) insert(c *cursor, m *Message) {
	m.Relation = d.known(c)
	if c.uint8("short tuple kind") != 'N' {
		c.fail("no new tuple")
	}
	m.New = tuple(c, m.Relation, &d.newTuple)
}

// update reads a change: the old key or the old row come first when the replica identity provides them.
func (d *Decoder) update(c *cursor, m *Message) {
	m.Relation = d.known(c)
	m.OldKind, m.Old = OldNone, nil
	part := c.uint8("short tuple kind")
	if k := OldKind(part); k == OldKey || k == OldFull {
		m.OldKind = k
		m.Old = tuple(c, m.Relation, &d.oldTuple)
		part = c.uint8("short tuple kind")
	}
	if part != 'N' {
		c.fail("no new tuple")
	}
	m.New = tuple(c, m.Relation, &d.newTuple)
}

func (d *Decoder) delete(c *cursor, m *Message) {
	m.Relation = d.known(c)
	m.OldKind = OldKind(c.uint8("short tuple kind"))
	if m.OldKind != OldKey && m.OldKind != OldFull {
		c.fail("no old tuple")
	}
	m.Old = tuple(c, m.Relation, &d.oldTuple)
}

func (d *Decoder) truncate(c *cursor, m *Message) {
	const (
		oidSize = 4
		cascade = 1
		restart = 2
	)
	n := c.uint32("short relation count")
	options := c.uint8("short options")
	m.TruncateCascade = options&cascade != 0
	m.TruncateRestart = options&restart != 0
	if uint64(n)*oidSize > uint64(c.left()) {
		c.fail("more relations than bytes")
		return
	}
	d.truncated = d.truncated[:0]
	for range n {
		d.truncated = append(d.truncated, d.known(c))
	}
	m.Truncated = d.truncated
}

// known reads a relation's OID and gives what the session has said about it.
func (d *Decoder) known(c *cursor) *Relation {
	oid := c.uint32("short relation OID")
	if d.last != nil && d.last.OID == oid {
		return d.last
	}
	described, ok := d.relations[oid]
	if !ok {
		c.fail("relation not described before")
		return nil
	}
	d.last = described.relation
	return d.last
}

// tuple reads a row of r into buf's memory.
func tuple(c *cursor, r *Relation, buf *Tuple) Tuple {
	n := int(c.uint16("short column count"))
	switch {
	case c.fault != "":
		return nil
	case n != len(r.Columns):
		c.fail("another number of columns than the relation")
		return nil
	case n > c.left():
		c.fail("more columns than bytes")
		return nil
	}
	if cap(*buf) < n {
		*buf = make(Tuple, n)
	}
	row := (*buf)[:n]
	for i := range row {
		row[i] = value(c)
	}
	return row
}

func value(c *cursor) Value {
	switch kind := ValueKind(c.uint8("short value kind")); kind {
	case ValueText, ValueBinary:
		return Value{Kind: kind, Data: c.bytes(c.uint32("short value length"), "short value")}
	case ValueNull, ValueUnchanged:
		return Value{Kind: kind}
	}
	c.fail("unknown value kind")
	return Value{}
}
