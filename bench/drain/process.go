package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/leash"
)

// stopTimeout is how long a process may take to end in order.
const stopTimeout = 20 * time.Second

// process is a program that runs beside the benchmark and does not outlive it.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   string // the file of what it says on standard error
	gone  chan struct{}
	err   error     // how it ended; valid once gone
	ended time.Time // when; valid once gone
}

// startProcess runs cmd in the leash's folder, in a process group of its own. What it prints is kept, except where
// the caller has taken standard output.
func startProcess(held *leash.Leash, name string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, cmd: cmd, log: filepath.Join(held.Dir(), name+".log"), gone: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Dir, cmd.Stderr = held.Dir(), log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	told := held.Running(cmd.Process.Pid) // before Wait: until then the number is not given to another process
	go func() {
		p.err = cmd.Wait()
		p.ended = time.Now()
		_ = held.Ended(cmd.Process.Pid)
		close(p.gone)
	}()
	if told != nil {
		p.kill()
	}
	return p, told
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop ends the process in order and gives an error when it does not end so.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.gone:
		return p.failure()
	case <-timer.C:
		p.kill()
		return fmt.Errorf("stop %s: it still runs after %v", p.name, stopTimeout)
	}
}

// kill ends the process at once. It may have ended before.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// failure is how a process that has ended failed, nil when it did not.
func (p *process) failure() error {
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("run %s: %w: %s", p.name, p.err, p.tail())
}

// endedEarly is the error for a process that ended before its work was done.
func (p *process) endedEarly() error {
	if err := p.failure(); err != nil {
		return err
	}
	return fmt.Errorf("run %s: it ended too early: %s", p.name, p.tail())
}

// tail is the end of what the process has said.
func (p *process) tail() string {
	file, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	const most = 2 << 10
	if end, err := file.Seek(0, io.SeekEnd); err == nil {
		_, _ = file.Seek(max(0, end-most), io.SeekStart)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// cleanEnv is our environment without what would configure tidegate or PostgreSQL's programs, with more added.
func cleanEnv(more ...string) []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "TIDEGATE_") && !strings.HasPrefix(entry, "PG") {
			env = append(env, entry)
		}
	}
	return append(env, more...)
}

// self is the command of a child of this program.
func self(args ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(program, append([]string{childArg}, args...)...)
	cmd.Env = cleanEnv()
	return cmd, nil
}
