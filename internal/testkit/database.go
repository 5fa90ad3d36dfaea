package testkit

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// gisTemplate is the database that Database copies: installing PostGIS takes many times longer than a copy.
const gisTemplate = "postgis_template"

// Database makes a database with PostGIS for one test and gives its URL. It is dropped when the test ends, with the
// replication slots on it and whoever is connected.
func (pg *PG) Database(t testing.TB) string {
	t.Helper()
	pg.makeTemplate(t)
	return pg.newDatabase(t, gisTemplate)
}

// PlainDatabase is Database without PostGIS.
func (pg *PG) PlainDatabase(t testing.TB) string {
	t.Helper()
	return pg.newDatabase(t, "template1")
}

func (pg *PG) makeTemplate(t testing.TB) {
	t.Helper()
	pg.mu.Lock()
	defer pg.mu.Unlock()
	if pg.hasGIS {
		return
	}
	pg.admin(t, "postgres", "CREATE DATABASE "+gisTemplate)
	pg.admin(t, gisTemplate, "CREATE EXTENSION postgis")
	pg.hasGIS = true
}

func (pg *PG) newDatabase(t testing.TB, template string) string {
	t.Helper()
	pg.mu.Lock()
	pg.databases++
	name := fmt.Sprintf("app%d", pg.databases)
	pg.mu.Unlock()
	pg.admin(t, "postgres", fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template))
	t.Cleanup(func() { pg.dropDatabase(t, name) })
	return pg.URL(name)
}

// dropDatabase does nothing on a cluster that the test has left stopped or has removed.
func (pg *PG) dropDatabase(t testing.TB, name string) {
	if pg.PID() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	conn, err := pg.Connect(ctx, "postgres")
	if err != nil {
		t.Errorf("drop database %s: %v", name, err)
		return
	}
	defer conn.Close(ctx)
	Eventually(t, stopTimeout, func() bool { return dropSlots(ctx, conn, name) }, "drop the slots of database %s", name)
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		t.Errorf("drop database %s: %v", name, err)
	}
}

// dropSlots ends who uses the database's slots and drops them; false while one is still in use.
func dropSlots(ctx context.Context, conn *pgx.Conn, database string) bool {
	_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots
		WHERE database = $1 AND active_pid IS NOT NULL`, database)
	if err != nil {
		return false
	}
	_, err = conn.Exec(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = $1", database)
	return err == nil
}

// admin runs a statement as superuser by the Unix socket.
func (pg *PG) admin(t testing.TB, database, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pg.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
