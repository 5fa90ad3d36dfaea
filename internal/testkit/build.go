package testkit

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tidegate-cdc/tidegate/internal/leash"
)

const module = "github.com/tidegate-cdc/tidegate"

// builds is the folder of the programs that this test binary has built.
var builds = sync.OnceValues(func() (*leash.Leash, error) {
	held, err := holdTemp("tidegate-bin-")
	if err == nil {
		shared.add(held.Release)
	}
	return held, err
})

// build makes a program of this module and gives its path. Go's build cache makes it quick from the second test binary on.
func build(name, pkg string, flags ...string) (string, error) {
	held, err := builds()
	if err != nil {
		return "", err
	}
	path := filepath.Join(held.Dir(), name)
	args := append([]string{"build", "-o", path}, flags...)
	if out, err := exec.Command("go", append(args, module+pkg)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return path, nil
}
