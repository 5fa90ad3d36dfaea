package pgcluster

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// BinEnv names the environment variable that says which PostgreSQL to use: the folder of initdb and postgres.
const BinEnv = "POSTGRES_BIN"

// places are where packages put PostgreSQL's programs, beside PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                   // PGDG on Red Hat
	"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew, arm64
	"/usr/local/opt/postgresql@*/bin",                    // Homebrew, amd64
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	"/usr/local/pgsql/bin",                               // built from source
}

// FindBinaries gives the folder that holds initdb and postgres: the one that POSTGRES_BIN names, else the newest
// installed version that has PostGIS, else the newest.
func FindBinaries() (string, error) {
	if dir := os.Getenv(BinEnv); dir != "" {
		if !complete(dir) {
			return "", fmt.Errorf("find PostgreSQL: %s=%s holds no initdb and postgres", BinEnv, dir)
		}
		return dir, nil
	}
	found := candidates()
	if len(found) == 0 {
		return "", fmt.Errorf("find PostgreSQL: no initdb and postgres on this machine; run `make setup`, or set %s to their folder", BinEnv)
	}
	if i := slices.IndexFunc(found, hasPostGIS); i >= 0 {
		return found[i], nil
	}
	return found[0], nil
}

// candidates gives every complete folder, newest version first.
func candidates() []string {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, pattern := range places {
		matches, _ := filepath.Glob(pattern)
		dirs = append(dirs, matches...)
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return !complete(dir) })
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return slices.Compact(dirs)
}

func complete(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

var firstNumber = regexp.MustCompile(`\d+`)

// version gives the major version that a folder's name tells, 0 when it tells none.
func version(dir string) int {
	n, err := strconv.Atoi(firstNumber.FindString(dir))
	if err != nil {
		return 0
	}
	return n
}

func hasPostGIS(bin string) bool {
	out, err := exec.Command(filepath.Join(bin, "pg_config"), "--sharedir").Output()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(strings.TrimSpace(string(out)), "extension", "postgis.control"))
	return err == nil
}
