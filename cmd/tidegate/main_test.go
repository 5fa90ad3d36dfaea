package main

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"tidegate": main}) }

// TestScripts runs the commands as a user types them. Scripts whose name begins with "postgres" find two databases, with
// and without PostGIS, at $DATABASE and $PLAIN.
func TestScripts(t *testing.T) {
	postgres := sync.OnceValue(func() *testkit.PG { return testkit.SharedPostgres(t) })
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			if strings.HasPrefix(filepath.Base(env.WorkDir), "script-postgres") {
				env.Setenv("DATABASE", postgres().Database(t))
				env.Setenv("PLAIN", postgres().PlainDatabase(t))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"sql": runSQL, "lockmigrations": lockMigrations, "waitblocked": waitBlocked, "parkrows": parkRows, "bridge": startBridge},
	})
}

// runSQL executes the rest of its arguments at a URL: sql URL STATEMENT…, or the standard output of the command before
// with "stdout" as the only statement.
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: sql URL STATEMENT...")
	}
	conn, err := pgx.Connect(context.Background(), args[0])
	ts.Check(err)
	defer conn.Close(context.Background())
	statement := strings.Join(args[1:], " ")
	if statement == "stdout" {
		statement = ts.ReadFile("stdout")
	}
	_, err = conn.Exec(context.Background(), statement)
	if neg != (err != nil) {
		ts.Fatalf("%s: %v", statement, err)
	}
}

// lockMigrations stands for a migration that runs until the end of the script.
func lockMigrations(ts *testscript.TestScript, _ bool, args []string) {
	conn, err := pgx.Connect(context.Background(), args[0])
	ts.Check(err)
	ts.Defer(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(context.Background(), "SELECT pg_advisory_lock(x'7469646567617465'::bigint)")
	ts.Check(err)
}

// waitBlocked waits until a session waits for the migration lock.
func waitBlocked(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, args[0])
	ts.Check(err)
	defer conn.Close(context.Background())
	for waiting := false; !waiting; {
		const query = "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database d ON d.oid = database WHERE locktype = 'advisory' AND NOT granted AND datname = current_database())"
		ts.Check(conn.QueryRow(ctx, query).Scan(&waiting))
	}
}
