package decoder_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

var update = flag.Bool("update", false, "write testdata/session.golden from what is decoded now")

// recorded gives the messages of a real session; testdata/capture says how they were made.
func recorded(t testing.TB) [][]byte {
	t.Helper()
	file, err := os.ReadFile("testdata/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	return testkit.SessionMessages(t, string(file))
}

func TestRecordedSessionReadsLikePglogrepl(t *testing.T) {
	d := decoder.New()
	var m decoder.Message
	seen := make(map[decoder.Kind]int)
	for i, data := range recorded(t) {
		if err := d.Decode(data, &m); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if err := differs(data, &m); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
		seen[m.Kind]++
	}
	for _, kind := range []byte("BCORYIUDTM") {
		if seen[decoder.Kind(kind)] == 0 {
			t.Errorf("the recording has no %v", decoder.Kind(kind))
		}
	}
}

// TestRecordedSessionHasWhatWasCommitted compares with a text to be read beside testdata/session.sql.
func TestRecordedSessionHasWhatWasCommitted(t *testing.T) {
	const file = "testdata/session.golden"
	d := decoder.New()
	var m decoder.Message
	var got strings.Builder
	for i, data := range recorded(t) {
		if err := d.Decode(data, &m); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		fmt.Fprintln(&got, describe(&m))
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s", got.String())
	}
	if strings.Contains(got.String(), "rolled back") {
		t.Error("a row that was rolled back was decoded")
	}
}

// describe gives a line without what differs between two recordings.
func describe(m *decoder.Message) string {
	switch m.Kind {
	case decoder.KindRelation:
		return describeRelation(m.Relation)
	case decoder.KindInsert:
		return fmt.Sprintf("insert %s %s", m.Relation.Name, row(m.New))
	case decoder.KindUpdate:
		return fmt.Sprintf("update %s %c%s to %s", m.Relation.Name, max(m.OldKind, '-'), row(m.Old), row(m.New))
	case decoder.KindDelete:
		return fmt.Sprintf("delete %s %c%s", m.Relation.Name, m.OldKind, row(m.Old))
	case decoder.KindTruncate:
		names := make([]string, len(m.Truncated))
		for i, r := range m.Truncated {
			names[i] = r.Name
		}
		return fmt.Sprintf("truncate %v cascade=%t restart=%t", names, m.TruncateCascade, m.TruncateRestart)
	case decoder.KindType:
		return fmt.Sprintf("type %s.%s", m.Type.Namespace, m.Type.Name)
	case decoder.KindOrigin:
		return fmt.Sprintf("origin %v %s", m.Origin.CommitLSN, m.Origin.Name)
	case decoder.KindLogical:
		return fmt.Sprintf("logical message transactional=%t %q %q", m.Logical.Transactional, m.Logical.Prefix, m.Logical.Content)
	}
	return m.Kind.String()
}

func describeRelation(r *decoder.Relation) string {
	s := fmt.Sprintf("relation %q.%s identity=%c:", r.Namespace, r.Name, r.ReplicaIdentity)
	for _, c := range r.Columns {
		oid := fmt.Sprint(c.TypeOID)
		if c.TypeOID >= 16384 {
			oid = "own:" + c.BaseType // the number is another one in every database
		}
		s += fmt.Sprintf(" %s/%s/%d", c.Name, oid, c.TypeModifier)
		if c.Key {
			s += "/key"
		}
	}
	return s
}

func row(values decoder.Tuple) string {
	out := make([]string, len(values))
	for i, v := range values {
		switch {
		case v.Kind != decoder.ValueText:
			out[i] = string(v.Kind)
		case len(v.Data) > 200:
			out[i] = fmt.Sprintf("%.5q... (%d)", v.Data, len(v.Data))
		default:
			out[i] = fmt.Sprintf("%q", v.Data)
		}
	}
	return "(" + strings.Join(out, ", ") + ")"
}
