package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/demo"
	"github.com/tidegate-cdc/tidegate/internal/exit"
)

func newDemoCmd(bridge demo.Bridge) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole path on this machine, and count what arrives",
		Long: "Makes a throwaway PostgreSQL cluster with PostGIS from the installed programs and a JetStream server, lets an\n" +
			"application edit features and take orders, publishes its outboxes, prints the events as a consumer gets them, and at\n" +
			"the end compares the outboxes with the stream: exit code 3 when a message is missing, doubled or out of order.\n" +
			"Some transactions are rolled back on purpose, some in part. Nothing is left running or on disk.",
		Args: noArgs,
	}
	o := demo.Options{Bridge: bridge}
	flags := cmd.Flags()
	flags.DurationVar(&o.Duration, "duration", 20*time.Second, "how long rows are written; 0: until Ctrl-C")
	flags.Float64Var(&o.Rate, "rate", 50, "transactions a second")
	flags.BoolVar(&o.Keep, "keep", false, "leave data, log and configuration in a folder, and say how to look at them")
	flags.BoolVar(&o.JSON, "json", false, "print the summary alone, as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !(o.Rate > 0) || o.Duration < 0 {
			return &exit.Error{
				Code: exit.Usage, Err: errors.New("demo: --rate must be above 0, --duration not below"),
				Hint: "tidegate demo --duration 20s --rate 50",
			}
		}
		o.Out, o.Progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
		return demo.Run(cmd.Context(), o)
	}
	return cmd
}
