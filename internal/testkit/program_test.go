package testkit_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestProgramRunsToItsEnd(t *testing.T) {
	code, output := testkit.Binary(t).Run(t, 20*time.Second, testkit.Call{Args: []string{"version"}})
	if code != 0 || !strings.Contains(output, "tidegate") {
		t.Errorf("version: exit code %d, printed %q", code, output)
	}
}

func TestProgramReadsItsConfigAndEnvironment(t *testing.T) {
	call := testkit.Call{
		Args:   []string{"config", "show"},
		Env:    map[string]string{"TIDEGATE_SLOT_PUBLICATION": "from_env"},
		Config: testkit.ConfigText(t, "slot: {name: {{.}}}\n", "from_file"),
	}
	code, output := testkit.Binary(t).Run(t, 20*time.Second, call)
	if code != 0 || !strings.Contains(output, "from_env") || !strings.Contains(output, "from_file") {
		t.Errorf("config show: exit code %d, printed %q", code, output)
	}
}

func TestProgramIsReadyComparedMeasuredAndKilled(t *testing.T) {
	pg, nats := testkit.SharedPostgres(t), testkit.NATS(t)
	url := pg.Database(t)
	env := map[string]string{"TIDEGATE_POSTGRES_URL": url, "TIDEGATE_NATS_URL": nats.URL()}
	binary := testkit.Binary(t)
	if code, output := binary.Run(t, time.Minute, testkit.Call{Args: []string{"migrate", "up"}, Env: env}); code != 0 {
		t.Fatalf("migrate up: exit code %d, printed %q", code, output)
	}
	bridge := binary.Start(t, testkit.Call{Args: []string{"run"}, Env: env})
	bridge.WaitReady(t, time.Minute)
	testkit.Exec(t, url, `INSERT INTO outbox (aggregate_type, aggregate_id, event_type) SELECT 'order', n::text, 'placed' FROM generate_series(1, 10) n`)
	source := testkit.Value[string](t, url, "SELECT current_database()")
	if report := testkit.AllStored(t, time.Minute, url, nats, "OUTBOX", oracle.Outbox(source)); report.Stored != 10 {
		t.Errorf("10 rows committed: %v", report)
	}
	if bridge.Metric(t, "tidegate_build_info") != 1 {
		t.Error("there is no build_info")
	}
	if bridge.PeakMemory(t) < 1<<20 {
		t.Errorf("peak memory of %d bytes", bridge.PeakMemory(t))
	}
	bridge.Signal(t, syscall.SIGKILL)
	if code := bridge.Wait(t, 20*time.Second); code != -1 {
		t.Errorf("exit code %d of a killed process, want -1", code)
	}
}
