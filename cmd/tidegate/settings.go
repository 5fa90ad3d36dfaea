package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/config"
)

// settings is how commands come by their configuration and their log.
type settings struct{ file string }

// addFlags defines the flags of the configuration on cmd and the commands below it.
func (s *settings) addFlags(cmd *cobra.Command) {
	s.addFileFlag(cmd)
	config.AddFlags(cmd.PersistentFlags())
}

// addFileFlag is addFlags without the flags of single keys.
func (s *settings) addFileFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVarP(&s.file, "config", "c", "", "configuration file (default "+config.DefaultFile+", where it exists)")
}

// load reads the configuration of a command that has the flags.
func (s *settings) load(cmd *cobra.Command) (*config.Config, *config.Origins, error) {
	return config.Load(config.Options{File: s.file, Flags: cmd.Flags()})
}

// newLogger logs to w as configured. Level and format have been checked by the configuration.
func newLogger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" || c.Format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// isTerminal reports whether somebody is looking at w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
