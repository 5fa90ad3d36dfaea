package slot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// finishTimeout bounds the farewell. What the server still sends is read meanwhile: a socket closed with unread bytes
// would be reset, and the last status lost with it.
const finishTimeout = 2 * time.Second

// Finish reports what is confirmed for the last time, ends the stream in order, and closes the connection, within two
// seconds or until ctx is done. It is called when Run has returned; it returns nil when the server has taken leave, so
// that the last status is known to have arrived. When it returns, the connection is closed in any case.
func (s *Stream) Finish(ctx context.Context) error {
	defer func() { _ = s.Close() }()
	if s.pos == nil || s.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.farewell(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("finish replication: %w", err)
	}
	return nil
}

func (s *Stream) farewell() error {
	if err := s.status(time.Now(), false); err != nil {
		return err
	}
	s.publish()
	if _, err := s.conn.Write([]byte{'c', 0, 0, 0, 4}); err != nil {
		return err
	}
	for {
		m, ok, err := s.frames.next()
		if err != nil {
			return err
		}
		if !ok {
			_ = s.conn.SetReadDeadline(time.Time{}) // a Confirm that comes late may have set one
			if _, err := s.frames.fill(s.conn); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
			continue
		}
		switch m.kind {
		case 'E':
			return s.control(m)
		case 'Z':
			_, err := s.conn.Write([]byte{'X', 0, 0, 0, 4})
			return err
		}
	}
}
