package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	pollInterval  = 10 * time.Millisecond
	removeTimeout = 30 * time.Second
	startAttempts = 5
)

// Mode is how a cluster is stopped.
type Mode syscall.Signal

// The ways to stop a cluster.
const (
	// Fast ends the sessions, writes a checkpoint and waits for the walsenders, as pg_ctl's default does.
	Fast = Mode(syscall.SIGINT)
	// Immediate crashes the cluster: the next start recovers from its WAL.
	Immediate = Mode(syscall.SIGQUIT)
)

// postmaster is one run of the server.
type postmaster struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed once it has ended
	err  error         // how it ended; valid once gone
}

// Start starts the cluster and returns once it accepts connections; on one that runs it does nothing. When ctx ends
// first, the cluster is stopped.
func (c *Cluster) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running() != nil {
		return nil
	}
	for attempt := 1; ; attempt++ {
		err := c.launch(ctx)
		if err == nil {
			break
		}
		taken := errors.Is(err, errPortTaken)
		if !taken || attempt == startAttempts || c.wasStarted {
			return fmt.Errorf("start PostgreSQL: %w", err)
		}
		if err := c.movePort(); err != nil {
			return err
		}
	}
	if c.wasStarted || c.options.Password == "" {
		c.wasStarted = true
		return nil
	}
	c.wasStarted = true
	return c.setPassword(ctx)
}

var errPortTaken = errors.New("the port is taken")

// movePort chooses another port: only before the first start, when nobody has been told the port.
func (c *Cluster) movePort() error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	c.port.Store(int32(port))
	return c.writeConf()
}

// launch runs a postmaster and waits until it is ready.
func (c *Cluster) launch(ctx context.Context) error {
	log, err := os.OpenFile(c.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	before, err := log.Seek(0, 2)
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(c.bin, "postgres"), "-D", c.DataDir())
	cmd.Dir = c.dir
	cmd.Env = c.environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = c.owner.attributes()
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &postmaster{cmd: cmd, gone: make(chan struct{})}
	leashErr := c.leash.Running(cmd.Process.Pid)
	go func() {
		p.err = cmd.Wait()
		_ = c.leash.Ended(cmd.Process.Pid) // fails after Remove, when nothing is watched
		close(p.gone)
	}()
	c.process.Store(p)
	if leashErr == nil {
		leashErr = c.waitReady(ctx, p, before)
	}
	if leashErr != nil {
		p.signal(syscall.SIGQUIT)
		<-p.gone
	}
	return leashErr
}

// waitReady waits until the postmaster says in its pid file that it accepts connections, as pg_ctl does.
func (c *Cluster) waitReady(ctx context.Context, p *postmaster, logStart int64) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.gone:
			return c.startFailure(p, logStart)
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ctx.Err(), c.logSince(logStart))
		case <-tick.C:
			if c.ready(p.cmd.Process.Pid) {
				return nil
			}
		}
	}
}

// ready reads the first and the eighth line of postmaster.pid: process id and state.
func (c *Cluster) ready(pid int) bool {
	text, err := os.ReadFile(filepath.Join(c.DataDir(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) >= 8 && lines[0] == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

func (c *Cluster) startFailure(p *postmaster, logStart int64) error {
	log := c.logSince(logStart)
	if strings.Contains(log, "could not bind IPv4 address") {
		return fmt.Errorf("%w: %s", errPortTaken, log)
	}
	return fmt.Errorf("%w: %s", p.err, log)
}

func (c *Cluster) logSince(start int64) string {
	log := c.Log()
	return strings.TrimSpace(log[min(int(start), len(log)):])
}

// Stop stops the cluster and returns when the postmaster has ended, with the time that took; on a stopped one it does
// nothing. When ctx ends first the server may still be stopping.
func (c *Cluster) Stop(ctx context.Context, mode Mode) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.running()
	if p == nil {
		return 0, nil
	}
	began := time.Now()
	p.signal(syscall.Signal(mode))
	select {
	case <-p.gone:
		return time.Since(began), nil
	case <-ctx.Done():
		return time.Since(began), fmt.Errorf("stop PostgreSQL: %w", ctx.Err())
	}
}

// Restart stops the cluster and starts it again on the same port and data.
func (c *Cluster) Restart(ctx context.Context, mode Mode) error {
	if _, err := c.Stop(ctx, mode); err != nil {
		return err
	}
	return c.Start(ctx)
}

// Reload makes the running cluster read its settings again.
func (c *Cluster) Reload() error { return c.Signal(syscall.SIGHUP) }

// Signal sends a signal to the running postmaster.
func (c *Cluster) Signal(signal syscall.Signal) error {
	p := c.running()
	if p == nil {
		return fmt.Errorf("signal PostgreSQL: %w", os.ErrProcessDone)
	}
	return p.cmd.Process.Signal(signal)
}

// PID is the postmaster's process id, 0 while it is stopped.
func (c *Cluster) PID() int {
	p := c.running()
	if p == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// running gives the postmaster that runs now, nil when none does.
func (c *Cluster) running() *postmaster {
	p := c.process.Load()
	if p == nil {
		return nil
	}
	select {
	case <-p.gone:
		return nil
	default:
		return p
	}
}

// setPassword gives the superuser its password, by the Unix socket.
func (c *Cluster) setPassword(ctx context.Context) error {
	conn, err := c.Connect(ctx, "postgres")
	if err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	defer conn.Close(ctx)
	quoted := strings.ReplaceAll(c.options.Password, "'", "''")
	if _, err := conn.Exec(ctx, "ALTER ROLE "+Superuser+" PASSWORD '"+quoted+"'"); err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	return nil
}

// signal does nothing to a process that has ended.
func (p *postmaster) signal(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal)
}
