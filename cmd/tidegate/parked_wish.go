package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/parking"
)

// errand is a wish on its way to the bridge: the flags of retry and discard, and how they tell what becomes of it.
type errand struct {
	state   parking.State // the wish
	noWait  bool
	timeout time.Duration
	asJSON  *bool
}

func (e *errand) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&e.noWait, "no-wait", false, "do not wait until the bridge has done it")
	cmd.Flags().DurationVar(&e.timeout, "timeout", 30*time.Second, "how long to wait for the bridge")
	e.asJSON = addJSON(cmd)
}

const waitHelp = "\nThe running bridge does it, and is waited for. Where no bridge holds the slot, it is done when the next one does. Exit code 3:\n"

func newParkedRetryCmd(s *settings) *cobra.Command {
	e := &errand{state: parking.StateRetry}
	cmd := &cobra.Command{
		Use:   "retry ID | --aggregate TYPE/ID",
		Short: "Try a parked row again",
		Long: "Has a parked row published, or every parked row of an aggregate; what is held behind them follows by itself, in order. ID is a\n" +
			"number in the list, or schema.table:id with the outbox id. Mend first what the reason names: a limit, a mapping." + waitHelp +
			"the row came back because it still cannot be published, the bridge did not do it in time, or the row's state does not allow it.",
		Example: "  tidegate parked retry 17\n" +
			"  tidegate parked retry public.outbox:42 --timeout 2m\n" +
			"  tidegate parked retry --aggregate order/1001",
	}
	aggregate := cmd.Flags().String("aggregate", "", "every parked row of this aggregate, as type/id")
	e.addFlags(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("aggregate") {
			return noArgs(cmd, args)
		}
		return oneID(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.atDesk(cmd, func(ctx context.Context, o *office) error {
			if len(args) == 0 {
				rows, err := o.desk.RetryAggregate(ctx, *aggregate)
				if err != nil {
					return err
				}
				return e.follow(ctx, cmd, o, rows)
			}
			row, err := o.desk.Retry(ctx, args[0])
			if err != nil {
				return err
			}
			return e.follow(ctx, cmd, o, []parking.Row{*row})
		})
	}
	return cmd
}

func newParkedDiscardCmd(s *settings) *cobra.Command {
	e := &errand{state: parking.StateDiscard}
	cmd := &cobra.Command{
		Use:   "discard ID",
		Short: "Give a parked row up: it is never published",
		Long: "Gives a parked row up: its event is never published, and what is held behind it goes on. A record stays in the table, state\n" +
			"discarded. Without --yes it prints what would be given up and does nothing." + waitHelp +
			"the bridge did not do it in time, or the row's state does not allow it.",
		Example: "  tidegate parked discard 17\n" +
			"  tidegate parked discard 17 --yes",
		Args: oneID,
	}
	yes := cmd.Flags().Bool("yes", false, "do it")
	e.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.atDesk(cmd, func(ctx context.Context, o *office) error {
			row, err := o.desk.Find(ctx, args[0])
			if err != nil {
				return err
			}
			if !*yes {
				return o.warn(ctx, cmd, row, *e.asJSON)
			}
			// By its number: what was looked at is what is given up.
			if row, err = o.desk.Discard(ctx, fmt.Sprint(row.ID)); err != nil {
				return err
			}
			if !*e.asJSON {
				fmt.Fprintf(cmd.OutOrStdout(), "giving up: event %s of %s (%s)\n", orNone(row.EventType), aggregateName(*row), rowName(*row))
			}
			return e.follow(ctx, cmd, o, []parking.Row{*row})
		})
	}
	return cmd
}

// warn prints what discard would give up.
func (o *office) warn(ctx context.Context, cmd *cobra.Command, row *parking.Row, asJSON bool) error {
	c, err := o.look(ctx, row)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if asJSON {
		err = printJSON(w, c.json())
	} else if err = c.printHead(w, time.Now()); err == nil {
		fmt.Fprintf(w, "\nThis event would never be published.\n")
	}
	if err != nil {
		return err
	}
	return &exit.Error{
		Code: exit.Usage, Err: fmt.Errorf("discard parked row %d: it was not confirmed, and nothing was done", row.ID),
		Hint: fmt.Sprintf("tidegate parked discard %d --yes gives it up; tidegate parked show %[1]d prints what is in it", row.ID),
	}
}

func orNone(text []byte) string {
	if text == nil {
		return "without a type"
	}
	return printable(text)
}
