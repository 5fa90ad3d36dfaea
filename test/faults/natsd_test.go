package faults_test

import (
	"time"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// natsdFaults are those of one nats-server.
func natsdFaults() []fault {
	return []fault{
		{
			name: "kill -9 nats-server", does: "the server is killed, and started again after the outage; PostgreSQL is told nothing meanwhile",
			short: 2, often: true, inflict: killNATS, check: ready,
		},
		{
			name: "nats-server restarted", does: "the server is stopped in order and started at once",
			inflict: func(tr *trial) { tr.NATS.Restart(tr) }, check: ready,
		},
	}
}

func killNATS(tr *trial) {
	tr.NATS.Kill9(tr)
	tr.wait(time.Second) // what was acknowledged before may still be confirmed
	before, rows := tr.confirmed(), tr.Rows(tr)
	tr.away()
	if after := tr.confirmed(); after != before {
		tr.Errorf("round %d: confirmed_flush_lsn went from %s to %s while NATS was down", tr.round, before, after)
	}
	if tr.Rows(tr) < rows+50 {
		tr.Error("no rows were committed meanwhile: the test has shown nothing")
	}
	tr.NATS.Start(tr)
}

// confirmed is the slot's confirmed_flush_lsn.
func (tr *trial) confirmed() string {
	tr.Helper()
	return testkit.Value[string](tr, tr.URL, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 'tidegate'")
}

func ready(tr *trial) { tr.bridge.WaitReady(tr, 20*time.Second) }
