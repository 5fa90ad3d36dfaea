package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/exit"
)

// load reads YAML and environment as a user would give them.
func load(t *testing.T, yaml string, environ ...string) (*config.Config, *config.Origins, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tidegate.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(config.Options{File: file, Environ: append([]string{}, environ...)})
}

func mustLoad(t *testing.T, yaml string, environ ...string) (*config.Config, *config.Origins) {
	t.Helper()
	cfg, origins, err := load(t, yaml, environ...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, origins
}

// problems gives what is wrong with a configuration, with the file's name left out.
func problems(t *testing.T, yaml string, environ ...string) config.Problems {
	t.Helper()
	_, _, err := load(t, yaml, environ...)
	var ps config.Problems
	if err != nil && !errors.As(err, &ps) {
		t.Fatalf("error of type %T: %v", err, err)
	}
	for i := range ps {
		if at := strings.Index(ps[i].Origin, "tidegate.yaml"); at >= 0 {
			ps[i].Origin = ps[i].Origin[at:]
		}
	}
	return ps
}

func TestDefaultsAloneAreAConfiguration(t *testing.T) {
	t.Setenv("PGDATABASE", "shop")
	cfg, origins := mustLoad(t, "")
	if cfg.Source.Name != "shop" || cfg.Slot.Name != "tidegate" || !cfg.Slot.Create || cfg.Slot.HeartbeatInterval != 0 {
		t.Errorf("source and slot: %+v %+v", cfg.Source, cfg.Slot)
	}
	stream := config.Stream{Name: "OUTBOX", Create: true, Replicas: 1, MaxAge: 168 * time.Hour, DuplicateWindow: 2 * time.Minute}
	if len(cfg.Streams) != 1 || cfg.Streams[0] != stream {
		t.Errorf("streams: %+v", cfg.Streams)
	}
	outbox := config.Outbox{Table: "public.outbox", Kind: "event", Stream: "OUTBOX", Subject: "outbox.{aggregate_type}.{aggregate_id}", Rows: "kept"}
	if len(cfg.Outboxes) != 1 || cfg.Outboxes[0] != outbox {
		t.Errorf("outboxes: %+v", cfg.Outboxes)
	}
	publish := config.Publish{Mode: "lanes", MaxInFlight: 4096, MaxInFlightBytes: 64 << 20, AckTimeout: 5 * time.Second, MaxRow: 16 << 20}
	if cfg.Publish != publish {
		t.Errorf("publish: %+v", cfg.Publish)
	}
	if cfg.Monitor.Warn.Used != 0.5 || cfg.Monitor.Critical.Inactive != 5*time.Minute || cfg.Park != (config.Park{Store: "postgres", Order: "hold", MaxRows: 10000}) {
		t.Errorf("monitor and park: %+v %+v", cfg.Monitor, cfg.Park)
	}
	if got := origins.Of("slot.name"); got != "default" {
		t.Errorf("origin of a default: %q", got)
	}
}

func TestStrongerSourceWinsAndIsNamed(t *testing.T) {
	file := "slot: {name: from_file, publication: from_file, snapshot: skip}\nlog:\n  level: warn\n"
	path := filepath.Join(t.TempDir(), "tidegate.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse([]string{"--slot", "from_flag"}); err != nil {
		t.Fatal(err)
	}
	environ := []string{"TIDEGATE_SLOT_NAME=from_env", "TIDEGATE_SLOT_PUBLICATION=from_env", "TIDEGATE_LOG_FORMAT=", "HOME=/root"}
	cfg, origins, err := config.Load(config.Options{File: path, Environ: environ, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ key, got, want, origin string }{
		{"slot.name", cfg.Slot.Name, "from_flag", "flag --slot"},
		{"slot.publication", cfg.Slot.Publication, "from_env", "environment TIDEGATE_SLOT_PUBLICATION"},
		{"slot.snapshot", cfg.Slot.Snapshot, "skip", path + ":1"},
		{"log.level", cfg.Log.Level, "warn", path + ":3"},
		{"log.format", cfg.Log.Format, "auto", "default"},
	}
	for _, tt := range tests {
		if tt.got != tt.want || origins.Of(tt.key) != tt.origin {
			t.Errorf("%s = %q (%s), want %q (%s)", tt.key, tt.got, origins.Of(tt.key), tt.want, tt.origin)
		}
	}
}

func TestEveryKeyIsAnEnvironmentVariable(t *testing.T) {
	environ := []string{
		"TIDEGATE_STREAMS=[{\"name\":\"A\",\"replicas\":3},{\"name\":\"B\",\"max_age\":\"0\"}]",
		`TIDEGATE_OUTBOXES=[{"table":"app.events","stream":"A"},{"table":"app.places","kind":"feature","stream":"B","h3_resolution":10,"feature":{"table":"app.features"}}]`,
	}
	for _, k := range config.Keys() {
		if k.Env() == "" || k.Default == "" || k.Path == "nats.url" {
			continue
		}
		environ = append(environ, k.Env()+"="+k.Default)
	}
	cfg, origins := mustLoad(t, "streams: [{name: OTHER}]", environ...)
	if len(cfg.Streams) != 2 || cfg.Streams[0].Replicas != 3 || cfg.Streams[1].MaxAge != 0 {
		t.Errorf("streams: %+v", cfg.Streams)
	}
	if got := cfg.Outboxes[1]; got.H3Resolution != 10 || got.Feature.Collection != "features" || got.Geometry != "lookup" {
		t.Errorf("outbox: %+v", got)
	}
	if got := origins.Of("outboxes[1].feature.table"); got != "environment TIDEGATE_OUTBOXES" {
		t.Errorf("origin: %q", got)
	}
	for _, k := range config.Keys() {
		if k.Env() != "" && k.Default != "" && k.Path != "nats.url" && origins.Of(k.Path) != "environment "+k.Env() {
			t.Errorf("%s came from %q", k.Path, origins.Of(k.Path))
		}
	}
}

func TestVariablesOfAKubernetesServiceAreIgnored(t *testing.T) {
	mustLoad(t, "", "TIDEGATE_PORT=tcp://10.0.0.1:9464", "TIDEGATE_PORT_9464_TCP_ADDR=10.0.0.1", "TIDEGATE_SERVICE_HOST=10.0.0.1", "TIDEGATE_SERVICE_PORT_METRICS=9464")
}

func TestFileMayBeMissingOnlyWhenNobodyNamedIt(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, _, err := config.Load(config.Options{Environ: []string{}}); err != nil {
		t.Errorf("no file: %v", err)
	}
	for _, o := range []config.Options{
		{Environ: []string{"TIDEGATE_CONFIG=gone.yaml"}},
		{Environ: []string{}, File: "gone.yaml"},
	} {
		_, _, err := config.Load(o)
		if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "gone.yaml") {
			t.Errorf("named file is missing: %v", err)
		}
	}
}

func TestSecretsAreReadFromFiles(t *testing.T) {
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("s3cret \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, origins := mustLoad(t, "nats: {user: u, password: weaker}", "TIDEGATE_NATS_PASSWORD_FILE="+password)
	if cfg.NATS.Password != "s3cret " {
		t.Errorf("password %q", cfg.NATS.Password)
	}
	if got := origins.Of("nats.password"); got != "environment TIDEGATE_NATS_PASSWORD_FILE, file "+password {
		t.Errorf("origin %q", got)
	}
	cfg, _ = mustLoad(t, "nats: {user: u, password_file: "+password+"}", "TIDEGATE_NATS_PASSWORD=stronger")
	if cfg.NATS.Password != "stronger" {
		t.Errorf("password %q", cfg.NATS.Password)
	}
	ps := problems(t, "nats:\n  user: u\n  password: a\n  password_file: b\n")
	if len(ps) != 1 || ps[0].Reason != "is given twice, as password and as password_file" {
		t.Errorf("given twice: %v", ps)
	}
	ps = problems(t, "nats: {user: u, password_file: "+dir+"/gone}")
	if len(ps) == 0 || !strings.Contains(ps[0].Reason, "no such file") {
		t.Errorf("missing file: %v", ps)
	}
}

func TestGivenColumnsAreCompletedAndOthersLeftToTheTable(t *testing.T) {
	cfg, _ := mustLoad(t, `
outboxes:
  - table: public.outbox
  - table: public.mapped
    columns: {headers: meta, created_at: ""}
  - table: public.places
    kind: feature
    columns: {routing_key: cell}
    feature: {table: gis.places}
`)
	if got := event.Columns(cfg.Outboxes[0].Columns); got != (event.Columns{}) {
		t.Errorf("columns that were not given: %+v", got)
	}
	want := event.DefaultColumns(event.KindEvent)
	want.Headers, want.CreatedAt = "meta", ""
	if got := event.Columns(cfg.Outboxes[1].Columns); got != want {
		t.Errorf("kind event: %+v", got)
	}
	want = event.DefaultColumns(event.KindFeature)
	want.RoutingKey = "cell"
	if got := event.Columns(cfg.Outboxes[2].Columns); got != want {
		t.Errorf("kind feature: %+v", got)
	}
	if o := cfg.Outboxes[2]; o.Subject != "geo.{collection}.{event_type}.{h3}" || o.Feature.Collection != "places" {
		t.Errorf("outbox: %+v", o)
	}
}

func TestSourceIsNamedAfterTheDatabase(t *testing.T) {
	cfg, origins := mustLoad(t, "postgres: {url: 'postgres://app@localhost/orders'}")
	if cfg.Source.Name != "orders" || origins.Of("source.name") != "default, the database's name" {
		t.Errorf("%q from %q", cfg.Source.Name, origins.Of("source.name"))
	}
	cfg, _ = mustLoad(t, "postgres: {url: host=localhost user=app}\nsource: {name: eu-1}")
	if cfg.Source.Name != "eu-1" {
		t.Errorf("%q", cfg.Source.Name)
	}
}
