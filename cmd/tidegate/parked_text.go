package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidegate-cdc/tidegate/internal/parking"
)

// printable is text as it may stand in a line of a terminal: what is not UTF-8 or would move the cursor is escaped.
func printable(text []byte) string {
	if utf8.Valid(text) && strings.IndexFunc(string(text), func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return string(text)
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsPrint(r) && r != '\\':
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		text = text[n:]
	}
	return b.String()
}

// cut shortens text to at most n characters.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

func rowName(r parking.Row) string {
	if r.RowID == nil {
		return r.Table + ": no id"
	}
	return r.Table + ":" + printable(r.RowID)
}

func aggregateName(r parking.Row) string {
	if r.AggregateType == nil && r.AggregateID == nil {
		return "unknown"
	}
	return printable(r.AggregateType) + "/" + printable(r.AggregateID)
}

// rowJSON is a row as --json prints it, everywhere the same. What is not UTF-8 is escaped as in a terminal.
type rowJSON struct {
	ID            int64         `json:"id"`
	State         parking.State `json:"state"`
	Table         string        `json:"table"`
	RowID         *string       `json:"row_id"`
	AggregateType *string       `json:"aggregate_type"`
	AggregateID   *string       `json:"aggregate_id"`
	EventType     *string       `json:"event_type"`
	Position      string        `json:"position"`
	CommittedAt   string        `json:"committed_at"`
	Attempts      int           `json:"attempts"`
	Reason        string        `json:"reason"`
	ParkedAt      string        `json:"parked_at"`
	ChangedAt     string        `json:"changed_at"`
}

func rowsJSON(rows []parking.Row) []rowJSON {
	all := []rowJSON{}
	for _, r := range rows {
		all = append(all, toJSON(r))
	}
	return all
}

func toJSON(r parking.Row) rowJSON {
	return rowJSON{
		ID: r.ID, State: r.State, Table: r.Table, RowID: textJSON(r.RowID), AggregateType: textJSON(r.AggregateType), AggregateID: textJSON(r.AggregateID),
		EventType: textJSON(r.EventType), Position: r.Position, CommittedAt: timeText(r.CommittedAt), Attempts: r.Attempts, Reason: r.Reason,
		ParkedAt: timeText(r.ParkedAt), ChangedAt: timeText(r.ChangedAt),
	}
}

// textJSON is nil for NULL.
func textJSON(text []byte) *string {
	if text == nil {
		return nil
	}
	s := string(text)
	if !utf8.ValidString(s) {
		s = printable(text)
	}
	return &s
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
