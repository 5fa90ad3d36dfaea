package migrations_test

import (
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/migrations"
)

func TestParkedRowIsWhole(t *testing.T) {
	url := testkit.SharedPostgres(t).PlainDatabase(t)
	up(t, url, migrations.Options{})
	conn := connect(t, url)
	exec(t, conn, `INSERT INTO tidegate.parked (source, position, table_name, state, columns, types, vals) VALUES ('app', '1', 'public.outbox', 'parked', '{a,b}', '{20,25}', '{NULL,""}')`)
	for name, sql := range map[string]string{
		"the same row twice":     `INSERT INTO tidegate.parked (source, position, table_name, state) VALUES ('app', '1', 'public.outbox', 'held')`,
		"a state of its own":     `INSERT INTO tidegate.parked (source, position, table_name, state) VALUES ('app', '2', 'public.outbox', 'lost')`,
		"columns without values": `INSERT INTO tidegate.parked (source, position, table_name, state, columns) VALUES ('app', '3', 'public.outbox', 'held', '{a}')`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	exec(t, conn, `INSERT INTO tidegate.parked (source, position, table_name, state) VALUES ('app', 'a', 'public.outbox', 'held'), ('app', 'B', 'public.outbox', 'held'), ('app', '!', 'public.outbox', 'held')`)
	if got := query[string](t, conn, "SELECT string_agg(position, '' ORDER BY position) FROM tidegate.parked"); got != "!1Ba" {
		t.Errorf("positions in the order %s: not byte by byte", got)
	}
}
