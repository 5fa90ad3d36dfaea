package faults_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// postgresFaults are those of the source.
func postgresFaults() []fault {
	return []fault{
		{
			name: "Postgres crash under a long transaction", does: "an immediate stop while a transaction that was open before everything holds restart_lsn back, and a start after the outage",
			short: 1, inflict: crashPostgres,
		},
		{
			name: "Postgres restarted", does: "a fast stop that takes less than 5 s, and a start at once",
			inflict: func(tr *trial) {
				tr.stopPostgres()
				tr.PG.Start(tr)
			},
		},
		{
			name: "Postgres stopped", does: "a fast stop that takes less than 5 s, and a start after the outage",
			short: 1, inflict: func(tr *trial) {
				tr.stopPostgres()
				tr.away()
				tr.PG.Start(tr)
			},
		},
		{
			name: "Postgres stopped while NATS is down", does: "a fast stop that takes less than 5 s although rows are pending that cannot be published; both are started after the outage",
			short: 1, inflict: stopPostgresWithoutNATS,
		},
		{
			name: "walsender terminated", does: "pg_terminate_backend of whatever walsender holds the slot, again and again for as long as the outage",
			short: 1, often: true, inflict: terminateWalsenders,
		},
		{
			name: "DDL on the outbox", does: "columns added, filled, renamed, retyped and dropped that are not mapped, indexes, constraints, storage settings, replica identity, VACUUM FULL, CLUSTER, REINDEX, in any order",
			short: 1, inflict: changeOutbox,
		},
	}
}

func crashPostgres(tr *trial) {
	// The open transaction holds restart_lsn back: everything since comes again, whatever was confirmed.
	long := testkit.Connect(tr, tr.URL)
	if _, err := long.Exec(tr.Context(), "BEGIN; INSERT INTO outbox (aggregate_type, aggregate_id, event_type) VALUES ('long', 'l', 'never')"); err != nil {
		tr.Fatal(err)
	}
	tr.AwaitStored(tr, 200)
	testkit.Exec(tr, tr.URL, "CHECKPOINT")
	tr.away()
	tr.PG.Stop(tr, testkit.Immediate)
	tr.away()
	tr.PG.Start(tr)
}

// patience is how long the bridge may hold up a shutdown of PostgreSQL.
const patience = 5 * time.Second

func (tr *trial) stopPostgres() {
	tr.Helper()
	if took := tr.PG.Stop(tr, testkit.Fast); took >= patience {
		tr.Errorf("round %d: the shutdown took %s", tr.round, took)
	}
}

func stopPostgresWithoutNATS(tr *trial) {
	tr.NATS.Stop(tr)
	rows := tr.Rows(tr)
	testkit.Eventually(tr, 20*time.Second, func() bool { return tr.Rows(tr) > rows+200 }, "rows are pending")
	tr.stopPostgres()
	tr.away()
	tr.PG.Start(tr)
	tr.NATS.Start(tr)
}

func terminateWalsenders(tr *trial) {
	over := time.Now().Add(tr.outage)
	ended := 0
	for time.Now().Before(over) {
		ended += testkit.Value[int](tr, tr.URL, `SELECT count(pg_terminate_backend(active_pid))::int FROM pg_replication_slots WHERE active_pid IS NOT NULL`)
		tr.wait(time.Duration(tr.random.Int64N(int64(400 * time.Millisecond))))
	}
	if ended == 0 {
		tr.Error("no walsender was there to be terminated: the test has shown nothing")
	}
}

// changeOutbox runs all statements, in random order where one does not need another.
func changeOutbox(tr *trial) {
	column := fmt.Sprintf("extra%d", tr.round)
	chains := [][]string{
		{
			"ALTER TABLE outbox ADD COLUMN {} text",
			"ALTER TABLE outbox ALTER COLUMN {} SET DEFAULT 'x'",
			"UPDATE outbox SET {} = 'y' WHERE seq % 10 = 0",
			"ALTER TABLE outbox RENAME COLUMN {} TO {}_b",
			"ALTER TABLE outbox ALTER COLUMN {}_b TYPE varchar(20)",
			"ALTER TABLE outbox DROP COLUMN {}_b",
		},
		{"ALTER TABLE outbox ADD COLUMN {}_n integer NOT NULL DEFAULT 7", "ALTER TABLE outbox DROP COLUMN {}_n"},
		{"CREATE INDEX {}_i ON outbox (created_at)", "CLUSTER outbox USING {}_i", "DROP INDEX {}_i"},
		{"CREATE INDEX CONCURRENTLY {}_c ON outbox (aggregate_id)", "REINDEX INDEX CONCURRENTLY {}_c", "DROP INDEX CONCURRENTLY {}_c"},
		{"ALTER TABLE outbox SET (fillfactor = 70)", "VACUUM FULL outbox", "ALTER TABLE outbox RESET (fillfactor)"},
		{"ALTER TABLE outbox ADD CONSTRAINT {}_k CHECK (aggregate_id <> '')", "ALTER TABLE outbox DROP CONSTRAINT {}_k"},
		{"ALTER TABLE outbox REPLICA IDENTITY FULL", "ALTER TABLE outbox REPLICA IDENTITY DEFAULT"},
		{"VACUUM outbox", "REINDEX TABLE outbox", "ANALYZE outbox"},
	}
	for len(chains) > 0 {
		i := tr.random.IntN(len(chains))
		testkit.Exec(tr, tr.URL, strings.ReplaceAll(chains[i][0], "{}", column))
		tr.wait(time.Duration(tr.random.Int64N(int64(200 * time.Millisecond))))
		if chains[i] = chains[i][1:]; len(chains[i]) == 0 {
			chains[i] = chains[len(chains)-1]
			chains = chains[:len(chains)-1]
		}
	}
}
