package slot

import (
	"fmt"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// Position is what one session may report to its server. It guarantees of every status that
//
//   - flush never falls below an earlier flush of the session, nor below the confirmed_flush_lsn it began with;
//   - flush is never 0, and never beyond the WAL that this server is known to have;
//   - write is never below flush.
//
// It belongs to one session on one server: a new session begins with a new Position.
type Position struct {
	received decoder.LSN
	flush    decoder.LSN
	walEnd   decoder.LSN
}

// NewPosition begins a session with the slot's confirmed_flush_lsn and the server's WAL end, read in that order. A
// slot that is confirmed beyond the server's WAL has lost what lies between, or will: that is an error.
func NewPosition(confirmed, walEnd decoder.LSN) (*Position, error) {
	if confirmed == 0 {
		return nil, fmt.Errorf("begin position: the slot has no confirmed_flush_lsn")
	}
	if confirmed > walEnd {
		return nil, fmt.Errorf("begin position: the slot is confirmed at %s, beyond the server's WAL end %s", confirmed, walEnd)
	}
	return &Position{received: confirmed, flush: confirmed, walEnd: walEnd}, nil
}

// Received notes that the server sent what lies at lsn; it therefore has WAL up to there. 0 is what it gives for
// messages without a place in the WAL.
func (p *Position) Received(lsn decoder.LSN) {
	p.received = max(p.received, lsn)
	p.WALEnd(lsn)
}

// WALEnd notes that the server has WAL up to lsn.
func (p *Position) WALEnd(lsn decoder.LSN) { p.walEnd = max(p.walEnd, lsn) }

// Confirm asks to report lsn as flushed and tells whether that is news. A value below the present one is ignored.
// After an error nothing has changed, and the session must end: its caller has lost count.
func (p *Position) Confirm(lsn decoder.LSN) (advanced bool, err error) {
	switch {
	case lsn == 0:
		return false, fmt.Errorf("confirm position: 0 would be taken for everything received")
	case lsn > p.walEnd:
		return false, fmt.Errorf("confirm position %s: beyond the server's WAL end %s", lsn, p.walEnd)
	case lsn <= p.flush:
		return false, nil
	}
	p.flush = lsn
	return true, nil
}

// Status gives the three values of a standby status update. What is flushed is also applied.
func (p *Position) Status() (write, flush, apply decoder.LSN) {
	return max(p.received, p.flush), p.flush, p.flush
}

// End gives the server's WAL end as far as it is known.
func (p *Position) End() decoder.LSN { return p.walEnd }
