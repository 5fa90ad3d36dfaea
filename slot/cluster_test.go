package slot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// promote makes a cluster a standby of nobody and promotes it: it goes on with the next timeline.
func promote(t *testing.T, pg *testkit.PG, c Config) {
	t.Helper()
	pg.Stop(t, testkit.Fast)
	signal := filepath.Join(pg.DataDir(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	pg.Start(t)
	if !testkit.Value[bool](t, c.URL, `SELECT pg_promote()`) {
		t.Fatal("not promoted")
	}
}
