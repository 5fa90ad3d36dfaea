// Package exit says how the process ends: the exit codes, and an error that carries one with what the operator can do.
package exit

import "errors"

// The exit codes. Scripts and supervisors rely on them.
const (
	OK         = 0
	Unexpected = 1 // a bug, or a failure of no other class
	Usage      = 2 // command line or configuration
	Found      = 3 // a check found something
	SlotLost   = 4 // slot lost, dropped or missing
	Postgres   = 5 // Postgres refused
	NATS       = 6 // NATS or a stream refused or lost data
	Drift      = 7 // drift or divergence
)

// Error ends the process with Code. Hint is what the operator can do, as a command or statement where there is one.
type Error struct {
	Code int
	Err  error
	Hint string
}

// Error is the cause alone; Hint is printed on a line of its own.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// EndsProcessWith is what Code looks for.
func (e *Error) EndsProcessWith() int { return e.Code }

// Code is the code that err ends the process with: the outermost that its chain carries, OK for nil and Unexpected for
// all else. A command that a signal ended cleanly returns nil.
func Code(err error) int {
	var coded interface{ EndsProcessWith() int } // not ExitCode: *exec.ExitError has that, for another process
	switch {
	case err == nil:
		return OK
	case errors.As(err, &coded):
		return coded.EndsProcessWith()
	default:
		return Unexpected
	}
}

// Hint is the outermost hint in err's chain, "" when there is none.
func Hint(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}
