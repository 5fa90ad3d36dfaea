package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/parking"
)

// What became of a wish.
const (
	published  = "published"
	givenUp    = "given up"
	cameBack   = "parked again"
	waitsInRow = "waits"   // behind another parked row
	notYet     = "not yet" // the bridge runs and has not done it
	noted      = "noted"   // nobody was waited for
	followStep = 200 * time.Millisecond
)

// fate is what became of the wish for one row.
type fate struct {
	ID      int64  `json:"id"`
	Row     string `json:"row"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

// follow waits until the bridge has dealt with rows, where one runs, and tells what became of them.
func (e *errand) follow(ctx context.Context, cmd *cobra.Command, o *office, rows []parking.Row) error {
	fates := make([]fate, len(rows))
	for i, r := range rows {
		fates[i] = fate{ID: r.ID, Row: rowName(r), Outcome: noted}
	}
	why, err := e.whyNotWait(ctx, o)
	if err == nil && why == "" {
		err = e.holdBack(ctx, o, rows, fates)
	}
	if err == nil && why == "" {
		why, err = e.wait(ctx, cmd, o, fates)
	}
	if err != nil {
		return fmt.Errorf("the wish is noted, but not what became of it: %w", err)
	}
	if err := e.print(cmd.OutOrStdout(), fates, why); err != nil {
		return err
	}
	return e.judge(fates)
}

// whyNotWait says why nobody would do it soon, "" when a bridge runs that is to be waited for.
func (e *errand) whyNotWait(ctx context.Context, o *office) (string, error) {
	if o.cfg.Park.Store == "off" {
		return "park.store is off in this configuration: a bridge that runs with it does not look at parked rows", nil
	}
	pid, err := holder(ctx, o)
	switch {
	case err != nil:
		return "", err
	case pid == 0:
		return fmt.Sprintf("no bridge holds the slot %s: it will be applied when the bridge runs", o.cfg.Slot.Name), nil
	case e.noWait:
		return fmt.Sprintf("the bridge (pid %d) will apply it", pid), nil
	}
	return "", nil
}

// holder is the process that reads the slot, 0 when nobody does.
func holder(ctx context.Context, o *office) (pid int, err error) {
	const query = "SELECT coalesce(active_pid, 0) FROM pg_replication_slots WHERE slot_name = $1"
	err = o.conn.QueryRow(ctx, query, o.cfg.Slot.Name).Scan(&pid)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return pid, err
}

// holdBack marks the rows that the bridge will not try yet: with park.order: hold a parked row is before them.
func (e *errand) holdBack(ctx context.Context, o *office, rows []parking.Row, fates []fate) error {
	if e.state != parking.StateRetry || o.cfg.Park.Order != "hold" {
		return nil
	}
	for i := range rows {
		behind, err := o.desk.Behind(ctx, &rows[i])
		if err != nil {
			return err
		}
		if behind != 0 {
			fates[i].Outcome, fates[i].Detail = waitsInRow, fmt.Sprintf("behind parked row %d of its aggregate: it is tried once that one is resolved", behind)
		}
	}
	return nil
}

// wait looks at the rows until each has its fate or the time is up.
func (e *errand) wait(ctx context.Context, cmd *cobra.Command, o *office, fates []fate) (why string, err error) {
	var open []int64
	for i := range fates {
		if fates[i].Outcome == noted {
			fates[i].Outcome = notYet
			open = append(open, fates[i].ID)
		}
	}
	progress := newProgress(cmd.ErrOrStderr(), len(open), *e.asJSON)
	defer progress.end()
	deadline := time.NewTimer(e.timeout)
	defer deadline.Stop()
	tick := time.NewTicker(followStep)
	defer tick.Stop()
	for len(open) > 0 {
		now, err := o.desk.Watch(ctx, open)
		if err != nil {
			return "", err
		}
		if open = settle(fates, now); len(open) == 0 {
			break
		}
		progress.show(len(open))
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-deadline.C:
			return e.late(ctx, o)
		case <-tick.C:
		}
	}
	return "", nil
}

// late says why it was not done in time.
func (e *errand) late(ctx context.Context, o *office) (string, error) {
	pid, err := holder(ctx, o)
	if err != nil {
		return "", err
	}
	if pid == 0 {
		return fmt.Sprintf("the bridge has left the slot %s meanwhile: it will be applied when one runs", o.cfg.Slot.Name), nil
	}
	return fmt.Sprintf("the bridge (pid %d) has not done it in %v; the wish stays, and it will be applied", pid, e.timeout), nil
}

// settle notes what became of rows, and gives the numbers of those that are still open.
func settle(fates []fate, now map[int64]parking.Row) (open []int64) {
	for i := range fates {
		f := &fates[i]
		if f.Outcome != notYet {
			continue
		}
		switch row, there := now[f.ID]; {
		case !there:
			f.Outcome = published
		case row.State == parking.StateDiscarded:
			f.Outcome = givenUp
		case row.State == parking.StateParked || row.State == parking.StateHeld:
			f.Outcome, f.Detail = cameBack, row.Reason
		default:
			f.Detail = "state " + string(row.State)
			open = append(open, f.ID)
			continue
		}
		if f.Outcome != cameBack {
			f.Detail = ""
		}
	}
	return open
}

func (e *errand) print(w io.Writer, fates []fate, why string) error {
	if *e.asJSON {
		return printJSON(w, map[string]any{"wish": e.state, "rows": fates, "note": why})
	}
	for _, f := range fates {
		text := f.Outcome
		if text == noted {
			text = map[parking.State]string{parking.StateRetry: "to be tried again", parking.StateDiscard: "to be given up"}[e.state]
		}
		if f.Detail != "" {
			text += ": " + printable([]byte(f.Detail))
		}
		fmt.Fprintf(w, "row %d (%s): %s\n", f.ID, f.Row, text)
	}
	if why != "" {
		fmt.Fprintln(w, why)
	}
	return nil
}

// judge gives the error that carries the exit code, nil when what could be done is done.
func (e *errand) judge(fates []fate) error {
	var back, late []fate
	for _, f := range fates {
		switch f.Outcome {
		case cameBack:
			back = append(back, f)
		case notYet:
			late = append(late, f)
		}
	}
	switch {
	case len(back) > 0:
		return &exit.Error{
			Code: exit.Found, Err: fmt.Errorf("%s: %d of %s cannot be published", e.state, len(back), count(len(fates), "row", "rows")),
			Hint: fmt.Sprintf("mend what the reason names and try again, or give it up; tidegate parked show %d", back[0].ID),
		}
	case len(late) > 0:
		return &exit.Error{
			Code: exit.Found, Err: fmt.Errorf("%s: %d of %s not done in %v", e.state, len(late), count(len(fates), "row", "rows"), e.timeout),
			Hint: fmt.Sprintf("tidegate parked show %d says later what became of it; the bridge's log and /readyz say what keeps it", late[0].ID),
		}
	}
	return nil
}

// progress tells on a terminal how far it is, and elsewhere once what is waited for.
type progress struct {
	w       io.Writer
	all     int
	started time.Time
	line    bool // a terminal: one line, written again and again
	told    bool
}

func newProgress(w io.Writer, all int, quiet bool) *progress {
	if quiet {
		w = io.Discard
	}
	return &progress{w: w, all: all, started: time.Now(), line: isTerminal(w)}
}

func (p *progress) show(open int) {
	switch {
	case p.line:
		fmt.Fprintf(p.w, "\r\x1b[Kwaiting for the bridge: %d of %d done, %s", p.all-open, p.all, age(time.Since(p.started)))
	case !p.told:
		fmt.Fprintf(p.w, "waiting for the bridge: %s\n", count(p.all, "row", "rows"))
	}
	p.told = true
}

func (p *progress) end() {
	if p.line && p.told {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
