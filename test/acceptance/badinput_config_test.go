package acceptance_test

import (
	"net"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestWrongConfigurationIsNamedBeforeAnythingIsTouched(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	before := s.messages(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, tc := range map[string]struct {
		file   string // added to the configuration
		change change
		want   refusal
	}{
		"unknown key": {file: "publsh: {mode: lanes}\n", want: refusal{exit.Usage, []string{"publsh", "tidegate.yaml"}, "publish"}},
		"unknown variable": {
			change: change{"TIDEGATE_SLOT_NAM": "x"},
			want:   refusal{exit.Usage, []string{"TIDEGATE_SLOT_NAM"}, "TIDEGATE_SLOT_NAME"},
		},
		"impossible relation of sizes": {
			change: change{"TIDEGATE_PUBLISH_MAX_ROW": "128MiB"},
			want:   refusal{exit.Usage, []string{"publish.max_row", "128MiB", "publish.max_in_flight_bytes"}, "raise publish.max_in_flight_bytes"},
		},
		"impossible relation of times": {
			change: change{"TIDEGATE_STREAMS": `[{"name": "OUTBOX", "max_age": "1m", "duplicate_window": "2m"}]`},
			want:   refusal{exit.Usage, []string{"streams[0].duplicate_window", "streams[0].max_age"}, "lower streams[0].duplicate_window"},
		},
		"outbox without its stream": {
			change: change{"TIDEGATE_OUTBOXES": `[{"table": "public.outbox", "stream": "OUTBOXES"}]`},
			want:   refusal{exit.Usage, []string{"streams[0].name", "OUTBOX", "is named by no outbox"}, "did you mean OUTBOX?"},
		},
		"not in this version": {
			change: change{"TIDEGATE_SOURCE_KIND": "poll"},
			want:   refusal{exit.Usage, []string{"source.kind", "poll", "not in this version"}, ""},
		},
		"listener in use": {
			change: change{"TIDEGATE_HTTP_LISTEN": busy.Addr().String()},
			want:   refusal{exit.Usage, []string{busy.Addr().String(), "in use"}, "http.listen"},
		},
		"unreadable Postgres URL": {
			change: change{"TIDEGATE_POSTGRES_URL": "postgres://app:hunter2@localhost:notaport/app"},
			want:   refusal{exit.Usage, []string{"postgres.url"}, "postgres://user@host:5432/database"},
		},
		"unreadable NATS URL": {
			change: change{"TIDEGATE_NATS_URL": "http://localhost:4222"},
			want:   refusal{exit.Usage, []string{"nats.url", "http"}, "nats://localhost:4222"},
		},
		"two ways to log in": {
			change: change{"TIDEGATE_NATS_TOKEN": "secret", "TIDEGATE_NATS_USER": "u", "TIDEGATE_NATS_PASSWORD": "secret"},
			want:   refusal{exit.Usage, []string{"nats.user", "nats.token"}, "keep one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, output := s.bin.Run(t, 10*time.Second, testkit.Call{Args: []string{"run"}, Config: s.config + tc.file, Env: tc.change})
			tc.want.check(t, code, output)
		})
	}
	if n := s.messages(t); n != before {
		t.Errorf("%d messages were published under a wrong configuration", n-before)
	}
	s.recovers(t, nil)
}
