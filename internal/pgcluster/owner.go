package pgcluster

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user that PostgreSQL runs as. PostgreSQL refuses to run as root; for any other user it is nil: ourselves.
type owner struct{ uid, gid int }

// findOwner gives the user to drop to when this process is root: postgres where it exists, else nobody.
func findOwner() (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(account.Uid)
		gid, gidErr := strconv.Atoi(account.Gid)
		if uidErr == nil && gidErr == nil {
			return &owner{uid, gid}, nil
		}
	}
	return nil, fmt.Errorf("choose a user for PostgreSQL: it refuses to run as root, and neither user postgres nor nobody exists")
}

// attributes gives a process of the owner, in a group of its own: Ctrl-C on a terminal must not reach the server.
func (o *owner) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if o != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
	}
	return attr
}

// give hands path to the owner.
func (o *owner) give(path string) error {
	if o == nil {
		return nil
	}
	return os.Lchown(path, o.uid, o.gid)
}

// makeDir makes a new folder that the owner can reach and nobody else can read.
func (o *owner) makeDir(pattern string) (string, error) {
	var reasons error
	for _, parent := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if o != nil && !openToAll(parent) {
			continue
		}
		dir, err := os.MkdirTemp(parent, pattern)
		if err != nil {
			reasons = err
			continue
		}
		if err := o.give(dir); err != nil {
			os.Remove(dir)
			return "", err
		}
		return dir, nil
	}
	return "", fmt.Errorf("make a folder for PostgreSQL: no temporary folder that its user can enter: %w", reasons)
}

// openToAll reports whether every folder on the way to dir may be entered by any user.
func openToAll(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}
