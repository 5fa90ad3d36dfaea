package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/exit"
)

//go:generate go test . -run TestCommandsPageIsFresh -update

// newRootCmd lists the commands, one file and one function each.
func newRootCmd() *cobra.Command {
	s := &settings{}
	root := &cobra.Command{
		Use:   "tidegate",
		Short: "A one-way gate from a PostgreSQL outbox to NATS JetStream",
		Long: "tidegate streams committed rows of outbox tables from a PostgreSQL replication slot to NATS JetStream, in the order\n" +
			"of their aggregates, and confirms a position to PostgreSQL only after JetStream has stored everything before it.",
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exit.Error{Code: exit.Usage, Err: err, Hint: cmd.CommandPath() + " --help lists the flags"}
	})
	root.AddCommand(
		newRunCmd(s),
		newDemoCmd(runBridge),
		newMigrateCmd(s),
		newParkedCmd(s),
		newAcceptCmd(s),
		newConfigCmd(s),
		newVersionCmd(),
	)
	return root
}

// group makes cmd a command that only holds others.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	cmd.Args = knownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return &exit.Error{Code: exit.Usage, Err: fmt.Errorf("%s: no command is given", cmd.CommandPath()), Hint: "one of " + commandNames(cmd)}
	}
	return cmd
}

// knownCommand refuses what is left when no command of this name was found.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "one of " + commandNames(cmd)
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + cmd.CommandPath() + " " + near[0] + "? There are " + commandNames(cmd)
	}
	return &exit.Error{Code: exit.Usage, Err: fmt.Errorf("%s: unknown command %q", cmd.CommandPath(), args[0]), Hint: hint}
}

func commandNames(cmd *cobra.Command) string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return strings.Join(names, ", ")
}

// noArgs is for a command that takes flags alone.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &exit.Error{
		Code: exit.Usage, Err: fmt.Errorf("%s: takes no arguments, and was given %q", cmd.CommandPath(), args),
		Hint: cmd.CommandPath() + " --help shows how it is called",
	}
}

// addJSON defines the flag that commands with a table or a list share.
func addJSON(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON")
}

func printJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
