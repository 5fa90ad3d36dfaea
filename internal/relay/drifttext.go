package relay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/slot"
)

// found is how the process ends when rows may have been left out of the stream between two moments. Other errors it
// gives as they are.
func (d *drift) found(err error, good, now moment) error {
	var (
		drifted *slot.DriftError
		refused *slot.RefusedError
	)
	tables := d.b.slot.Tables
	switch {
	case good == moment{}: // as it was found: nothing is known of a time before
		return err
	case errors.As(err, &drifted):
		if drifted.Tables != nil {
			tables = drifted.Tables
		}
	case errors.As(err, &refused): // a table that was fit is not any more
	default:
		return err
	}
	return &exit.Error{
		Code: exit.Drift,
		Err: fmt.Errorf("%w: rows of %s committed between %s and %s may be missing in the stream; nothing behind %s was confirmed",
			err, strings.Join(tables, ", "), good, untilNow(now), good.lsn),
		Hint: slot.Explain(err) + "; then start again. " + d.rowsOfWindow(tables, good.at),
	}
}

func untilNow(m moment) string {
	if m.lsn == 0 {
		return m.at.UTC().Format(time.RFC3339)
	}
	return m.String()
}

// beganEarlier is how much before its commit a transaction is expected to have begun: created_at is most often the
// transaction's beginning.
const beganEarlier = time.Minute

// rowsOfWindow says how the rows are had that the stream may lack. It is the one place that does.
func (d *drift) rowsOfWindow(tables []string, from time.Time) string {
	var queries []string
	for _, o := range d.b.outboxes {
		if !slices.Contains(tables, o.table.Name) {
			continue
		}
		query := "SELECT * FROM " + pgx.Identifier(strings.SplitN(o.table.Name, ".", 2)).Sanitize()
		if createdAt := d.created[o.table.Name]; createdAt != "" && !from.IsZero() {
			query += fmt.Sprintf(" WHERE %s >= '%s'", pgx.Identifier{createdAt}.Sanitize(), from.Add(-beganEarlier).UTC().Format(time.RFC3339))
		}
		queries = append(queries, query+fmt.Sprintf(" (the stream has those whose Nats-Msg-Id is %s/%s/<%s>)", d.b.cfg.Source.Name, o.table.Name, columnsOf(o.table).ID))
	}
	return "The rows of that time, and those committed until it is mended, are in the table alone, the stream will not bring them: " +
		strings.Join(queries, "; ") + ". A transaction that lasts for longer than a minute has begun earlier"
}

// columnsOf gives the configured names of a table's columns, or the default ones.
func columnsOf(t *event.Table) event.Columns {
	if t.Columns == (event.Columns{}) {
		return event.DefaultColumns(t.Kind)
	}
	return t.Columns
}

func isDrift(err error) bool {
	var drifted *slot.DriftError
	return errors.As(err, &drifted) || isCoded(err) && exit.Code(err) == exit.Drift
}

func isCoded(err error) bool {
	var coded *exit.Error
	return errors.As(err, &coded)
}
