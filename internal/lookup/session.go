package lookup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	connectTimeout = 10 * time.Second // also for a question to the catalog
	closeTimeout   = time.Second
	// answerTimeout is a little above the server's own statement_timeout: it is for a server that says nothing more.
	answerTimeout = 65 * time.Second
)

// settings make answers independent of what the role, the database or the server's files say: row security errors
// rather than hides rows, versions read like those of the replication stream, and a lock or a statement that takes too
// long becomes a failure to be tried again. JIT costs more than it can give here.
const settings = `SET row_security = off; SET DateStyle = 'ISO'; SET TimeZone = 'UTC'; SET jit = off;
SET client_min_messages = 'error'; SET lock_timeout = '5s'; SET statement_timeout = '60s'`

// session is one connection with what was learnt over it. It is given up after any error but a refused batch.
type session struct {
	conn      *pgconn.PgConn
	log       *slog.Logger
	catalogs  map[*Table]catalog
	prepared  map[*Table]string
	snapshot  snapshot
	keys      []byte
	invisible []*Row // of the round: answered by a snapshot that did not see their transaction
}

func connect(ctx context.Context, config *pgconn.Config, log *slog.Logger) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, classify("connect", err)
	}
	s := &session{conn: conn, log: log, catalogs: make(map[*Table]catalog), prepared: make(map[*Table]string)}
	if err := s.prepare(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) prepare(ctx context.Context) error {
	if err := s.conn.Exec(ctx, settings).Close(); err != nil {
		return classify("prepare the connection", err)
	}
	standby, err := s.one(ctx, "SELECT pg_catalog.pg_is_in_recovery()::text")
	if err != nil {
		return err
	}
	if standby == "true" {
		return errStandby
	}
	return nil
}

func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = s.conn.Close(ctx) // nothing was written over it
}

// answer fills rows of one table. A batch that the server refuses because of what is in it is halved until the rows
// that it cannot answer stand alone.
func (s *session) answer(ctx context.Context, rows []*Row) error {
	t := rows[0].Table
	name, err := s.statement(ctx, t)
	if err != nil {
		return err
	}
	before := len(s.invisible)
	err = s.ask(ctx, rows, func(ctx context.Context, keys [][]byte) *pgconn.ResultReader {
		return s.conn.ExecPrepared(ctx, name, keys, binaryFormat, binaryFormat)
	})
	if !isOdd(err) {
		return err
	}
	s.invisible = s.invisible[:before]
	if len(rows) == 1 {
		return s.answerOdd(ctx, rows[0], err)
	}
	half := len(rows) / 2
	if err := s.answer(ctx, rows[:half]); err != nil {
		return err
	}
	return s.answer(ctx, rows[half:])
}

// answerOdd fills a row that the server refuses: a key that is no key of that table finds nothing, a geometry that
// PostGIS cannot work on leaves its version and SRID.
func (s *session) answerOdd(ctx context.Context, r *Row, cause error) error {
	err := s.ask(ctx, []*Row{r}, func(ctx context.Context, keys [][]byte) *pgconn.ResultReader {
		return s.conn.ExecParams(ctx, r.Table.plainSQL(s.catalogs[r.Table]), keys, textArray, binaryFormat, binaryFormat)
	})
	if err == nil {
		giveUp(r.Feature, cause)
	} else if isOdd(err) {
		giveUpKey(r.Feature, err)
		err = nil
	}
	s.log.Warn("feature refused by the server", "table", r.Table.Table, "sqlstate", sqlState(cause))
	return err
}

var (
	binaryFormat = []int16{1}
	textArray    = []uint32{1009}
)

// ask runs one statement and fills rows as the answers arrive.
func (s *session) ask(ctx context.Context, rows []*Row, exec func(context.Context, [][]byte) *pgconn.ResultReader) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	s.keys = appendKeys(s.keys[:0], rows)
	result := exec(ctx, [][]byte{s.keys})
	var bad error
	for result.NextRow() && bad == nil {
		bad = s.read(rows, result.Values())
	}
	if _, err := result.Close(); err != nil {
		return classify("look up "+rows[0].Table.Table, err)
	}
	if bad != nil {
		return fmt.Errorf("look up %s: %w", rows[0].Table.Table, bad)
	}
	for _, r := range rows {
		if r.XID != 0 && !s.snapshot.sees(r.XID) {
			s.invisible = append(s.invisible, r)
		}
	}
	return nil
}

func (s *session) read(rows []*Row, values [][]byte) error {
	if len(values) != columns || len(values[colOrdinal]) != 4 {
		return errors.New("the answer has another shape than the question")
	}
	i := int(binary.BigEndian.Uint32(values[colOrdinal])) - 1
	if i < 0 || i >= len(rows) {
		return fmt.Errorf("the answer has row %d of %d", i+1, len(rows))
	}
	if values[colSnapshot] != nil {
		if err := s.snapshot.parse(string(values[colSnapshot])); err != nil {
			return err
		}
	}
	fill(rows[i], values)
	return nil
}

// statement gives the name of the prepared statement for t.
func (s *session) statement(ctx context.Context, t *Table) (string, error) {
	if name, ok := s.prepared[t]; ok {
		return name, nil
	}
	c, err := s.describe(ctx, t)
	if err != nil {
		return "", err
	}
	name := "lookup_" + strconv.Itoa(len(s.prepared))
	if _, err := s.conn.Prepare(ctx, name, t.sql(c), textArray); err != nil {
		return "", classify("look up "+t.Table, err)
	}
	s.catalogs[t], s.prepared[t] = c, name
	return name, nil
}

// one runs a statement that gives one row of one text; "" stands for no row and for null.
func (s *session) one(ctx context.Context, sql string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	params := make([][]byte, len(args))
	for i, a := range args {
		params[i] = []byte(a)
	}
	result := s.conn.ExecParams(ctx, sql, params, nil, nil, nil).Read()
	if result.Err != nil {
		return "", classify("ask the catalog", result.Err)
	}
	if len(result.Rows) == 0 {
		return "", nil
	}
	return string(result.Rows[0][0]), nil
}

// appendKeys writes the ids as a text[] in binary form.
func appendKeys(dst []byte, rows []*Row) []byte {
	const textOID = 25
	for _, v := range [...]uint32{1, 0, textOID, uint32(len(rows)), 1} { // dimensions, no nulls, type, length, lower bound
		dst = binary.BigEndian.AppendUint32(dst, v)
	}
	for _, r := range rows {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.ID)))
		dst = append(dst, r.ID...)
	}
	return dst
}
