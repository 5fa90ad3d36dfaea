// Package leash ties helper processes and their folder to the life of this process, so that a throwaway server is gone
// and its folder removed however this process ends: by returning, by a panic, by os.Exit or by SIGKILL.
package leash

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// watcher outlives this process. Its standard input ends when this process does; then it ends the processes that were
// named and have not been said to be over, first by SIGQUIT (PostgreSQL's immediate shutdown, which also frees its
// shared memory), and removes the folder.
const watcher = `
trap '' INT TERM HUP QUIT
pids=''
while read -r verb pid; do
	kept=''
	for p in $pids; do [ "$p" = "$pid" ] || kept="$kept $p"; done
	pids=$kept
	[ "$verb" = run ] && pids="$pids $pid"
done
for p in $pids; do kill -QUIT "$p"; kill -CONT "$p"; done
for p in $pids; do
	n=0
	while [ "$n" -lt 50 ] && kill -0 "$p"; do sleep 0.1; n=$((n + 1)); done
	kill -KILL "$p"
done
n=0
while [ "$n" -lt 20 ] && ! rm -rf -- "$1"; do sleep 0.1; n=$((n + 1)); done
[ ! -e "$1" ]
`

// Leash holds one folder and the processes that live in it.
type Leash struct {
	dir string
	cmd *exec.Cmd

	mu    sync.Mutex
	input io.WriteCloser
}

// Hold begins to watch over dir. A caller that is done calls Release.
func Hold(dir string) (*Leash, error) {
	cmd := exec.Command("/bin/sh", "-c", watcher, "leash", dir)
	cmd.Dir = "/"
	// A group of its own: Ctrl-C on a terminal must not reach it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	return &Leash{dir: dir, cmd: cmd, input: input}, nil
}

// Dir is the folder that the leash holds.
func (l *Leash) Dir() string { return l.dir }

// Running says that the process pid must not outlive this one.
func (l *Leash) Running(pid int) error { return l.tell("run", pid) }

// Ended says that the process pid is over, so that its number may be given to another.
func (l *Leash) Ended(pid int) error { return l.tell("ended", pid) }

func (l *Leash) tell(verb string, pid int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.input == nil {
		return fmt.Errorf("watch process %d: %w", pid, os.ErrClosed)
	}
	if _, err := fmt.Fprintf(l.input, "%s %d\n", verb, pid); err != nil {
		return fmt.Errorf("watch process %d: %w", pid, err)
	}
	return nil
}

// Release ends the processes that still run, removes the folder and waits until both is done. Only its first call acts.
func (l *Leash) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.input == nil {
		return nil
	}
	err := l.input.Close()
	l.input = nil
	if waited := l.cmd.Wait(); waited != nil {
		err = waited
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", l.dir, err)
	}
	return nil
}
