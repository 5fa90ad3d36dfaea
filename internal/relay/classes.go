package relay

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/backfill"
	"github.com/tidegate-cdc/tidegate/internal/divergence"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// errShutdown ends a session because PostgreSQL is shutting down: it waits for nobody then.
var errShutdown = errors.New("postgres is shutting down")

// verdicts decides about the ends of sessions, one after the other.
type verdicts struct{ doubtful bool }

// of gives what failure gives, except that what may have been an accident is given one more connection: bytes which make
// no sense may have been broken on the way, and a walsender that holds no slot may have been ended while it was looked for.
func (v *verdicts) of(err error) error {
	again := v.doubtful
	v.doubtful = errors.Is(err, slot.ErrMalformed) || errors.Is(err, decoder.ErrMalformed) || errors.Is(err, slot.ErrNotHeld)
	if v.doubtful && !again {
		return nil
	}
	return failure(err)
}

// side names the peer that an error came from, for the metric and the log.
type side string

const (
	sidePostgres side = "postgres"
	sideNATS     side = "nats"
)

// reconnectOf names, for the metric, why a session ended that is begun again.
func reconnectOf(err error) (s, reason string) {
	var (
		active *slot.ActiveError
		nats   natsError
	)
	switch {
	case errors.Is(err, errShutdown):
		return string(sidePostgres), "shutdown"
	case errors.Is(err, slot.ErrSilent):
		return string(sidePostgres), "silent"
	case errors.Is(err, errFrozen):
		return string(sidePostgres), "frozen"
	case errors.Is(err, errElsewhere), errors.As(err, &active), isStolen(err):
		return string(sidePostgres), "taken"
	case errors.As(err, &nats):
		_, reason = publish.Classify(err)
		return string(sideNATS), reason
	}
	return string(sidePostgres), "lost"
}

// failure decides, in the one place where it is decided, what an error means: nil when it is transient and the session
// is to be begun again, else the error that ends the process, with its exit code and what the operator can do.
func failure(err error) error {
	var coded *exit.Error
	if errors.As(err, &coded) {
		return err
	}
	for _, judge := range []func(error) (int, string, bool){judgeRow, judgeSlot, judgeNATS, judgeParking} {
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
		poison    *poisonError
		schema    *event.SchemaError
		unordered *backfill.OrderError
	)
	switch {
	case errors.As(err, &schema):
		return exit.Drift, "set outboxes[].columns to the table's columns, or change the table back where no row was written since; " +
			"what was written before the change is published, nothing behind it is confirmed", true
	case errors.As(err, &unordered):
		return exit.Usage, unordered.Hint(), true
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
	case errors.Is(err, errShutdown), errors.Is(err, errElsewhere), errors.Is(err, errFrozen), errors.Is(err, slot.ErrSilent), errors.As(err, &active):
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
		refused *publish.RefusedError
		stolen  *publish.StolenError
		covered *publish.NotCoveredError
		parted  *divergence.PartedError
	)
	switch {
	case errors.As(err, &parted):
		return exit.Drift, parted.Hint(), true
	case errors.As(err, &covered):
		return exit.Drift, covered.Hint(), true
	case errors.As(err, &stolen): // another instance has the source now: stand by
		return transient, "", true
	case errors.As(err, &refused): // whatever its cause looks like: the client has given up
		return exit.NATS, refused.Hint(), true
	case !errors.As(err, &ours):
		return 0, "", false
	}
	if class, _ := publish.Classify(err); class == publish.Transient {
		return transient, "", true
	}
	return exit.NATS, publish.Explain(err), true
}
