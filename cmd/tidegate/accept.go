package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/relay"
	"github.com/tidegate-cdc/tidegate/publish"
)

// acceptFlags is what accept was asked for.
type acceptFlags struct{ yes, list, json *bool }

func newAcceptCmd(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "accept",
		Short: "Go on after database, streams and checkpoint no longer agree",
		Long: "Prints what does not agree: a stream or a checkpoint that was deleted, made again, purged or restored, a promoted or restored\n" +
			"PostgreSQL, another system after an upgrade; and what is given up by going on. With --yes the checkpoint is rebased onto what\n" +
			"is there, and run goes on from the slot: every row from there on is published that no stream shows to be stored. Nothing\n" +
			"in the streams or the database is changed. All instances must be stopped. Exit code 3 without --yes where something is found.",
		Args: noArgs,
	}
	s.addFlags(cmd)
	flags := acceptFlags{
		yes:  cmd.Flags().Bool("yes", false, "accept: write the rebased checkpoint"),
		list: cmd.Flags().Bool("list", false, "print every event that the streams hold and the database does not have, not only the first 20"),
		json: addJSON(cmd),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, _, err := s.load(cmd)
		if err != nil {
			return err
		}
		b, err := relay.New(cfg, newLogger(cmd.ErrOrStderr(), cfg.Log))
		if err != nil {
			return err
		}
		defer b.Close()
		return accept(cmd.Context(), b, flags, cmd.OutOrStdout())
	}
	return cmd
}

func accept(ctx context.Context, b *relay.Bridge, flags acceptFlags, w io.Writer) error {
	a, err := b.Survey(ctx)
	if err != nil {
		return err
	}
	found := len(a.Findings) > 0
	accepted := found && *flags.yes
	if accepted {
		if err := a.Apply(ctx); err != nil {
			return err
		}
	}
	if err := printAcceptance(w, a, flags, accepted); err != nil {
		return err
	}
	if found && !accepted {
		return &exit.Error{
			Code: exit.Found, Err: errors.New("accept divergence: nothing was written"),
			Hint: "tidegate accept --yes goes on and gives up what is printed",
		}
	}
	return nil
}

func printAcceptance(w io.Writer, a *relay.Acceptance, flags acceptFlags, accepted bool) error {
	if *flags.json {
		return printJSON(w, map[string]any{
			"source": a.Source, "findings": a.Findings, "events": a.Events,
			"continues_from": a.From, "accepted": accepted,
		})
	}
	if len(a.Findings) == 0 {
		_, err := fmt.Fprintf(w, "nothing to accept: database, streams and checkpoint of source %s agree\n", a.Source)
		return err
	}
	for _, f := range a.Findings {
		fmt.Fprintf(w, "found: %s\n", f.What)
		if f.GivenUp != "" {
			fmt.Fprintf(w, "  given up: %s\n", f.GivenUp)
		}
	}
	if err := printEvents(w, a.Events, *flags.list); err != nil {
		return err
	}
	if accepted {
		fmt.Fprintf(w, "accepted: run goes on from %s\n", a.From)
	}
	return nil
}

// shownEvents is how many are printed when the list is not asked for.
const shownEvents = 20

func printEvents(w io.Writer, events []publish.Event, all bool) error {
	if len(events) == 0 {
		return nil
	}
	fmt.Fprintf(w, "%s in the streams that the database does not have:\n", count(len(events), "event", "events"))
	shown := events
	if !all {
		shown = events[:min(len(events), shownEvents)]
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STREAM\tSEQUENCE\tSUBJECT\tID\tPOSITION\tCOMMITTED AT")
	for _, e := range shown {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", e.Stream, e.Seq, e.Subject, e.MsgID, e.Position, e.CommittedAt.UTC().Format(time.RFC3339))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(shown) < len(events) {
		fmt.Fprintf(w, "… and %d more: tidegate accept --list\n", len(events)-len(shown))
	}
	return nil
}
