package parking_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/parking"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestMissingTableNamesTheCommandThatMakesIt(t *testing.T) {
	db := testkit.SharedPostgres(t).PlainDatabase(t)
	var missing *parking.MissingError
	if _, err := parking.Open(t.Context(), testkit.Connect(t, db), source, 10); !errors.As(err, &missing) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(missing.Hint(), "tidegate migrate up") || !strings.Contains(missing.Hint(), "park.store: off") {
		t.Errorf("hint %s", missing.Hint())
	}
	if _, err := parking.OpenDesk(t.Context(), testkit.Connect(t, db), source); !errors.As(err, &missing) {
		t.Errorf("desk: %v", err)
	}
}

func TestTableDroppedLaterIsNamed(t *testing.T) {
	s, db := store(t)
	testkit.Exec(t, db, "DROP TABLE tidegate.parked")
	var missing *parking.MissingError
	if _, _, err := s.Park(t.Context(), []parking.Row{row(1, "a", parking.StateParked)}); !errors.As(err, &missing) {
		t.Errorf("got %v", err)
	}
}

// The hints are followed to the letter, until everything works as the least of roles.
func TestLeastRoleIsToldItsGrants(t *testing.T) {
	db := database(t)
	const role = `Least "one"`
	testkit.Exec(t, db, `CREATE ROLE "Least ""one"""`) // gone with the cluster, like its grants with the database
	conn := connectAs(t, db, role)
	var refused *parking.PrivilegeError
	_, err := parking.Open(t.Context(), conn, source, 10)
	if !errors.As(err, &refused) || !slices.Equal(refused.Lacks, []string{"USAGE", "SELECT", "INSERT", "UPDATE", "DELETE"}) {
		t.Fatalf("nothing granted: %v", err)
	}
	_, err = parking.OpenDesk(t.Context(), conn, source)
	if !errors.As(err, &refused) {
		t.Fatalf("desk, nothing granted: %v", err)
	}
	testkit.Exec(t, db, refused.Hint())
	d, err := parking.OpenDesk(t.Context(), conn, source)
	must(t, err)
	if _, _, err := d.List(t.Context(), parking.Filter{}); err != nil {
		t.Errorf("list with %s: %v", refused.Hint(), err)
	}
	if _, err = parking.Open(t.Context(), conn, source, 10); !errors.As(err, &refused) || !slices.Equal(refused.Lacks, []string{"INSERT", "UPDATE", "DELETE"}) {
		t.Fatalf("with SELECT alone: %v", err)
	}
	parkHeldOpen(t, db)
	_, err = d.Retry(t.Context(), "public.outbox:row-1")
	if !errors.As(err, &refused) || !slices.Equal(refused.Lacks, []string{"UPDATE"}) {
		t.Fatalf("retry with SELECT alone: %v", err)
	}
	testkit.Exec(t, db, refused.Hint())
	if _, err := d.Retry(t.Context(), "public.outbox:row-1"); err != nil {
		t.Errorf("retry with %s: %v", refused.Hint(), err)
	}
	_, err = parking.Open(t.Context(), conn, source, 10)
	errors.As(err, &refused)
	testkit.Exec(t, db, refused.Hint())
	s, err := parking.Open(t.Context(), conn, source, 10)
	must(t, err)
	useEverything(t, s)
}

func parkHeldOpen(t *testing.T, db string) {
	t.Helper()
	park(t, open(t, db, 10), row(1, "a", parking.StateParked))
}

func useEverything(t *testing.T, s *parking.Store) {
	t.Helper()
	park(t, s, row(2, "a", parking.StateHeld), row(3, "b", parking.StateDiscard))
	rows := releasable(t, s, 9, true, false)
	if names(rows) != "row-1:retry row-2:held row-3:discard" {
		t.Fatalf("got %s", names(rows))
	}
	must(t, s.Releasing(t.Context(), ids(rows[:2]), "OUTBOX", 1))
	must(t, s.Released(t.Context(), ids(rows[:1])))
	must(t, s.Repark(t.Context(), rows[1].ID, "no"))
	must(t, s.Discarded(t.Context(), ids(rows[2:])))
	if _, err := s.Load(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Stats(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReasonIsTextInDatabasesOfOtherEncodings(t *testing.T) {
	for _, encoding := range []string{"SQL_ASCII", "LATIN1"} {
		admin := testkit.SharedPostgres(t).PlainDatabase(t)
		name := "enc_" + strings.ToLower(encoding)
		testkit.Exec(t, admin, "CREATE DATABASE "+name+" TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING '"+encoding+"'")
		t.Cleanup(func() { dropDatabase(t, name) })
		u, err := url.Parse(admin)
		must(t, err)
		u.Path = "/" + name
		migrate(t, u.String())
		s := open(t, u.String(), 10)
		r := row(1, "\xff\xfe", parking.StateRetry)
		r.Reason = "subject “ä” → too\x00long \xff"
		r.Columns[0].Name = "n\xffme"
		park(t, s, r)
		got := releasable(t, s, 9, true, false)
		if len(got) != 1 || string(got[0].AggregateID) != "\xff\xfe" || !strings.HasPrefix(got[0].Reason, `subject \u201c\u00e4\u201d \u2192 too`) {
			t.Errorf("%s: %+v", encoding, got)
		}
	}
}

func dropDatabase(t *testing.T, name string) {
	conn, err := testkit.SharedPostgres(t).Connect(background(), "postgres")
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(background())
	if _, err := conn.Exec(background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
		t.Error(err)
	}
}

func TestTablePositionIsPrintableUniqueAndBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	seen := map[string]string{}
	for _, id := range []string{"", "1", "a b", "a%20b", "a~b", "\xff\x00", "größe", long, long + "y"} {
		p := parking.TablePosition("public.outbox", []byte(id))
		if other, taken := seen[p]; taken {
			t.Errorf("%.20q and %.20q have the same", id, other)
		}
		seen[p] = id
		if len(p) > 1000 || p >= at(0) || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			t.Errorf("%.20q: %q", id, p)
		}
	}
	if got := parking.TablePosition("public.outbox", []byte("42")); got != "!public.outbox:42" {
		t.Errorf("got %s", got)
	}
}
