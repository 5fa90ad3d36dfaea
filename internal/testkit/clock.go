package testkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// ClockOffset is the variable that sets the clock of a ClockBinary: seconds that are added to the time of day.
const ClockOffset = "CLOCK_OFFSET"

// ClockBinary is PlainBinary with a time of day that ClockOffset moves: it is built with a time package whose Now adds
// the offset, so that the program itself is the one that is shipped. Timers, which need no time of day, run as always.
func ClockBinary(t testing.TB) *Program {
	t.Helper()
	return program(t, clockBinary)
}

var clockBinary = sync.OnceValues(func() (string, error) {
	overlay, err := clockOverlay()
	if err != nil {
		return "", fmt.Errorf("build tidegate-clock: %w", err)
	}
	return build("tidegate-clock", "/cmd/tidegate", "-overlay="+overlay)
})

const (
	clockRead  = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	clockMoved = clockRead + "\tsec += clockOffset\n"
	clockRest  = `
var clockOffset = readClockOffset()

func readClockOffset() int64 {
	text, _ := syscall.Getenv("` + ClockOffset + `")
	negative := len(text) > 0 && text[0] == '-'
	n := int64(0)
	for _, c := range text {
		if '0' <= c && c <= '9' {
			n = 10*n + int64(c-'0')
		}
	}
	if negative {
		return -n
	}
	return n
}
`
)

// clockOverlay writes the changed time package beside what is built, and the file that tells the compiler of it.
func clockOverlay() (string, error) {
	held, err := builds()
	if err != nil {
		return "", err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	moved := strings.Replace(string(text), clockRead, clockMoved, 1)
	if moved == string(text) {
		return "", errors.New("time.Now is written in another way now")
	}
	moved = strings.Replace(moved, "import (\n", "import (\n\t\"syscall\"\n", 1) + clockRest
	changed := filepath.Join(held.Dir(), "time.go")
	if err := os.WriteFile(changed, []byte(moved), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(held.Dir(), "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}
