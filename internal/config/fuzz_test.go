package config_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/config"
)

// Whatever a file holds, it is either refused with problems or shown as a configuration that loads as the same.
func FuzzFileIsRefusedOrShownFaithfully(f *testing.F) {
	for _, seed := range []string{
		"", whole, "slot: [1, {a: b}]", `"slot.name": x`, "a: &x {b: *x}", "<<: {slot: {name: a}}", "outboxes: [~, {}, []]", "1: 2",
		"streams: [{name: A, max_age: -1h}]", "monitor: {warn: {used: 1e400%}}", "publish: {max_row: 9e18}", "slot: {name: !!binary aGk=}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, yaml []byte) {
		cfg, origins, err := loadBytes(t, yaml)
		if err != nil {
			var ps config.Problems
			if !errors.As(err, &ps) || len(ps) == 0 || ps.Error() == "" {
				t.Fatalf("refused without problems: %v", err)
			}
			return
		}
		var shown bytes.Buffer
		if err := config.WriteYAML(&shown, cfg, origins); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(shown.Bytes(), []byte("*****")) {
			return // a mask is not the secret
		}
		again, _, err := loadBytes(t, shown.Bytes())
		if err != nil || !reflect.DeepEqual(cfg, again) {
			t.Fatalf("shown as\n%s\nwhich is %+v (%v), want %+v", shown.Bytes(), again, err, cfg)
		}
	})
}

func loadBytes(t *testing.T, yaml []byte) (*config.Config, *config.Origins, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tidegate.yaml")
	if err := os.WriteFile(file, yaml, 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(config.Options{File: file, Environ: []string{}})
}
