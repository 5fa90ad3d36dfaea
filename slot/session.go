package slot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// System identifies the server at the other end of a Stream, as IDENTIFY_SYSTEM tells it.
type System struct {
	ID       string
	Timeline uint32
	WALEnd   decoder.LSN
	Database string
}

// Stream is one replication session: Connect, then History where it is wanted, Start, Run, Finish. Those four are
// called one after the other by one goroutine; Confirm, Wake, Progress and Close by any.
type Stream struct {
	cfg     Config
	log     *slog.Logger
	system  System
	version int
	timeout time.Duration // wal_sender_timeout, 0: none
	pid     uint32

	pg     *pgconn.PgConn // until Start
	conn   net.Conn       // from Start
	closed sync.Once

	frames *frames
	dec    *decoder.Decoder
	msg    decoder.Message
	tables map[uint32]*decoder.Relation
	pos    *Position
	begin  decoder.Begin
	open   bool // a transaction is open in the stream
	fresh  bool // messages were handed over since the last Flush
	out    []byte

	clock  timers
	gather gather
	signals
	received, flushed, walEnd, statuses atomic.Uint64
}

// Connect opens a replication connection to the slot's database and asks who the server is. It takes no slot. What
// somebody must mend is a *RefusedError; what is Transient may pass.
func Connect(ctx context.Context, c Config) (*Stream, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	pg, err := connectReplication(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Stream{cfg: c, log: c.logger(), pg: pg, pid: pg.PID(), dec: decoder.New(), tables: map[uint32]*decoder.Relation{}}
	s.frames = newFrames(walHeader + c.maxRow())
	s.wake = make(chan struct{}, 1)
	s.clock.limit = silenceLimit
	if err := s.identify(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("identify server: %w", classify(err, c))
	}
	return s, nil
}

func connectReplication(ctx context.Context, c Config) (*pgconn.PgConn, error) {
	pc, err := c.replicationConfig()
	if err != nil {
		return nil, err
	}
	pg, err := pgconn.ConnectConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open replication connection: %w", classify(err, c))
	}
	return pg, nil
}

// identify reads who the server is, and what governs the session.
func (s *Stream) identify(ctx context.Context) error {
	id, err := pglogrepl.IdentifySystem(ctx, s.pg)
	if err != nil {
		return err
	}
	s.system = System{ID: id.SystemID, Timeline: uint32(id.Timeline), WALEnd: decoder.LSN(id.XLogPos), Database: id.DBName}
	const query = `SELECT pg_catalog.current_setting('server_version_num'), setting
		FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout'`
	row, err := oneRow(ctx, s.pg, query)
	if err != nil {
		return err
	}
	if s.version, err = strconv.Atoi(row[0]); err != nil {
		return err
	}
	ms, err := strconv.Atoi(row[1])
	s.timeout = time.Duration(ms) * time.Millisecond
	return err
}

// oneRow runs a query by the simple protocol, the only one that walsenders speak.
func oneRow(ctx context.Context, pg *pgconn.PgConn, query string) ([]string, error) {
	results, err := pg.Exec(ctx, query).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, errors.New("want one row")
	}
	var row []string
	for _, v := range results[0].Rows[0] {
		row = append(row, string(v))
	}
	return row, nil
}

// System tells who the server is.
func (s *Stream) System() System { return s.system }

// PID is the walsender's process id: what active_pid shows once Start has returned.
func (s *Stream) PID() int { return int(s.pid) }

// Start takes the slot and returns its confirmed_flush_lsn, read while nobody else can move it. From then on the
// server sends; Run must follow well within wal_sender_timeout. A Handler that is Full keeps the session alive while
// its owner prepares. When another session has the slot, the error is an *ActiveError.
func (s *Stream) Start(ctx context.Context) (confirmed decoder.LSN, err error) {
	if s.pg == nil {
		return 0, errors.New("start slot: the session was started before, or is closed")
	}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if err := s.hijack(ctx); err != nil {
		return 0, fmt.Errorf("start slot: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(past) })
	err = s.startReplication()
	if !stop() {
		return 0, fmt.Errorf("start slot: %w", context.Cause(ctx))
	}
	if err != nil {
		return 0, fmt.Errorf("start slot: %w", classify(err, s.cfg))
	}
	confirmed, end, err := heldPosition(ctx, s.cfg, s.PID())
	if err != nil {
		if shown := s.lastWords(); shown != nil { // then nobody holds the slot
			err = shown
		}
		return 0, fmt.Errorf("read slot position: %w", err)
	}
	s.pos, err = NewPosition(confirmed, max(end, s.system.WALEnd))
	if err != nil {
		return 0, &LostError{Slot: s.cfg.Slot, Confirmed: confirmed, Reason: "it is ahead of the server's WAL", Err: err}
	}
	s.publish()
	return confirmed, nil
}

// hijack takes the socket over from pgconn, which must have read nothing ahead.
func (s *Stream) hijack(ctx context.Context) error {
	if err := s.pg.SyncConn(ctx); err != nil {
		return err
	}
	hijacked, err := s.pg.Hijack()
	if err != nil {
		return err
	}
	s.conn, s.pg = hijacked.Conn, nil
	s.gather = newGather(s.conn)
	if n := hijacked.Frontend.ReadBufferLen(); n != 0 {
		return fmt.Errorf("take over connection: %d bytes were read ahead", n)
	}
	return s.conn.SetDeadline(time.Time{})
}

// startReplication begins the stream at the slot's own position.
func (s *Stream) startReplication() error {
	query, err := (&pgproto3.Query{String: startCommand(s.cfg, s.version)}).Encode(nil)
	if err != nil {
		return err
	}
	if _, err := s.conn.Write(query); err != nil {
		return err
	}
	for {
		m, ok, err := s.frames.next()
		if err != nil {
			return err
		}
		if !ok {
			if _, err := s.frames.fill(s.conn); err != nil {
				return err
			}
			continue
		}
		switch m.kind {
		case 'W':
			return nil
		case 'd', 'C', 'Z':
			return fmt.Errorf("%w: type %q before the stream", ErrMalformed, m.kind)
		}
		if err := s.control(m); err != nil {
			return err
		}
	}
}

// lastWords gives the error with which the server has ended the stream already, nil when it has not.
func (s *Stream) lastWords() error {
	_ = s.conn.SetReadDeadline(time.Now().Add(time.Second))
	for {
		m, ok, err := s.frames.next()
		if err == nil && !ok {
			_, err = s.frames.fill(s.conn)
		}
		if err != nil {
			return nil //nolint:nilerr // it has said nothing
		}
		if ok && m.kind == 'E' {
			return s.control(m)
		}
	}
}

// startCommand asks for protocol 1: whole transactions, in commit order, after their commit.
func startCommand(c Config, version int) string {
	literal := strings.ReplaceAll(quoteIdent(c.Publication), "'", "''")
	options := "proto_version '1', publication_names '" + literal + "'"
	if version >= 140000 {
		options += ", messages 'true'"
	}
	return fmt.Sprintf(`START_REPLICATION SLOT %s LOGICAL 0/0 (%s)`, quoteIdent(c.Slot), options)
}

func quoteIdent(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// Close ends the session at once, without a word to the server. It may be called again, and while Run runs.
func (s *Stream) Close() error {
	var err error
	s.closed.Do(func() {
		switch {
		case s.conn != nil:
			err = s.conn.Close()
		case s.pg != nil:
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err = s.pg.Close(ctx)
		}
	})
	return err
}
