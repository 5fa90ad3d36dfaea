// Command capture records what pgoutput sends for session.sql, for the tests of package decoder.
//
//	initdb -D $dir -U postgres && pg_ctl -D $dir -o '-p 54399 -c wal_level=logical' start
//	go run ./decoder/testdata/capture 'postgres://postgres@localhost:54399/postgres' > decoder/testdata/session.txt
//
// The database must be empty and its user a superuser. session.txt was made with PostgreSQL 15. It holds one message a
// line: WALStart, then the message in hexadecimal.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const folder = "decoder/testdata"

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./decoder/testdata/capture POSTGRES_URL > decoder/testdata/session.txt")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := capture(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func capture(ctx context.Context, url string) error {
	sql, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer sql.Close(ctx)
	stream, err := connectStream(ctx, url)
	if err != nil {
		return err
	}
	defer stream.Close(ctx)

	if err := run(ctx, sql, "setup.sql"); err != nil {
		return err
	}
	temporary := pglogrepl.CreateReplicationSlotOptions{Temporary: true}
	if _, err := pglogrepl.CreateReplicationSlot(ctx, stream, "capture", "pgoutput", temporary); err != nil {
		return err
	}
	if err := run(ctx, sql, "session.sql"); err != nil {
		return err
	}
	identity, err := pglogrepl.IdentifySystem(ctx, stream)
	if err != nil {
		return err
	}
	return record(ctx, stream, identity.XLogPos, options(stream))
}

func connectStream(ctx context.Context, url string) (*pgconn.PgConn, error) {
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["replication"] = "database"
	config.RuntimeParams["datestyle"] = "ISO"
	config.RuntimeParams["timezone"] = "UTC"
	return pgconn.ConnectConfig(ctx, config)
}

// run sends every paragraph of a file as one query.
func run(ctx context.Context, conn *pgconn.PgConn, file string) error {
	text, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		return err
	}
	for _, paragraph := range strings.Split(string(text), "\n\n") {
		if _, err := conn.Exec(ctx, paragraph).ReadAll(); err != nil {
			return fmt.Errorf("run %q of %s: %w", paragraph, file, err)
		}
	}
	return nil
}

// options are those that the bridge asks for; PostgreSQL 13 has no logical messages.
func options(conn *pgconn.PgConn) []string {
	all := []string{"proto_version '1'", "publication_names 'capture'"}
	if strings.HasPrefix(conn.ParameterStatus("server_version"), "13.") {
		return all
	}
	return append(all, "messages 'true'")
}

// record prints the messages up to the end of the log.
func record(ctx context.Context, conn *pgconn.PgConn, end pglogrepl.LSN, options []string) error {
	err := pglogrepl.StartReplication(ctx, conn, "capture", 0, pglogrepl.StartReplicationOptions{PluginArgs: options})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for {
		message, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return err
		}
		data, ok := message.(*pgproto3.CopyData)
		if !ok {
			return fmt.Errorf("receive message: unexpected %T", message)
		}
		switch data.Data[0] {
		case pglogrepl.PrimaryKeepaliveMessageByteID:
			keepalive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data.Data[1:])
			if err != nil {
				return err
			}
			if keepalive.ServerWALEnd >= end {
				return out.Flush()
			}
		case pglogrepl.XLogDataByteID:
			wal, err := pglogrepl.ParseXLogData(data.Data[1:])
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%v %x\n", wal.WALStart, wal.WALData)
		}
	}
}
