package decoder_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
)

func relation() *decoder.Relation {
	return &decoder.Relation{
		OID: relationOID, Namespace: "public", Name: "outbox", ReplicaIdentity: 'd',
		Columns: []decoder.Column{
			{Name: "id", Key: true, TypeOID: 20, TypeModifier: -1},
			{Name: "payload", TypeOID: 25, TypeModifier: -1},
		},
	}
}

func text(s string) decoder.Value {
	return decoder.Value{Kind: decoder.ValueText, Data: []byte(s)}
}

var (
	null      = decoder.Value{Kind: decoder.ValueNull}
	unchanged = decoder.Value{Kind: decoder.ValueUnchanged}
)

// valid has at least one message of every kind, to be decoded after twoColumns.
var valid = []struct {
	name string
	data wire
	want decoder.Message
}{
	{
		"begin",
		wire("B").u64(0x16B374D848).u64(1).u32(4_000_000_000),
		decoder.Message{Kind: decoder.KindBegin, Begin: decoder.Begin{
			FinalLSN: 0x16B374D848, CommitTime: time.Date(2000, 1, 1, 0, 0, 0, 1000, time.UTC), XID: 4_000_000_000,
		}},
	},
	{
		"begin before 2000",
		wire("B").u64(1).u64(^uint64(0)).u32(3),
		decoder.Message{Kind: decoder.KindBegin, Begin: decoder.Begin{
			FinalLSN: 1, CommitTime: time.Date(1999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), XID: 3,
		}},
	},
	{
		"begin at the end of time",
		wire("B").u64(1).u64(1<<63 - 1).u32(3),
		decoder.Message{Kind: decoder.KindBegin, Begin: decoder.Begin{
			FinalLSN: 1, CommitTime: time.Date(294277, 1, 9, 4, 0, 54, 775_807_000, time.UTC), XID: 3,
		}},
	},
	{
		"commit",
		wire("C").u8(0).u64(10).u64(20).u64(1_000_000),
		decoder.Message{Kind: decoder.KindCommit, Commit: decoder.Commit{
			CommitLSN: 10, EndLSN: 20, CommitTime: time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC),
		}},
	},
	{
		"origin",
		wire("O").u64(7).str("node a"),
		decoder.Message{Kind: decoder.KindOrigin, Origin: decoder.Origin{CommitLSN: 7, Name: []byte("node a")}},
	},
	{
		"relation without columns",
		wire("R").u32(1).str("").str("pg_thing").u8('n').u16(0),
		decoder.Message{Kind: decoder.KindRelation, Relation: &decoder.Relation{
			OID: 1, Name: "pg_thing", ReplicaIdentity: 'n', Columns: []decoder.Column{},
		}},
	},
	{
		"type",
		wire("Y").u32(99_999).str("public").str("mood"),
		decoder.Message{Kind: decoder.KindType, Type: decoder.Type{
			OID: 99_999, Namespace: []byte("public"), Name: []byte("mood"),
		}},
	},
	{
		"insert",
		wire("I").u32(relationOID).u8('N').u16(2).text("42").text("{}"),
		decoder.Message{Kind: decoder.KindInsert, Relation: relation(), New: decoder.Tuple{text("42"), text("{}")}},
	},
	{
		"insert with an empty value and a null",
		wire("I").u32(relationOID).u8('N').u16(2).text("").null(),
		decoder.Message{Kind: decoder.KindInsert, Relation: relation(), New: decoder.Tuple{text(""), null}},
	},
	{
		"insert in binary",
		wire("I").u32(relationOID).u8('N').u16(2).bytes("\x00\x00\x00\x07").null(),
		decoder.Message{Kind: decoder.KindInsert, Relation: relation(), New: decoder.Tuple{
			{Kind: decoder.ValueBinary, Data: []byte{0, 0, 0, 7}}, null,
		}},
	},
	{
		"update without the old row",
		wire("U").u32(relationOID).u8('N').u16(2).text("1").unchanged(),
		decoder.Message{Kind: decoder.KindUpdate, Relation: relation(), New: decoder.Tuple{text("1"), unchanged}},
	},
	{
		"update of the key",
		wire("U").u32(relationOID).u8('K').u16(2).text("1").null().u8('N').u16(2).text("2").text("b"),
		decoder.Message{
			Kind: decoder.KindUpdate, Relation: relation(),
			OldKind: decoder.OldKey, Old: decoder.Tuple{text("1"), null}, New: decoder.Tuple{text("2"), text("b")},
		},
	},
	{
		"update with the full old row",
		wire("U").u32(relationOID).u8('O').u16(2).text("1").text("a").u8('N').u16(2).text("1").text("b"),
		decoder.Message{
			Kind: decoder.KindUpdate, Relation: relation(),
			OldKind: decoder.OldFull, Old: decoder.Tuple{text("1"), text("a")}, New: decoder.Tuple{text("1"), text("b")},
		},
	},
	{
		"delete by key",
		wire("D").u32(relationOID).u8('K').u16(2).text("1").null(),
		decoder.Message{
			Kind: decoder.KindDelete, Relation: relation(),
			OldKind: decoder.OldKey, Old: decoder.Tuple{text("1"), null},
		},
	},
	{
		"delete with the full old row",
		wire("D").u32(relationOID).u8('O').u16(2).text("1").text("a"),
		decoder.Message{
			Kind: decoder.KindDelete, Relation: relation(),
			OldKind: decoder.OldFull, Old: decoder.Tuple{text("1"), text("a")},
		},
	},
	{
		"truncate",
		wire("T").u32(1).u8(0).u32(relationOID),
		decoder.Message{Kind: decoder.KindTruncate, Truncated: []*decoder.Relation{relation()}},
	},
	{
		"truncate cascade",
		wire("T").u32(1).u8(1).u32(relationOID),
		decoder.Message{
			Kind: decoder.KindTruncate, Truncated: []*decoder.Relation{relation()}, TruncateCascade: true,
		},
	},
	{
		"truncate restart identity",
		wire("T").u32(2).u8(2).u32(relationOID).u32(relationOID),
		decoder.Message{
			Kind: decoder.KindTruncate, Truncated: []*decoder.Relation{relation(), relation()}, TruncateRestart: true,
		},
	},
	{
		"logical message in a transaction",
		append(wire("M").u8(1).u64(9).str("tidegate").u32(4), "beat"...),
		decoder.Message{Kind: decoder.KindLogical, Logical: decoder.Logical{
			Transactional: true, LSN: 9, Prefix: []byte("tidegate"), Content: []byte("beat"),
		}},
	},
	{
		"logical message on its own, empty",
		wire("M").u8(0).u64(9).str("").u32(0),
		decoder.Message{Kind: decoder.KindLogical, Logical: decoder.Logical{
			LSN: 9, Prefix: []byte{}, Content: []byte{},
		}},
	},
}

// primed gives a Decoder that knows twoColumns.
func primed(t testing.TB) *decoder.Decoder {
	t.Helper()
	d := decoder.New()
	if err := d.Decode(twoColumns(), new(decoder.Message)); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryMessageIsDecoded(t *testing.T) {
	for _, tt := range valid {
		t.Run(tt.name, func(t *testing.T) {
			var got decoder.Message
			if err := primed(t).Decode(tt.data, &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestMessageUsedAgainShowsNothingOfTheOneBefore(t *testing.T) {
	d := primed(t)
	var m decoder.Message
	full := wire("U").u32(relationOID).u8('O').u16(2).text("1").text("a").u8('N').u16(2).text("1").text("b")
	plain := wire("U").u32(relationOID).u8('N').u16(2).null().text("c")
	for _, data := range []wire{full, plain} {
		if err := d.Decode(data, &m); err != nil {
			t.Fatal(err)
		}
	}
	if m.OldKind != decoder.OldNone || m.Old != nil {
		t.Errorf("old row of the message before: %q %v", m.OldKind, m.Old)
	}
	if want := (decoder.Tuple{null, text("c")}); !reflect.DeepEqual(m.New, want) {
		t.Errorf("new row: got %v, want %v", m.New, want)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	d := primed(t)
	var m decoder.Message
	messages := []wire{
		insertOf("1", "{}"),
		wire("U").u32(relationOID).u8('K').u16(2).text("1").null().u8('N').u16(2).text("2").text("b"),
		wire("D").u32(relationOID).u8('K').u16(2).text("1").null(),
		twoColumns(),
		wire("B").u64(1).u64(1).u32(1),
		wire("C").u8(0).u64(1).u64(1).u64(1),
	}
	allocs := testing.AllocsPerRun(100, func() {
		for _, data := range messages {
			if err := d.Decode(data, &m); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func TestValuesCannotBeAppendedIntoTheirNeighbours(t *testing.T) {
	d := primed(t)
	var m decoder.Message
	if err := d.Decode(insertOf("1", "abc"), &m); err != nil {
		t.Fatal(err)
	}
	_ = append(m.New[0].Data, "XXXXXXXX"...)
	if got := string(m.New[1].Data); got != "abc" {
		t.Errorf("second value became %q", got)
	}
}

func TestKindHasAName(t *testing.T) {
	want := map[decoder.Kind]string{
		decoder.KindBegin: "begin", decoder.KindCommit: "commit", decoder.KindOrigin: "origin",
		decoder.KindRelation: "relation", decoder.KindType: "type", decoder.KindInsert: "insert",
		decoder.KindUpdate: "update", decoder.KindDelete: "delete", decoder.KindTruncate: "truncate",
		decoder.KindLogical: "logical message", 'S': "message of kind 'S'",
	}
	for kind, name := range want {
		if got := kind.String(); got != name {
			t.Errorf("%q: got %q, want %q", byte(kind), got, name)
		}
	}
}
