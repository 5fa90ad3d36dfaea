package versions_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// outbox makes a database with an outbox, a publication and a slot.
func outbox(t *testing.T, pg *testkit.PG) (url string) {
	t.Helper()
	url = pg.PlainDatabase(t)
	testkit.Exec(t, url, "CREATE TABLE outbox (id int); CREATE PUBLICATION p FOR TABLE outbox WITH (publish = 'insert')")
	testkit.Exec(t, url, "SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
	return url
}

// heard is what a walsender says besides rows.
type heard struct {
	kinds   string // the first byte of every message
	notices []string
	err     error // what ended the stream
}

// stream reads a slot with nothing of ours in between: until the server ends it, or has sent all that it has.
func stream(t *testing.T, url string, options ...string) (h heard) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["replication"] = "database"
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { h.notices = append(h.notices, n.Code+" "+n.Message) }
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return heard{err: err}
	}
	defer func() { _ = conn.Close(ctx) }()
	end, err := pglogrepl.IdentifySystem(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"proto_version '1'", "publication_names 'p'"}, options...)
	if err := pglogrepl.StartReplication(ctx, conn, "s", 0, pglogrepl.StartReplicationOptions{PluginArgs: args}); err != nil {
		return heard{err: err}
	}
	for {
		message, err := conn.ReceiveMessage(ctx)
		if err != nil {
			h.err = err
			return h
		}
		switch m := message.(type) {
		case *pgproto3.ErrorResponse:
			h.err = pgconn.ErrorResponseToPgError(m)
			return h
		case *pgproto3.CopyData:
			if m.Data[0] == pglogrepl.XLogDataByteID {
				h.kinds += string(m.Data[25])
				continue
			}
			keepalive, err := pglogrepl.ParsePrimaryKeepaliveMessage(m.Data[1:])
			if err != nil {
				t.Fatal(err)
			}
			if keepalive.ServerWALEnd >= end.XLogPos {
				return h
			}
		}
	}
}

func wantError(t *testing.T, err error, code, text string) {
	t.Helper()
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != code || !strings.Contains(pe.Message, text) {
		t.Errorf("got %v, want %s %q", err, code, text)
	}
}

func TestLostSlotIsSaidInTheVersionsWords(t *testing.T) {
	pg := testkit.Postgres(t, testkit.Conf("max_slot_wal_keep_size", "1MB"))
	url := outbox(t, pg)
	loseSlot(t, url)
	wantError(t, stream(t, url).err, "55000", wordsOf(t, pg).lostSlot)
}

// loseSlot writes WAL until that of the slots is removed.
func loseSlot(t *testing.T, url string) {
	t.Helper()
	testkit.Exec(t, url, "CREATE TABLE noise (n int)")
	for range 4 {
		testkit.Exec(t, url, "INSERT INTO noise VALUES (1)")
		testkit.Exec(t, url, "SELECT pg_switch_wal()")
	}
	testkit.Exec(t, url, "CHECKPOINT")
	if got := testkit.Value[string](t, url, "SELECT wal_status FROM pg_replication_slots"); got != "lost" {
		t.Fatalf("the slot is %s, not lost", got)
	}
}

func TestMissingPublicationIsAnErrorOrANotice(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	url := outbox(t, pg)
	testkit.Exec(t, url, "DROP PUBLICATION p")
	testkit.Exec(t, url, "INSERT INTO outbox VALUES (1)")
	got := stream(t, url)
	if strings.Contains(got.kinds, "I") {
		t.Error("the row is sent")
	}
	if wordsOf(t, pg).publicationIsError {
		wantError(t, got.err, "42704", `publication "p" does not exist`)
		return
	}
	if got.err != nil || len(got.notices) == 0 || !strings.Contains(got.notices[0], `55000 skipped loading publication "p"`) {
		t.Errorf("error %v, notices %q", got.err, got.notices)
	}
}

func TestRoleWithoutReplicationIsRefusedInTheVersionsWords(t *testing.T) {
	pg := testkit.Postgres(t)
	url := outbox(t, pg)
	testkit.Exec(t, url, "CREATE ROLE plain LOGIN")
	wantError(t, stream(t, strings.Replace(url, "postgres@", "plain@", 1)).err, "42501", wordsOf(t, pg).noReplication)
}

func TestLowWALLevelIsRefusedInTheVersionsWords(t *testing.T) {
	pg := testkit.Postgres(t, testkit.Conf("wal_level", "replica"))
	conn := testkit.Connect(t, pg.PlainDatabase(t))
	_, err := conn.Exec(t.Context(), "SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
	wantError(t, err, "55000", wordsOf(t, pg).lowWAL)
}

func TestEmptyTransactionsAndMessagesAreSentByVersion(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	known := wordsOf(t, pg)
	url := outbox(t, pg)
	testkit.Exec(t, url, "CREATE TABLE other AS SELECT 1")
	testkit.Exec(t, url, "INSERT INTO outbox VALUES (1)")
	got := stream(t, url)
	if got.err != nil || !strings.HasSuffix(got.kinds, "BRIC") {
		t.Fatalf("messages %s, %v", got.kinds, got.err)
	}
	if empty := strings.Contains(got.kinds, "BC"); empty != known.emptyTransactions {
		t.Errorf("messages %s: an empty transaction is sent: %v", got.kinds, empty)
	}
	testkit.Exec(t, url, "SELECT pg_logical_emit_message(true, 'beat', '')")
	if known.messages {
		if got := stream(t, url, "messages 'true'"); got.err != nil || !strings.HasSuffix(got.kinds, "BMC") {
			t.Errorf("messages %s, %v", got.kinds, got.err)
		}
		return
	}
	wantError(t, stream(t, url, "messages 'true'").err, "XX000", "unrecognized pgoutput option: messages")
}

func TestFailoverIsAPropertyOfSlotsByVersion(t *testing.T) {
	pg := testkit.SharedPostgres(t)
	got := testkit.Value[bool](t, pg.URL("postgres"), `SELECT EXISTS (SELECT FROM pg_attribute
		WHERE attrelid = 'pg_replication_slots'::regclass AND attname = 'failover')`)
	if got != wordsOf(t, pg).failover {
		t.Errorf("pg_replication_slots has failover: %v", got)
	}
}
