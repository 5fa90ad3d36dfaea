package pgcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// makeData runs initdb. Copying a folder made earlier was measured: it takes as long.
func (c *Cluster) makeData(ctx context.Context) error {
	locale := "C"
	if runtime.GOOS == "linux" {
		locale = "C.UTF-8"
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"),
		"--pgdata="+c.DataDir(), "--username="+Superuser, "--auth=trust", "--encoding=UTF8", "--locale="+locale, "--no-sync")
	cmd.Dir = c.dir
	cmd.Env = c.environment()
	cmd.SysProcAttr = c.owner.attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(out)))
	}
	conf, err := os.OpenFile(filepath.Join(c.DataDir(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	_, err = conf.WriteString("\ninclude = 'cluster.conf'\n")
	if closed := conf.Close(); err == nil {
		err = closed
	}
	return err
}

// environment is ours without what would change the server's: its locale and PostgreSQL's variables. Programs that
// were packed with their libraries find them in lib beside bin.
func (c *Cluster) environment() []string {
	env := []string{"LC_ALL=C"}
	lib := filepath.Join(filepath.Dir(c.bin), "lib")
	if packed, _ := filepath.Glob(filepath.Join(lib, "libpq.so*")); len(packed) > 0 {
		env = append(env, "LD_LIBRARY_PATH="+lib)
	}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "LC_") && !strings.HasPrefix(entry, "LANG") {
			env = append(env, entry)
		}
	}
	return env
}
