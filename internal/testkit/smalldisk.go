package testkit

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// SmallDisk is a filesystem of its own, in memory, that can be full. It is gone when the test ends or this process does.
type SmallDisk struct {
	Dir string
}

// mounter holds the mount for as long as its standard input is open.
const mounter = `
trap '' INT TERM HUP QUIT
if mount -t tmpfs -o "size=$2" tidegate-test "$1"; then echo mounted; else echo refused; exit 1; fi
while read -r _; do :; done
umount "$1" || umount -l "$1"
rmdir "$1"
`

// NewSmallDisk mounts a filesystem of so many bytes. It fails the test where this process may not mount.
func NewSmallDisk(t testing.TB, bytes int) *SmallDisk {
	t.Helper()
	dir, err := os.MkdirTemp("", "tidegate-disk-")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", mounter, "disk", dir, strconv.Itoa(bytes))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C on a terminal must not reach it
	var complaint strings.Builder
	cmd.Stderr = &complaint
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answer, _ := bufio.NewReader(output).ReadString('\n') // nothing: refused
	t.Cleanup(func() {
		input.Close()
		if err := cmd.Wait(); err != nil && answer == "mounted\n" {
			t.Errorf("unmount %s: %v: %s", dir, err, complaint.String())
		}
	})
	if answer != "mounted\n" {
		os.Remove(dir)
		t.Fatalf("mount a filesystem of %d bytes: this test needs root, or CAP_SYS_ADMIN in a container: %s", bytes, complaint.String())
	}
	return &SmallDisk{dir}
}

// Resize gives the filesystem another size, in bytes: a smaller one, too, while what it holds fits.
func (d *SmallDisk) Resize(t testing.TB, bytes int) {
	t.Helper()
	if out, err := exec.Command("mount", "-o", fmt.Sprintf("remount,size=%d", bytes), d.Dir).CombinedOutput(); err != nil {
		t.Fatalf("resize %s: %v: %s", d.Dir, err, out)
	}
}

// Free is how many bytes are left.
func (d *SmallDisk) Free(t testing.TB) int64 {
	t.Helper()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(d.Dir, &stat); err != nil {
		t.Fatal(err)
	}
	return int64(stat.Bfree) * int64(stat.Bsize) //nolint:unconvert // macOS has another type
}
