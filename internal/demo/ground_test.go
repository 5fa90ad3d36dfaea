package demo

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegate-cdc/tidegate/internal/exit"
)

func TestMissingPostGISSaysWhatToDo(t *testing.T) {
	g := &ground{bin: "/opt/pg/bin"}
	for _, code := range []string{"0A000", "58P01"} { // from PostgreSQL 15 on, and before
		err := g.explain("CREATE EXTENSION postgis", &pgconn.PgError{Code: code, Message: `extension "postgis" is not available`})
		if exit.Code(err) != exit.Postgres || !strings.Contains(exit.Hint(err), "make setup") || !strings.Contains(err.Error(), g.bin) {
			t.Errorf("%s: %v, hint %q", code, err, exit.Hint(err))
		}
	}
	if err := g.explain("CREATE EXTENSION postgis", errors.New("connection lost")); exit.Hint(err) != "" {
		t.Errorf("another failure: %v, hint %q", err, exit.Hint(err))
	}
}
