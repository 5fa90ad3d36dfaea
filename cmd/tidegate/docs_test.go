package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write docs/commands.md")

func TestCommandsPageIsFresh(t *testing.T) {
	const page = "../../docs/commands.md"
	want := commandsPage(newRootCmd())
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/commands.md is stale: run go generate ./cmd/tidegate")
	}
}

const commandsHead = `<!-- Generated from the commands' own help by "go generate ./cmd/tidegate": do not edit. -->

# Commands

Results go to standard output, the log and errors to standard error. An error is one line with the cause and, where there is one, a
line with what to do. The first SIGINT or SIGTERM ends a command cleanly, the second at once.

| Exit code | Meaning |
|---|---|
| 0 | done, or stopped cleanly |
| 1 | unexpected |
| 2 | command line or configuration |
| 3 | a check found something |
| 4 | slot lost, dropped or missing |
| 5 | PostgreSQL refused |
| 6 | NATS or a stream refused or lost data |
| 7 | drift or divergence |
`

func commandsPage(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(commandsHead)
	describeCommand(&b, root)
	return b.String()
}

func describeCommand(b *strings.Builder, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	if cmd.HasParent() {
		fmt.Fprintf(b, "\n## %s\n\n", cmd.CommandPath())
	} else {
		b.WriteString("\n")
	}
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n```\n%s\n", text, cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n%s\n", cmd.Example)
	}
	if flags := strings.TrimRight(cmd.LocalFlags().FlagUsages(), "\n"); flags != "" {
		fmt.Fprintf(b, "\n%s\n", flags)
	}
	b.WriteString("```\n")
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			describeCommand(b, c)
		}
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || strings.ToUpper(cmd.Short[:1]) != cmd.Short[:1] {
			t.Errorf("%s: short help %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.Args == nil || cmd.RunE == nil {
			t.Errorf("%s: arguments or errors are left to cobra", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(newRootCmd())
}
