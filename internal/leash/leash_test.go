package leash_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/leash"
)

// holderEnv makes the test binary hold a folder and two processes until it is killed.
const holderEnv = "LEASH_TEST_HOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderEnv); dir != "" {
		hold(dir)
	}
	m.Run()
}

// hold prints the ids of its processes, one of them stopped, and waits.
func hold(dir string) {
	held, err := leash.Hold(dir)
	if err != nil {
		panic(err)
	}
	for _, stopped := range []bool{false, true} {
		pid := sleeper(held)
		if stopped {
			syscall.Kill(pid, syscall.SIGSTOP)
		}
		fmt.Println(pid)
	}
	select {}
}

func sleeper(held *leash.Leash) int {
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	if err := held.Running(cmd.Process.Pid); err != nil {
		panic(err)
	}
	go cmd.Wait()
	return cmd.Process.Pid
}

func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "it's held")
	if err := os.MkdirAll(filepath.Join(dir, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func wait(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.After(20 * time.Second); !condition(); {
		select {
		case <-deadline:
			t.Fatal("still not: ", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func isGone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, os.ErrNotExist)
}

// hasEnded reports whether the process has ended: it does not exist, or nobody has waited for it yet.
func hasEnded(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return strings.Contains(string(stat), ") Z ")
	}
	out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasPrefix(string(out), "Z")
}

func TestKilledHolderLeavesNeitherProcessNorFolder(t *testing.T) {
	dir := folder(t)
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holderEnv+"="+dir)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [2]int
	lines := bufio.NewReader(out)
	for i := range pids {
		if _, err := fmt.Fscan(lines, &pids[i]); err != nil {
			t.Fatal(err)
		}
	}
	holder.Process.Kill()
	holder.Wait()
	wait(t, "both processes have ended", func() bool { return hasEnded(pids[0]) && hasEnded(pids[1]) })
	wait(t, "the folder is gone", func() bool { return isGone(dir) })
}

func TestReleaseEndsWhatRunsAndRemovesTheFolder(t *testing.T) {
	dir := folder(t)
	held, err := leash.Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	pid := sleeper(held)
	for range 2 {
		if err := held.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if !isGone(dir) {
		t.Error("the folder is still there")
	}
	wait(t, "the process has ended", func() bool { return hasEnded(pid) })
	if err := held.Running(1); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Running after Release: %v, want os.ErrClosed", err)
	}
}

func TestProcessThatIsOverIsLeftAlone(t *testing.T) {
	held, err := leash.Hold(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	pid := sleeper(held)
	defer syscall.Kill(pid, syscall.SIGKILL)
	if err := held.Ended(pid); err != nil {
		t.Fatal(err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if hasEnded(pid) {
		t.Error("a process that was said to be over was ended")
	}
}
