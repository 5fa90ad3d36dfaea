package relay

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// errShutdown ends a session because PostgreSQL is shutting down: it waits for nobody then.
var errShutdown = errors.New("postgres is shutting down")

// side names the peer that an error came from, for the metric and the log.
type side string

const (
	sidePostgres side = "postgres"
	sideNATS     side = "nats"
)

// failure decides, in the one place where it is decided, what an error means: nil when it is transient and the session
// is to be begun again, else the error that ends the process, with its exit code and what the operator can do.
func failure(err error) error {
	var coded *exit.Error
	if errors.As(err, &coded) {
		return err
	}
	for _, judge := range []func(error) (int, string, bool){judgeRow, judgeSlot, judgeNATS} {
		if code, hint, ours := judge(err); ours {
			if code == transient {
				return nil
			}
			return &exit.Error{Code: code, Err: err, Hint: hint}
		}
	}
	if slot.Transient(err) {
		return nil
	}
	if hint := slot.Explain(err); hint != "" {
		return &exit.Error{Code: exit.Postgres, Err: err, Hint: hint}
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return &exit.Error{Code: exit.Postgres, Err: err}
	}
	return &exit.Error{Code: exit.Unexpected, Err: err}
}

// transient stands for no exit code: the bridge tries again.
const transient = -1

func judgeRow(err error) (int, string, bool) {
	var (
		poison *poisonError
		schema *event.SchemaError
	)
	switch {
	case errors.As(err, &schema):
		return exit.Drift, "set outboxes[].columns to the table's columns, or change the table back where no row was written since; " +
			"what was written before the change is published, nothing behind it is confirmed", true
	case errors.As(err, &poison):
		return exit.Unexpected, poison.Hint(), true
	}
	return 0, "", false
}

func judgeSlot(err error) (int, string, bool) {
	var (
		refused *slot.RefusedError
		missing *slot.MissingSlotError
		lost    *slot.LostError
		drift   *slot.DriftError
		active  *slot.ActiveError
		timeout *slot.CreateTimeoutError
	)
	switch {
	case errors.Is(err, errShutdown), errors.Is(err, slot.ErrSilent), errors.As(err, &active):
		return transient, "", true
	case errors.As(err, &refused):
		return exit.Postgres, refused.Hint(), true
	case errors.As(err, &missing):
		return exit.SlotLost, missing.Hint(), true
	case errors.As(err, &lost):
		return exit.SlotLost, lost.Hint(), true
	case errors.As(err, &drift):
		return exit.Drift, drift.Hint(), true
	case errors.As(err, &timeout):
		return exit.Postgres, slot.Explain(err), true
	}
	return 0, "", false
}

// natsError marks what the NATS side answered: publish.Classify knows what it means.
type natsError struct{ error }

func (e natsError) Unwrap() error { return e.error }

func fromNATS(err error) error {
	if err == nil {
		return nil
	}
	return natsError{err}
}

func judgeNATS(err error) (int, string, bool) {
	var (
		ours    natsError
		stolen  *publish.StolenError
		covered *publish.NotCoveredError
	)
	switch {
	case errors.As(err, &covered):
		return exit.Drift, covered.Hint(), true
	case errors.As(err, &stolen): // another instance has the source now: stand by
		return transient, "", true
	case !errors.As(err, &ours):
		return 0, "", false
	}
	if class, _ := publish.Classify(err); class == publish.Transient {
		return transient, "", true
	}
	return exit.NATS, publish.Explain(err), true
}
