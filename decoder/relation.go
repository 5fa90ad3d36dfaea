package decoder

import "bytes"

// description is a Relation and the message it was read from.
type description struct {
	wire     []byte
	relation *Relation
}

// relation reads the description of a table and remembers it when it differs from what is known.
func (d *Decoder) relation(c *cursor, m *Message) {
	oid := c.uint32("short relation OID")
	if known, ok := d.relations[oid]; ok && bytes.Equal(known.wire, c.data) {
		m.Relation = known.relation
		c.skip()
		return
	}
	r := &Relation{
		OID:             oid,
		Namespace:       string(c.cstring("short namespace")),
		Name:            string(c.cstring("short name")),
		ReplicaIdentity: c.uint8("short replica identity"),
		Columns:         d.columns(c),
	}
	if c.end(); c.fault != "" {
		return
	}
	d.relations[oid] = description{wire: bytes.Clone(c.data), relation: r}
	d.last = nil
	m.Relation = r
}

func (d *Decoder) columns(c *cursor) []Column {
	const least = 1 + 1 + 4 + 4 // flags, an empty name, type, modifier
	n := int(c.uint16("short column count"))
	if n > c.left()/least {
		c.fail("more columns than bytes")
		return nil
	}
	cols := make([]Column, n)
	for i := range cols {
		const key = 1
		cols[i].Key = c.uint8("short column flags")&key != 0
		cols[i].Name = string(c.cstring("short column name"))
		cols[i].TypeOID = c.uint32("short column type")
		cols[i].TypeModifier = int32(c.uint32("short type modifier"))
		cols[i].BaseType = d.bases[cols[i].TypeOID]
	}
	return cols
}

// typ reads a type, and remembers what the columns of that type in the relations to come are made of.
func (d *Decoder) typ(c *cursor, t *Type) {
	t.OID = c.uint32("short type OID")
	t.Namespace = c.cstring("short namespace")
	t.Name = c.cstring("short name")
	if c.end(); c.fault != "" || len(t.Namespace) > 0 || d.bases[t.OID] == string(t.Name) {
		return
	}
	d.bases[t.OID] = string(t.Name)
}
