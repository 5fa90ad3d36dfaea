package testkit

import (
	"bytes"
	"encoding/hex"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var captureBinary = sync.OnceValues(func() (string, error) { return build("capture", "/decoder/testdata/capture") })

// RecordSession runs the statements of decoder/testdata/session.sql on the database, which must be empty, and gives
// the messages that pgoutput sends for them.
func RecordSession(t testing.TB, url string) [][]byte {
	t.Helper()
	program, err := captureBinary()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, url)
	cmd.Dir = filepath.Dir(strings.TrimSpace(string(mod)))
	cmd.Env = cleanEnv()
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("record a session: %v: %s", err, failure.String())
	}
	return SessionMessages(t, string(out))
}

// SessionMessages reads a recording: one message a line, in hexadecimal behind its WALStart.
func SessionMessages(t testing.TB, text string) [][]byte {
	t.Helper()
	var messages [][]byte
	for line := range strings.Lines(text) {
		_, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		data, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, data)
	}
	return messages
}
