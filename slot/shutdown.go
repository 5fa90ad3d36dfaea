package slot

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	watchPing    = 10 * time.Second // how long a dead connection may go unnoticed
	watchTimeout = 5 * time.Second
)

// Watch calls onShutdown as soon as PostgreSQL begins to shut down: a walsender is not told, and waits until all that
// it sent is confirmed. It holds an ordinary connection, and takes 57P01 on it, or 57P03 where it is opened again, for
// the sign; a connection that is lost while the server lives is opened again without a word. onShutdown is called
// once until the server takes connections again, and must not block for long. Watch returns when ctx is done, or with
// an error that is not transient.
func Watch(ctx context.Context, c Config, onShutdown func()) error {
	var (
		pause backoff
		told  bool
	)
	for {
		conn, err := ConnectSQL(ctx, c, "watch")
		if err == nil {
			pause.reset()
			told = false
			err = watchOne(ctx, conn, watchPing, watchTimeout)
			closeSQL(conn)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !Transient(err) {
			return err
		}
		if beginsToStop(err, told) {
			told = true
			onShutdown()
		}
		if err := pause.sleep(ctx); err != nil {
			return err
		}
	}
}

// watchOne waits on a connection until it ends, and says how. A server that is gone without a word is noticed by a
// ping that gets no answer.
func watchOne(ctx context.Context, conn *pgx.Conn, ping, timeout time.Duration) error {
	for {
		wait, cancel := context.WithTimeout(ctx, ping)
		err := conn.PgConn().WaitForNotification(wait)
		quiet := wait.Err() != nil && ctx.Err() == nil && !conn.IsClosed()
		cancel()
		if err != nil && !quiet {
			return err
		}
		ask, cancel := context.WithTimeout(ctx, timeout)
		err = conn.Ping(ask)
		cancel()
		if err != nil {
			return err
		}
	}
}

// Codes of a server that stops: 57P01 ends a connection that it had taken, 57P03 refuses one, also while it starts.
const (
	adminShutdown    = "57P01"
	cannotConnectNow = "57P03"
)

// beginsToStop tells a shutdown from the one that was told already. A server that ends a connection had taken it: it
// has been up since, even where that connection was not ready for use yet.
func beginsToStop(err error, told bool) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && (pe.Code == adminShutdown || pe.Code == cannotConnectNow && !told)
}

// shuttingDown recognises a server that stops, or is not there for ordinary clients yet.
func shuttingDown(err error) bool { return beginsToStop(err, false) }
