package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/demo"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
	"github.com/tidegate-cdc/tidegate/internal/relay"
)

// theBridge is what "tidegate run" runs.
func theBridge(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	b, err := relay.New(cfg, log)
	if err != nil {
		return err
	}
	return b.Run(ctx)
}

// screen is where a demo prints. It may call a function when a text appears.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen map[string]func()
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for text, do := range s.seen {
		if bytes.Contains(p, []byte(text)) {
			delete(s.seen, text)
			do()
		}
	}
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// wantNothingRunning fails when the PostgreSQL that the demo spoke of still listens.
func wantNothingRunning(t *testing.T, progress *screen) {
	t.Helper()
	port := regexp.MustCompile(`PostgreSQL on port (\d+)`).FindStringSubmatch(progress.String())
	if port == nil {
		t.Fatalf("no port in %s", progress)
	}
	if conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port[1], time.Second); err == nil {
		conn.Close()
		t.Error("PostgreSQL still runs")
	}
}

func TestDemoPublishesEveryCommittedRowOnce(t *testing.T) {
	var out, progress screen
	err := demo.Run(t.Context(), demo.Options{Duration: 3 * time.Second, Rate: 200, JSON: true, Out: &out, Progress: &progress, Bridge: theBridge})
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, &progress, &out)
	}
	var s demo.Summary
	if err := json.Unmarshal([]byte(out.String()), &s); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	if s.Committed < 200 || s.Published != s.Committed || s.RolledBack == 0 {
		t.Errorf("%+v", s)
	}
	wantNothingRunning(t, &progress)
}

func TestInterruptedDemoStillComparesWhatWasCommitted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out := &screen{seen: map[string]func(){"outbox.order.": interrupt}}
	var progress screen
	err := demo.Run(ctx, demo.Options{Rate: 100, Out: out, Progress: &progress, Bridge: theBridge})
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, &progress, out)
	}
	for _, line := range []string{"missing           0\n", "duplicates        0\n", "out of order      0\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in %s", line, out)
		}
	}
	wantNothingRunning(t, &progress)
}

func TestDemoThatIsCancelledWhileStartingLeavesNothing(t *testing.T) {
	for _, step := range []string{"making a cluster", "starting PostgreSQL", "creating the tables", "starting the bridge"} {
		t.Run(step, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			progress := &screen{seen: map[string]func(){step: interrupt}}
			err := demo.Run(ctx, demo.Options{Rate: 1, Out: &screen{}, Progress: progress, Bridge: theBridge})
			if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "initdb") {
				t.Errorf("error %v", err)
			}
			if step != "making a cluster" {
				wantNothingRunning(t, progress)
			}
		})
	}
}

func TestBridgeThatFailsEndsTheDemoWithItsError(t *testing.T) {
	cause := &exit.Error{Code: exit.NATS, Err: errors.New("stream is not ours"), Hint: "look"}
	failing := func(context.Context, *config.Config, *slog.Logger) error { return cause }
	var progress screen
	err := demo.Run(t.Context(), demo.Options{Rate: 1, Out: &screen{}, Progress: &progress, Bridge: failing})
	if !errors.Is(err, cause) || exit.Code(err) != exit.NATS {
		t.Errorf("error %v with code %d", err, exit.Code(err))
	}
	wantNothingRunning(t, &progress)
}

// lossy is a bridge after which the stream lacks its first message.
func lossy(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if err := theBridge(ctx, cfg, log); err != nil {
		return err
	}
	conn, err := nats.Connect(cfg.NATS.URL)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, cfg.Streams[0].Name)
	if err != nil {
		return err
	}
	return stream.DeleteMsg(ctx, 1)
}

func TestLossIsFound(t *testing.T) {
	var out, progress screen
	err := demo.Run(t.Context(), demo.Options{Duration: time.Second, Rate: 50, Out: &out, Progress: &progress, Bridge: lossy})
	if exit.Code(err) != exit.Found || !strings.Contains(err.Error(), "missing 1") {
		t.Errorf("error %v with code %d\n%s", err, exit.Code(err), &out)
	}
	if !strings.Contains(out.String(), "missing           1\n") {
		t.Errorf("no missing row in %s", &out)
	}
}

func TestKeptDemoCanBeLookedAt(t *testing.T) {
	var out, progress screen
	err := demo.Run(t.Context(), demo.Options{
		Duration: time.Second, Rate: 50, Keep: true, JSON: true, Out: &out, Progress: &progress, Bridge: theBridge,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var s demo.Summary
	if err := json.Unmarshal([]byte(out.String()), &s); err != nil || s.Folder == "" {
		t.Fatalf("%v, folder %q", err, s.Folder)
	}
	t.Cleanup(func() { os.RemoveAll(s.Folder) })
	for _, name := range []string{"postgres/PG_VERSION", "jetstream", "bridge.log", "tidegate.yaml"} {
		if _, err := os.Stat(filepath.Join(s.Folder, name)); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(progress.String(), "kept in "+s.Folder) {
		t.Errorf("the folder is not named in %s", &progress)
	}
	wantNothingRunning(t, &progress)
}

func TestMissingPostgreSQLSaysWhatToDo(t *testing.T) {
	t.Setenv(pgcluster.BinEnv, t.TempDir())
	err := demo.Run(t.Context(), demo.Options{Rate: 1, Out: &screen{}, Progress: &screen{}})
	if exit.Code(err) != exit.Postgres || !strings.Contains(exit.Hint(err), "make setup") {
		t.Errorf("error %v, code %d, hint %q", err, exit.Code(err), exit.Hint(err))
	}
}
