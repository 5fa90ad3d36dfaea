package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/parking"
)

func newParkedListCmd(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the rows that are put aside",
		Long: "Lists the rows in the order in which they would be published. States: parked (cannot be published, waits for you), held (waits\n" +
			"behind a parked row of its aggregate), retry and discard (what you asked for, not done yet), releasing (being published).\n" +
			"Rows that were given up, state discarded, are listed with --state discarded alone.",
		Example: "  tidegate parked list\n" +
			"  tidegate parked list --state parked --limit 0\n" +
			"  tidegate parked list --aggregate order/1001 --json",
		Args: noArgs,
	}
	states := cmd.Flags().StringSlice("state", nil, "only rows in this state; may be given more than once (default all but discarded)")
	f := parking.Filter{}
	cmd.Flags().StringVar(&f.Aggregate, "aggregate", "", "only rows of this aggregate, as type/id")
	cmd.Flags().StringVar(&f.Table, "table", "", "only rows of this table, as schema.table")
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "rows at most; 0 for all")
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if f.States, err = statesOf(*states); err != nil {
			return err
		}
		if f.Limit < 0 {
			return &exit.Error{Code: exit.Usage, Err: fmt.Errorf("--limit %d is negative", f.Limit), Hint: "write 0 for all"}
		}
		return s.atDesk(cmd, func(ctx context.Context, o *office) error {
			rows, more, err := o.desk.List(ctx, f)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"rows": rowsJSON(rows), "more": more})
			}
			return printParked(cmd.OutOrStdout(), rows, more, time.Now())
		})
	}
	return cmd
}

// statesOf reads the states to list, all that are not resolved when none is given.
func statesOf(given []string) ([]parking.State, error) {
	if len(given) == 0 {
		return slices.DeleteFunc(parking.States(), func(s parking.State) bool { return s == parking.StateDiscarded }), nil
	}
	var states []parking.State
	for _, name := range given {
		if !slices.Contains(parking.States(), parking.State(name)) {
			return nil, &exit.Error{
				Code: exit.Usage, Err: fmt.Errorf("--state %q is none", name),
				Hint: "one of " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(parking.States())), ", "), "[]"),
			}
		}
		states = append(states, parking.State(name))
	}
	return states, nil
}

func printParked(w io.Writer, rows []parking.Row, more int, now time.Time) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no such rows")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATE\tAGE\tROW\tAGGREGATE\tATTEMPTS\tREASON")
	for _, r := range rows {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%s\n", r.ID, r.State, age(now.Sub(r.ParkedAt)), cut(rowName(r), 48), cut(aggregateName(r), 32), r.Attempts, cut(printable([]byte(r.Reason)), 72))
	}
	if more > 0 {
		fmt.Fprintf(t, "and %d more: --limit 0 lists all\n", more)
	}
	return t.Flush()
}

// age is a time span in its greatest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
