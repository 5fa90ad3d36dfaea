package pgcluster_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
)

func newCluster(t *testing.T, options pgcluster.Options) *pgcluster.Cluster {
	t.Helper()
	cluster, err := pgcluster.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Remove() })
	return cluster
}

func start(t *testing.T, cluster *pgcluster.Cluster) {
	t.Helper()
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ask runs one statement by TCP and gives its single value.
func ask(ctx context.Context, url, sql string) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var answer string
	err = conn.QueryRow(ctx, sql).Scan(&answer)
	return answer, err
}

func run(t *testing.T, cluster *pgcluster.Cluster, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), cluster.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func mustAsk(t *testing.T, cluster *pgcluster.Cluster, sql string) string {
	t.Helper()
	answer, err := ask(t.Context(), cluster.URL("postgres"), sql)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestClusterDecodesLogicallyAndHasPostGIS(t *testing.T) {
	cluster := newCluster(t, pgcluster.Options{Conf: map[string]string{"search_path": "it's"}})
	start(t, cluster)
	for sql, want := range map[string]string{
		"SHOW wal_level":        "logical",
		"SHOW server_encoding":  "UTF8",
		"SHOW TimeZone":         "UTC",
		"SHOW listen_addresses": "127.0.0.1",
		"SELECT count(*)::text FROM pg_available_extensions WHERE name = 'postgis'": "1",
	} {
		if got := mustAsk(t, cluster, sql); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}

func TestCrashedClusterComesBackOnItsPortWithItsData(t *testing.T) {
	cluster := newCluster(t, pgcluster.Options{})
	start(t, cluster)
	port, pid := cluster.Port(), cluster.PID()
	run(t, cluster, "CREATE TABLE kept AS SELECT 42 AS n")
	for _, mode := range []pgcluster.Mode{pgcluster.Immediate, pgcluster.Fast} {
		if err := cluster.Restart(t.Context(), mode); err != nil {
			t.Fatal(err)
		}
		if got := mustAsk(t, cluster, "SELECT n::text FROM kept"); got != "42" {
			t.Fatalf("after a restart: %q, want 42", got)
		}
	}
	if cluster.Port() != port {
		t.Errorf("port %d after the restarts, was %d", cluster.Port(), port)
	}
	if cluster.PID() == pid {
		t.Error("the postmaster was not restarted")
	}
}

func TestStopTellsHowLongItTookAndStartIsIdempotent(t *testing.T) {
	cluster := newCluster(t, pgcluster.Options{})
	start(t, cluster)
	pid := cluster.PID()
	start(t, cluster)
	if cluster.PID() != pid {
		t.Error("a second Start replaced the postmaster")
	}
	took, err := cluster.Stop(t.Context(), pgcluster.Fast)
	if err != nil || took <= 0 {
		t.Fatalf("Stop: %v, %v", took, err)
	}
	if cluster.PID() != 0 {
		t.Error("a stopped cluster has a process id")
	}
	if _, err := cluster.Stop(t.Context(), pgcluster.Fast); err != nil {
		t.Errorf("Stop of a stopped cluster: %v", err)
	}
}

func TestRemoveLeavesNeitherProcessNorFolder(t *testing.T) {
	cluster := newCluster(t, pgcluster.Options{})
	start(t, cluster)
	pid := cluster.PID()
	for range 2 {
		if err := cluster.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("postmaster %d: %v, want it gone", pid, err)
	}
	if _, err := os.Stat(cluster.DataDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("data folder: %v, want it gone", err)
	}
}

func TestPasswordIsAskedForByTCP(t *testing.T) {
	cluster := newCluster(t, pgcluster.Options{Password: "it's a secret"})
	start(t, cluster)
	mustAsk(t, cluster, "SELECT current_user::text")
	wrong := "postgres://postgres:guess@127.0.0.1:" + strconv.Itoa(cluster.Port()) + "/postgres?sslmode=disable"
	if _, err := ask(t.Context(), wrong, "SELECT ''"); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("a wrong password: %v, want SQLSTATE 28P01", err)
	}
}

func TestBadSettingFailsTheStartWithTheServersOwnWords(t *testing.T) {
	cluster := newCluster(t, pgcluster.Options{Conf: map[string]string{"no_such_setting": "1"}})
	err := cluster.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Fatalf("Start: %v, want it to name no_such_setting", err)
	}
	if cluster.PID() != 0 {
		t.Error("a cluster that did not start has a process id")
	}
}

func TestPortTakenBeforeTheFirstStartIsReplaced(t *testing.T) {
	cluster := newCluster(t, pgcluster.Options{})
	taken := cluster.Port()
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(taken))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	start(t, cluster)
	if cluster.Port() == taken {
		t.Error("the cluster says that it has a port that another process has")
	}
	mustAsk(t, cluster, "SELECT ''")
}

func TestChangedSettingCountsFromTheNextStart(t *testing.T) {
	cluster := newCluster(t, pgcluster.Options{})
	start(t, cluster)
	if err := cluster.Set("max_connections", "33"); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Restart(t.Context(), pgcluster.Fast); err != nil {
		t.Fatal(err)
	}
	if got := mustAsk(t, cluster, "SHOW max_connections"); got != "33" {
		t.Errorf("max_connections %s, want 33", got)
	}
}
