package decoder_test

import (
	"errors"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// decode fails the test when data is not a message.
func decode(t *testing.T, d *decoder.Decoder, data wire) decoder.Message {
	t.Helper()
	var m decoder.Message
	if err := d.Decode(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRepeatedRelationIsTheSamePointer(t *testing.T) {
	d := decoder.New()
	first := decode(t, d, twoColumns()).Relation
	if again := decode(t, d, twoColumns()).Relation; again != first {
		t.Error("a repeated relation message gave another pointer")
	}
	if row := decode(t, d, insertOf("1", "a")).Relation; row != first {
		t.Error("a row has another pointer than its relation")
	}
}

func TestChangedRelationIsNewAndLeavesTheOldOneAlone(t *testing.T) {
	d := decoder.New()
	before := decode(t, d, twoColumns()).Relation
	decode(t, d, insertOf("1", "a"))

	renamed := wire("R").u32(relationOID).str("public").str("outbox").u8('d').u16(1).column(1, "key", 20, -1)
	after := decode(t, d, renamed).Relation
	if after == before || after.Columns[0].Name != "key" {
		t.Errorf("the change was not seen: %+v", after)
	}
	if len(before.Columns) != 2 || before.Columns[0].Name != "id" {
		t.Errorf("the old relation was changed: %+v", before)
	}
	row := decode(t, d, wire("I").u32(relationOID).u8('N').u16(1).text("1"))
	if row.Relation != after {
		t.Error("a row behind the change has the old relation")
	}
}

func TestRelationOutlivesTheBytesItCameFrom(t *testing.T) {
	d := decoder.New()
	data := twoColumns()
	rel := decode(t, d, data).Relation
	clear(data)
	if rel.Name != "outbox" || rel.Columns[1].Name != "payload" {
		t.Errorf("relation aliases the message: %+v", rel)
	}
	if again := decode(t, d, twoColumns()).Relation; again != rel {
		t.Error("what the relation is compared with aliases the message")
	}
}

func TestMalformedRelationChangesNothing(t *testing.T) {
	d := decoder.New()
	before := decode(t, d, twoColumns()).Relation
	broken := wire("R").u32(relationOID).str("public").str("other").u8('d').u16(1).column(0, "x", 25, -1).u8(0)
	if err := d.Decode(broken, new(decoder.Message)); !errors.Is(err, decoder.ErrMalformed) {
		t.Fatalf("got %v", err)
	}
	if row := decode(t, d, insertOf("1", "a")).Relation; row != before {
		t.Errorf("the malformed relation was kept: %+v", row)
	}
}

func TestRowsOfSeveralTablesFindTheirOwnRelation(t *testing.T) {
	d := primed(t)
	other := decode(t, d, wire("R").u32(7).str("public").str("other").u8('d').u16(1).column(0, "x", 25, -1)).Relation
	for range 2 {
		if row := decode(t, d, insertOf("1", "a")); row.Relation.Name != "outbox" {
			t.Errorf("row of outbox has relation %s", row.Relation.Name)
		}
		if row := decode(t, d, wire("I").u32(7).u8('N').u16(1).null()); row.Relation != other {
			t.Errorf("row of other has relation %s", row.Relation.Name)
		}
	}
}

func TestColumnOfADomainNamesTheTypeBeneath(t *testing.T) {
	const domain, enum = 50_001, 50_002
	d := decoder.New()
	for range 2 {
		decode(t, d, wire("Y").u32(domain).str("").str("bytea"))
		decode(t, d, wire("Y").u32(enum).str("public").str("bytea"))
	}
	if err := d.Decode(wire("Y").u32(domain).str("").str("text").u8(0), new(decoder.Message)); err == nil {
		t.Fatal("a malformed type is no error")
	}
	rel := decode(t, d, wire("R").u32(1).str("public").str("outbox").u8('d').u16(3).
		column(0, "a", domain, -1).column(0, "b", enum, -1).column(0, "c", 17, -1)).Relation
	for i, want := range []string{"bytea", "", ""} {
		if got := rel.Columns[i].BaseType; got != want {
			t.Errorf("column %s: base type %q, want %q", rel.Columns[i].Name, got, want)
		}
	}
}
