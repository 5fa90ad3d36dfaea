// Package versions_test holds what differs between the supported versions of PostgreSQL, and what must not: how a
// server says what is wrong, and what the built bridge makes of it. `make test` runs it on the PostgreSQL that is
// installed, `make test-versions` on every supported one. Nothing here needs PostGIS.
package versions_test

import (
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// words are a version's own, for what it says otherwise than others.
type words struct {
	lostSlot      string
	noReplication string
	lowWAL        string
	// publicationIsError: a missing publication ends the stream; else a notice is all, and rows are left out.
	publicationIsError bool
	// emptyTransactions: begin and commit are also sent for transactions that hold nothing for us.
	emptyTransactions bool
	// messages: logical messages are sent.
	messages bool
	// failover: slots may be kept for a failover.
	failover bool
}

const (
	lost13 = "cannot read from logical replication slot"
	lost16 = "can no longer get changes from replication slot"
	lost18 = "can no longer access replication slot"

	role13 = "must be superuser or replication role to start walsender"
	role16 = "permission denied to start WAL sender"

	wal13 = "logical decoding requires wal_level >= logical"
	wal17 = `logical decoding requires "wal_level" >= "logical"`
)

var versions = map[int]words{
	13: {lost13, role13, wal13, true, true, false, false},
	14: {lost13, role13, wal13, true, true, true, false},
	15: {lost13, role13, wal13, true, false, true, false},
	16: {lost16, role16, wal13, true, false, true, false},
	17: {lost16, role16, wal17, true, false, true, true},
	18: {lost18, role16, wal17, false, false, true, true},
}

// wordsOf gives what is known of the server's version. One that is not known fails the test.
func wordsOf(t *testing.T, pg *testkit.PG) words {
	t.Helper()
	version := testkit.Value[int](t, pg.URL("postgres"), "SELECT current_setting('server_version_num')::int / 10000")
	known, ok := versions[version]
	if !ok {
		t.Fatalf("PostgreSQL %d is not in the table of versions", version)
	}
	return known
}
