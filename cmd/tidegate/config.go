package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/exit"
)

func newConfigCmd(s *settings) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show or check the configuration"}
	s.addFlags(cmd)
	return group(cmd, newConfigShowCmd(s), newConfigCheckCmd(s))
}

func newConfigShowCmd(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration in effect, with the origin of each value",
		Long:  "Prints the configuration in effect as YAML, the origin of each value behind it. Secrets are masked.",
		Args:  noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, origins, err := s.load(cmd)
		if err != nil {
			return err
		}
		if *asJSON {
			return config.WriteJSON(cmd.OutOrStdout(), cfg, origins)
		}
		return config.WriteYAML(cmd.OutOrStdout(), cfg, origins)
	}
	return cmd
}

func newConfigCheckCmd(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Print everything that is wrong with the configuration",
		Long:  "Prints every problem with its key, value, origin and what to do. No server is asked. Exit code 2 when there is one.",
		Args:  noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, _, err := s.load(cmd)
		if *asJSON {
			return printProblems(cmd.OutOrStdout(), err)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "configuration is ok: source %s, %s, %s\n", cfg.Source.Name,
			count(len(cfg.Outboxes), "outbox", "outboxes"), count(len(cfg.Streams), "stream", "streams"))
		return nil
	}
	return cmd
}

// printProblems prints {"problems": […]}, and gives the error that carries the exit code when there is one.
func printProblems(w io.Writer, err error) error {
	problems := config.Problems{}
	if err != nil && !errors.As(err, &problems) {
		return err
	}
	if err := printJSON(w, map[string]any{"problems": problems}); err != nil {
		return err
	}
	if len(problems) > 0 {
		return &exit.Error{Code: exit.Usage, Err: errReported}
	}
	return nil
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
