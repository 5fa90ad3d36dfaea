package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/config"
)

func TestLogHasTheFormAndLevelThatWereConfigured(t *testing.T) {
	tests := []struct {
		level, format string
		want          string // the beginning of the only line
	}{
		{"info", "json", `{"time":`},
		{"info", "text", "time="},
		{"info", "auto", `{"time":`}, // nobody is looking at a buffer
		{"error", "json", ""},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		log := newLogger(&out, config.Log{Level: tt.level, Format: tt.format})
		log.Debug("hidden")
		log.Info("slot created", slog.String("slot", "tidegate"))
		if got := out.String(); !strings.HasPrefix(got, tt.want) || strings.Count(got, "\n") != min(len(tt.want), 1) {
			t.Errorf("%s %s: %q", tt.level, tt.format, got)
		}
	}
}

func TestFileIsNoTerminal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isTerminal(f) {
		t.Error("a file counts as a terminal")
	}
}
