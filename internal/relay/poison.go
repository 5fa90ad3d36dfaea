package relay

import (
	"errors"
	"fmt"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/publish"
	"github.com/tidegate-cdc/tidegate/slot"
)

// poisonError ends the bridge on a row that cannot be published. Everything before the row is stored and confirmed.
type poisonError struct {
	row *row
	err error
}

// Error names the table, the id, the place in the WAL and the reason.
func (e *poisonError) Error() string {
	at := e.row.pub.Position
	where := "read from its table"
	if !at.IsZero() {
		where = fmt.Sprintf("row %d of the transaction committed at %s", at.Index+1, at.Commit)
	}
	what := e.err.Error()
	if fromBroker(e.err) && e.row.event.Table != nil {
		what = fmt.Sprintf("publish row %.128q of %s: %s", e.row.event.ID, e.row.event.Table.Name, what)
	}
	return fmt.Sprintf("%s (%s)", what, where)
}

// fromBroker reports whether err is about a message, as the broker or its client sees it: then it does not name the row.
func fromBroker(err error) bool {
	class, _ := publish.Classify(err)
	return class == publish.Poison
}

func (e *poisonError) Unwrap() error { return e.err }

// Hint says what lets the row pass. A row that came from the WAL is there for good: changing or deleting it in its
// table does not help. One that was read from its table is read again.
func (e *poisonError) Hint() string {
	stopped := "; park.store is off, so the bridge stops at the first row that cannot be published; everything before it is published"
	if e.row.pub.Position.IsZero() {
		stopped += ". The row may also be corrected or deleted in its table: the tables are read again at the next start"
	} else {
		stopped += " and confirmed, and changing the row in its table does not change what the WAL holds"
	}
	var (
		large *slot.TooLargeError
		limit *publish.LimitError
		row   *event.PoisonError
	)
	switch {
	case errors.As(e.err, &large):
		return large.Hint() + stopped
	case errors.As(e.err, &limit) && limit.Of != "":
		return "raise the limit above " + fmt.Sprint(limit.Size) + " bytes and start again" + stopped
	case fromBroker(e.err) && !errors.As(e.err, &limit):
		return "raise max_msg_size of the stream or max_payload of the NATS server, and start again" + stopped
	case errors.As(e.err, &row) && row.Column != "":
		return "map another column in outboxes[].columns, or none where the key allows that (\"\"), and start again" + stopped
	}
	return "change outboxes[].subject or outboxes[].columns so that the row can be published (a long id: {partition:64} in its place), and start again" + stopped
}
