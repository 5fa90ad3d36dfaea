package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// build is what is known about the program.
type build struct {
	Version  string            `json:"version"`
	Commit   string            `json:"commit"`
	Modified bool              `json:"modified"` // built from a tree with changes
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Modules  map[string]string `json:"modules"`
}

func newVersionCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go and module versions",
		Args:  noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b := readBuild()
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), b)
		}
		return b.print(cmd)
	}
	return cmd
}

// readBuild reads what the Go tool wrote into the program.
func readBuild() build {
	b := build{Version: "unknown", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Modules: map[string]string{}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, m := range info.Deps {
		b.Modules[m.Path] = m.Version
		if m.Replace != nil {
			b.Modules[m.Path] = strings.TrimSpace(m.Replace.Path + " " + m.Replace.Version)
		}
	}
	return b
}

func (b build) print(cmd *cobra.Command) error {
	commit := b.Commit
	if b.Modified {
		commit += " with changes"
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "tidegate\t%s\ncommit\t%s\ngo\t%s %s\n", b.Version, commit, b.Go, b.Platform)
	var paths []string
	for path := range b.Modules {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		fmt.Fprintf(w, "%s\t%s\n", path, b.Modules[path])
	}
	return w.Flush()
}
