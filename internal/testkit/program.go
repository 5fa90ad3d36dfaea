package testkit

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
)

// Program is the built tidegate.
type Program struct{ path string }

// Binary builds tidegate once a test binary, with the race detector when the test has it: a race then fails the test.
func Binary(t testing.TB) *Program {
	t.Helper()
	build := plainBinary
	if Race {
		build = raceBinary
	}
	return program(t, build)
}

// PlainBinary is Binary without the race detector: for tests that measure memory or time.
func PlainBinary(t testing.TB) *Program {
	t.Helper()
	return program(t, plainBinary)
}

var (
	plainBinary = sync.OnceValues(func() (string, error) { return build("tidegate", "/cmd/tidegate") })
	raceBinary  = sync.OnceValues(func() (string, error) { return build("tidegate-race", "/cmd/tidegate", "-race") })
)

func program(t testing.TB, build func() (string, error)) *Program {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return &Program{path}
}

// Path is the executable.
func (p *Program) Path() string { return p.path }

// Call says how a program is started.
type Call struct {
	Args []string
	// Env is added to an environment that has none of tidegate's and PostgreSQL's own variables. Unless it sets
	// TIDEGATE_HTTP_LISTEN, the program gets a free port.
	Env map[string]string
	// Config is the text of a configuration file, given by --config; empty: none is given.
	Config string
}

// Start runs the program until the test ends or it ends itself.
func (p *Program) Start(t testing.TB, call Call) *Process {
	t.Helper()
	held, err := holdTemp("tidegate-run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := held.Release(); err != nil {
			t.Error(err)
		}
	})
	args := call.Args
	if call.Config != "" {
		path := filepath.Join(held.Dir(), "tidegate.yaml")
		writeFile(t, path, call.Config)
		args = append(slices.Clone(args), "--config", path)
	}
	http := call.Env["TIDEGATE_HTTP_LISTEN"]
	if http == "" {
		http = "127.0.0.1:" + strconv.Itoa(freePort(t))
	}
	cmd := exec.Command(p.path, args...)
	cmd.Env = append(cleanEnv(), "TIDEGATE_HTTP_LISTEN="+http)
	for _, name := range slices.Sorted(maps.Keys(call.Env)) {
		cmd.Env = append(cmd.Env, name+"="+call.Env[name])
	}
	process, err := startProcess(held, "tidegate", cmd)
	if err != nil {
		t.Fatal(err)
	}
	process.http = http
	t.Cleanup(func() { process.finish(t) })
	return process
}

// Run runs the program to its end and gives its exit code and output. It fails the test after timeout.
func (p *Program) Run(t testing.TB, timeout time.Duration, call Call) (code int, output string) {
	t.Helper()
	process := p.Start(t, call)
	code = process.Wait(t, timeout)
	return code, process.Log()
}

// finish ends the process at the end of a test.
func (p *Process) finish(t testing.TB) {
	p.kill()
	log := p.Log()
	if strings.Contains(log, "WARNING: DATA RACE") {
		t.Errorf("%s has a data race", p.name)
	}
	if t.Failed() {
		t.Logf("the end of the output of %s %v:\n%s", p.name, p.cmd.Args[1:], tail(log, shownLines))
	}
}

// ConfigText fills a configuration's template: text/template, every value it names must be given.
func ConfigText(t testing.TB, text string, values any) string {
	t.Helper()
	parsed, err := template.New("tidegate.yaml").Option("missingkey=error").Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, values); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// ConfigFile writes what ConfigText makes to a file of the test and gives its path.
func ConfigFile(t testing.TB, text string, values any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tidegate.yaml")
	writeFile(t, path, ConfigText(t, text, values))
	return path
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	port, err := pgcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// cleanEnv is our environment without what would configure tidegate.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "TIDEGATE_") || strings.HasPrefix(entry, "PG")
	})
}
