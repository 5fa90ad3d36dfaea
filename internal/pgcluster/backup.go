package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Backup copies the data folder of a stopped cluster. There is one backup; a later one replaces it.
func (c *Cluster) Backup(ctx context.Context) error {
	return c.replace(ctx, c.DataDir(), c.backupDir())
}

// Restore puts the backup back in place of the data folder of a stopped cluster. With standby it starts as a standby of
// nobody, which pg_promote() makes the primary of a new timeline.
func (c *Cluster) Restore(ctx context.Context, standby bool) error {
	if err := c.replace(ctx, c.backupDir(), c.DataDir()); err != nil || !standby {
		return err
	}
	return c.write("standby.signal", "")
}

func (c *Cluster) backupDir() string { return filepath.Join(c.dir, "backup") }

func (c *Cluster) replace(ctx context.Context, from, to string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.PID() != 0 {
		return errors.New("copy data folder: the cluster runs")
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy data folder: %w: %s", err, out)
	}
	return nil
}
