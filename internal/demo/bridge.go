package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
)

// Bridge runs the bridge until ctx ends, and then ends it in good order.
type Bridge func(ctx context.Context, cfg *config.Config, log *slog.Logger) error

const (
	source       = "demo"
	stream       = "OUTBOX"
	pollInterval = 20 * time.Millisecond
	readyTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// settings is the bridge's configuration file: what differs from the defaults.
const settings = `# The configuration of the demo's bridge.
source: {name: %s}
postgres: {url: %q}
slot: {name: tidegate_demo, publication: tidegate_demo}
streams:
  - name: %s
outboxes:
  - table: public.outbox
    subject: "outbox.{aggregate_type}.{aggregate_id}"
  - table: public.feature_outbox
    kind: feature
    subject: "geo.{collection}.{event_type}.{h3}"
    feature: {table: public.features}
nats: {url: %q}
http: {listen: "127.0.0.1:%d"}
`

// configure writes the configuration into the folder and reads it as "tidegate run" would, without the environment.
func (g *ground) configure() (*config.Config, error) {
	port, err := pgcluster.FreePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(g.dir, "tidegate.yaml")
	text := fmt.Sprintf(settings, source, g.postgres.URL(database), stream, g.natsURL, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write the bridge's configuration: %w", err)
	}
	cfg, _, err := config.Load(config.Options{File: file, Environ: []string{}})
	if err != nil {
		return nil, fmt.Errorf("read the bridge's configuration: %w", err)
	}
	return cfg, nil
}

// running is the bridge at work.
type running struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // valid once ended
	log    *os.File
}

// startBridge runs the bridge, which goes on when ctx ends, and returns once it is ready.
func (g *ground) startBridge(ctx context.Context, bridge Bridge) (*running, error) {
	cfg, err := g.configure()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(g.dir, "bridge.log"))
	if err != nil {
		return nil, fmt.Errorf("make the bridge's log: %w", err)
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{cancel: cancel, ended: make(chan struct{}), log: log}
	go func() {
		defer close(r.ended)
		r.err = bridge(own, cfg, slog.New(slog.NewTextHandler(log, nil)))
	}()
	if err := r.waitReady(ctx, "http://"+cfg.HTTP.Listen+"/readyz"); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

func (r *running) waitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return poll(ctx, "wait for the bridge to be ready", func() (bool, error) {
		select {
		case <-r.ended:
			return false, errEnded
		default:
		}
		return answersOK(ctx, url), nil
	})
}

func answersOK(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false // not listening yet
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

var errEnded = errors.New("the bridge ended by itself")

// stop ends the bridge in good order and gives its error.
func (r *running) stop() error {
	r.cancel()
	defer r.log.Close()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		return errors.New("stop the bridge: it still runs after " + stopTimeout.String())
	}
	if r.err != nil && !errors.Is(r.err, context.Canceled) {
		return fmt.Errorf("the bridge ended: %w", r.err)
	}
	return nil
}

// poll asks until the answer is yes or an error.
func poll(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if yes, err := done(); yes || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}
