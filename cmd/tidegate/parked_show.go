package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/parking"
)

// shownValue is how many bytes of a value show prints without --full.
const shownValue = 240

func newParkedShowCmd(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one row: why it is put aside, what is in it, and what can be done",
		Long: "Shows one row, its columns and values, the reason and what can be done. ID is its number in the list, or schema.table:id with\n" +
			"the outbox id. Values are cut at " + fmt.Sprint(shownValue) + " bytes unless --full is given; --json prints them whole.",
		Example: "  tidegate parked show 17\n" +
			"  tidegate parked show public.outbox:42 --full",
		Args: oneID,
	}
	full := cmd.Flags().Bool("full", false, "print values whole")
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.atDesk(cmd, func(ctx context.Context, o *office) error {
			row, err := o.desk.Find(ctx, args[0])
			if err != nil {
				return err
			}
			c, err := o.look(ctx, row)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), c.json())
			}
			shown := shownValue
			if *full {
				shown = 0
			}
			return c.print(cmd.OutOrStdout(), shown, time.Now())
		})
	}
	return cmd
}

// closeUp is a row with what lies around it.
type closeUp struct {
	*parking.Row
	behind  int64 // the parked row before it
	waiting int   // held rows behind it
	types   []string
}

func (o *office) look(ctx context.Context, row *parking.Row) (c closeUp, err error) {
	c.Row = row
	if c.behind, err = o.desk.Behind(ctx, row); err != nil {
		return c, err
	}
	if c.waiting, err = o.desk.HeldBehind(ctx, row); err != nil {
		return c, err
	}
	for _, column := range row.Columns {
		name := fmt.Sprintf("type %d", column.TypeOID)
		if t, known := o.conn.TypeMap().TypeForOID(column.TypeOID); known {
			name = t.Name
		}
		c.types = append(c.types, name)
	}
	return c, nil
}

// printHead says which row it is, where it stands and why it is put aside.
func (c closeUp) printHead(w io.Writer, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "parked row\t%d\n", c.ID)
	fmt.Fprintf(t, "state\t%s\n", c.State)
	fmt.Fprintf(t, "row\t%s\n", rowName(*c.Row))
	fmt.Fprintf(t, "aggregate\t%s\n", aggregateName(*c.Row))
	if c.EventType != nil {
		fmt.Fprintf(t, "event type\t%s\n", printable(c.EventType))
	}
	if c.Ord < 0 {
		fmt.Fprintf(t, "committed\tbefore the first start; read from its table\n")
	} else {
		fmt.Fprintf(t, "committed\t%s, position %s\n", timeText(c.CommittedAt), c.Position)
	}
	fmt.Fprintf(t, "put aside\t%s, %s ago; attempts: %d\n", timeText(c.ParkedAt), age(now.Sub(c.ParkedAt)), c.Attempts)
	if c.behind != 0 {
		fmt.Fprintf(t, "waits behind\tparked row %d\n", c.behind)
	}
	if c.waiting > 0 {
		fmt.Fprintf(t, "holds up\t%s of its aggregate\n", count(c.waiting, "later row", "later rows"))
	}
	fmt.Fprintf(t, "reason\t%s\n", printable([]byte(c.Reason)))
	return t.Flush()
}

// print shows at most shown bytes of each value, all for 0.
func (c closeUp) print(w io.Writer, shown int, now time.Time) error {
	if err := c.printHead(w, now); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if c.ByReference() {
		fmt.Fprintln(w, "Its values were not kept: the row was larger than publish.max_row. They are in its table, where it still has the row.")
	} else {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "COLUMN\tTYPE\tVALUE")
		for i, column := range c.Columns {
			fmt.Fprintf(t, "%s\t%s\t%s\n", printable([]byte(column.Name)), c.types[i], valueText(c.Values[i], shown))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\nwhat to do: %s\n", c.whatToDo())
	return err
}

func (c closeUp) whatToDo() string {
	switch {
	case c.State == parking.StateParked:
		return fmt.Sprintf("mend what the reason names, then tidegate parked retry %[1]d; or give it up: tidegate parked discard %[1]d --yes", c.ID)
	case (c.State == parking.StateHeld || c.State == parking.StateReleasing) && c.behind != 0:
		return fmt.Sprintf("look at what it waits for: tidegate parked show %d; this row follows by itself", c.behind)
	case c.State == parking.StateRetry && c.behind != 0:
		return fmt.Sprintf("with park.order: hold it is tried once parked row %[1]d is resolved: tidegate parked show %[1]d", c.behind)
	case c.State == parking.StateDiscarded:
		return "nothing: it was given up, and this is the record"
	}
	return "nothing: the running bridge takes it up within seconds; when it does not, look at its log and /readyz"
}

// valueText is a value as it may stand in a line.
func valueText(v decoder.Value, shown int) string {
	switch {
	case v.Kind == decoder.ValueNull:
		return "NULL"
	case len(v.Data) == 0:
		return `""`
	case shown == 0 || len(v.Data) <= shown:
		return printable(v.Data)
	}
	piece := v.Data[:shown]
	for cutOff := 0; cutOff < utf8.UTFMax && !utf8.Valid(piece); cutOff++ { // a character in the middle
		piece = piece[:len(piece)-1]
	}
	if !utf8.Valid(piece) {
		piece = v.Data[:shown]
	}
	return fmt.Sprintf("%s… (%d bytes)", printable(piece), len(v.Data))
}

type columnJSON struct {
	Name   string  `json:"name"`
	Type   string  `json:"type"`
	Value  *string `json:"value"`            // null for NULL, and for what is not UTF-8
	Base64 string  `json:"base64,omitempty"` // what is not UTF-8
}

func (c closeUp) json() any {
	columns := []columnJSON{}
	for i, column := range c.Columns {
		j := columnJSON{Name: column.Name, Type: c.types[i]}
		if v := c.Values[i]; v.Kind != decoder.ValueNull && utf8.Valid(v.Data) {
			text := string(v.Data)
			j.Value = &text
		} else if v.Kind != decoder.ValueNull {
			j.Base64 = base64.StdEncoding.EncodeToString(v.Data)
		}
		columns = append(columns, j)
	}
	return struct {
		rowJSON
		ByReference bool         `json:"by_reference"`
		WaitsBehind int64        `json:"waits_behind"`
		HoldsUp     int          `json:"holds_up"`
		Columns     []columnJSON `json:"columns"`
		WhatToDo    string       `json:"what_to_do"`
	}{toJSON(*c.Row), c.ByReference(), c.behind, c.waiting, columns, c.whatToDo()}
}
