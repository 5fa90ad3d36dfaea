package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/leash"
)

// Process is a program that runs as a process of its own. Its output is kept, and shown when the test fails.
type Process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	gone    chan struct{}
	http    string
}

// startProcess runs a program in its folder, in a process group of its own; its output is added to <name>.log there.
func startProcess(held *leash.Leash, name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: name, cmd: cmd, logPath: filepath.Join(held.Dir(), name+".log"), gone: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Dir = held.Dir()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	told := held.Running(cmd.Process.Pid) // before Wait: until then the number is not given to another process
	go func() {
		_ = cmd.Wait()                  // how it ended is in cmd.ProcessState
		_ = held.Ended(cmd.Process.Pid) // fails after Release, when nothing is watched
		close(p.gone)
	}()
	if told != nil {
		p.kill()
		return nil, told
	}
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.gone }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// Log is what the process has printed, with the runs before it in the same folder.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Signal sends a signal and fails the test when the process has already ended.
func (p *Process) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatalf("send %v to %s: %v", signal, p.name, err)
	}
}

// Kill ends the process by SIGKILL and returns once it is gone.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	p.Wait(t, stopTimeout)
}

// Wait waits until the process has ended and gives its exit code, -1 when a signal ended it. It fails the test after
// timeout.
func (p *Process) Wait(t testing.TB, timeout time.Duration) int {
	t.Helper()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.gone:
		return p.cmd.ProcessState.ExitCode()
	case <-timer.C:
		t.Fatalf("%s still runs after %v", p.name, timeout)
		return 0
	}
}

// WaitLog waits until the process has printed text. It fails the test after timeout, and at once when the process ends
// without having printed it.
func (p *Process) WaitLog(t testing.TB, timeout time.Duration, text string) {
	t.Helper()
	Eventually(t, timeout, func() bool {
		over := !p.Running()
		if strings.Contains(p.Log(), text) {
			return true
		}
		if over {
			t.Fatalf("%s ended without printing %q", p.name, text)
		}
		return false
	}, "%s prints %q", p.name, text)
}

// kill ends the process where no test can be failed.
func (p *Process) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended
	<-p.gone
}
