package config_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/config"
)

const whole = `
source: {name: orders}
postgres: {url: 'postgres://tidegate@db/app', lookup_url: host=replica}
slot: {heartbeat_interval: 0, snapshot: skip, failover: on}
streams: [{name: A, max_age: 36h, replicas: 3}, {name: B, duplicate_window: 90s, create: false}]
outboxes:
  - {table: public.outbox, stream: A}
  - {table: public.mapped, stream: A, columns: {headers: meta, created_at: ""}, order_by: nr}
  - {table: public.places, stream: B, kind: feature, columns: {routing_key: cell}, feature: {table: gis.places, assume_srid: 25832}, h3_point: centroid}
nats: {url: 'nats://a,nats://b', inbox_prefix: _MINE}
publish: {max_in_flight_bytes: 100MB, ack_timeout: 1500ms, max_row: 1000001}
`

func TestShownConfigurationLoadsAgainAsTheSame(t *testing.T) {
	cfg, origins := mustLoad(t, whole)
	var shown bytes.Buffer
	if err := config.WriteYAML(&shown, cfg, origins); err != nil {
		t.Fatal(err)
	}
	again, _, err := load(t, shown.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, shown.String())
	}
	if !reflect.DeepEqual(cfg, again) {
		t.Errorf("got  %+v\nwant %+v\nfrom\n%s", again, cfg, shown.String())
	}
	if line := regexp.MustCompile(`name: orders +# .*tidegate\.yaml:2\n`); !line.MatchString(shown.String()) {
		t.Errorf("no origin behind source.name:\n%s", shown.String())
	}
}

func TestShownJSONHoldsValuesAndOrigins(t *testing.T) {
	cfg, origins := mustLoad(t, whole)
	var shown bytes.Buffer
	if err := config.WriteJSON(&shown, cfg, origins); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Config struct {
			Slot    map[string]any
			Publish map[string]any
			Streams []map[string]any
		}
		Origins map[string]string
	}
	if err := json.Unmarshal(shown.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Config.Slot["create"] != true || got.Config.Publish["ack_timeout"] != "1.5s" || got.Config.Streams[0]["replicas"] != 3.0 {
		t.Errorf("config: %+v", got.Config)
	}
	if got.Origins["streams[1].replicas"] != "default" {
		t.Errorf("origins: %v", got.Origins)
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	tests := map[string]string{
		"postgres.url":             "postgres://u:hunter2@h1:5432,h2:5432/db?sslpassword=hunter2&sslmode=disable",
		"postgres.replication_url": `host=h user=u password = 'hunter2 \' hunter2' dbname=d`,
		"postgres.lookup_url":      "postgres://h/db?user=u&pass%77ord=hunter2",
		"nats.url":                 "nats://u:hunter2@a:4222, tls://hunter2@b",
		"nats.password":            "hunter2",
		"nats.token":               "hunter2",
	}
	for key, value := range tests {
		group, name, _ := strings.Cut(key, ".")
		yaml := group + ":\n  " + name + ": " + quote(value) + "\n"
		if key == "nats.password" {
			yaml += "  user: u\n"
		}
		cfg, origins := mustLoad(t, yaml)
		var shown bytes.Buffer
		if err := config.WriteYAML(&shown, cfg, origins); err != nil {
			t.Fatal(err)
		}
		if err := config.WriteJSON(&shown, cfg, origins); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(shown.String(), "hunter2") {
			t.Errorf("%s is shown", key)
		}
		if strings.Count(shown.String(), "*****") < 2 {
			t.Errorf("%s is not shown masked:\n%s", key, shown.String())
		}
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func TestPasswordsInAddressesAreMasked(t *testing.T) {
	tests := map[string]string{
		"postgres://u:hunter2@h/db":                 "postgres://u:*****@h/db",
		"postgres://u@h/db?sslmode=require":         "postgres://u@h/db?sslmode=require",
		"postgres://u:12#hunter2@h/db":              "*****",
		"postgres://u:hun/ter2@h/db":                "*****",
		"postgres://u:12/hunter2@h/db":              "*****",
		"host=h password=hunter2 user=u":            "host=h password=***** user=u",
		`password='hunter2\'' user=u`:               "password=***** user=u",
		`user=u password=hun\ ter2 host=h`:          `user=u password=***** host=h`,
		"host=h passfile=/home/u/.pgpass dbname=db": "host=h passfile=/home/u/.pgpass dbname=db",
	}
	for address, want := range tests {
		if got := config.Address(address); got != want {
			t.Errorf("%s shown as %s, want %s", address, got, want)
		}
	}
}
