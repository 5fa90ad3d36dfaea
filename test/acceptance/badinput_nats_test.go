package acceptance_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// TestUnreachableNATSIsWaitedFor: a wrong address looks like a server that is being restarted, and may be one.
func TestUnreachableNATSIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.begun(t)
	s.nats.Stop(t)
	p := s.bin.Start(t, testkit.Call{Args: []string{"run"}, Config: s.config, Env: change{"TIDEGATE_HTTP_READY_GRACE": "100ms"}})
	waits(t, p, s.nats.Address())
	s.nats.Start(t)
	s.settled(t, 20*time.Second)
	stop(t, p)
	s.judge(t)
}

func TestStreamThatDoesNotFitIsRefusedBeforeTheSlotIsMade(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	s.insert(t, 3)
	for _, c := range []jetstream.StreamConfig{
		{Name: "NARROW", Subjects: []string{"outbox.order.o1"}},
		{Name: "OTHER", Subjects: []string{"taken.>"}},
		{Name: "SILENT", Subjects: []string{"silent.>"}, NoAck: true},
		{Name: "MIRROR", Mirror: &jetstream.StreamSource{Name: "OTHER"}},
	} {
		s.nats.Stream(t, c)
	}
	with := func(stream, subject string) change {
		return change{
			"TIDEGATE_SLOT_SNAPSHOT": "publish", "TIDEGATE_STREAMS": stream,
			"TIDEGATE_OUTBOXES": `[{"table": "public.outbox", "subject": "` + subject + `"}]`,
		}
	}
	for name, tc := range map[string]struct {
		change change
		want   refusal
	}{
		"no stream, and none may be made": {
			with(`[{"name": "NOWHERE", "create": false}]`, "x.{aggregate_id}"),
			refusal{exit.NATS, []string{"stream NOWHERE", "does not exist"}, "create: true"},
		},
		"a subject is not covered": {
			with(`[{"name": "NARROW", "create": false}]`, "outbox.{aggregate_type}.{aggregate_id}"),
			refusal{exit.NATS, []string{"stream NARROW", `"outbox.*.*"`}, "nats stream edit NARROW"},
		},
		"another stream has the subjects": {
			with(`[{"name": "FRESH"}]`, "taken.{aggregate_id}"),
			refusal{exit.NATS, []string{"stream FRESH", "overlap"}, "another stream has some of these subjects"},
		},
		"no acknowledgements": {
			with(`[{"name": "SILENT"}]`, "silent.{aggregate_id}"),
			refusal{exit.NATS, []string{"stream SILENT", "does not acknowledge"}, "--no-ack"},
		},
		"a mirror": {
			with(`[{"name": "MIRROR"}]`, "mirror.{aggregate_id}"),
			refusal{exit.NATS, []string{"stream MIRROR", "mirror"}, "name the stream that it mirrors"},
		},
	} {
		t.Run(name, func(t *testing.T) { s.refuses(t, tc.change, tc.want) })
	}
	if n := testkit.Value[int](t, s.url, "SELECT count(*)::int FROM pg_replication_slots WHERE slot_name = $1", s.slot(t)); n != 0 {
		t.Error("a slot was made although nothing can be published")
	}
	s.js = s.nats.JetStream(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.js.DeleteStream(ctx, "NARROW"); err != nil {
		t.Fatal(err)
	}
	s.recovers(t, change{"TIDEGATE_SLOT_SNAPSHOT": "publish"})
}

// TestNarrowedStreamIsDrift: the subjects of a stream are taken away while rows flow.
func TestNarrowedStreamIsDrift(t *testing.T) {
	t.Parallel()
	s := sharedScene(t)
	p := s.startWith(t, change{"TIDEGATE_PUBLISH_ACK_TIMEOUT": "300ms"})
	s.insert(t, 3)
	s.settled(t, 20*time.Second)
	narrow := func(subjects ...string) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		stream, err := s.js.Stream(ctx, "OUTBOX")
		if err != nil {
			t.Fatal(err)
		}
		c := stream.CachedInfo().Config
		c.Subjects = subjects
		if _, err := s.js.UpdateStream(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	narrow("outbox.nothing.*")
	s.insert(t, 2)
	code := p.Wait(t, 30*time.Second)
	refusal{exit.Drift, []string{"stream OUTBOX", "outbox."}, "nats stream edit OUTBOX"}.check(t, code, p.Log())
	narrow("outbox.*.*")
	s.recovers(t, nil)
}

func TestAccountWithoutJetStreamIsRefused(t *testing.T) {
	t.Parallel()
	s := sharedScene(t, testkit.NATSConf(`no_auth_user: app
		accounts { A { jetstream: enabled, users: [ {user: app, password: app} ] }, B { users: [ {user: plain, password: plain} ] } }`))
	s.begun(t)
	s.refuses(t, change{"TIDEGATE_NATS_USER": "plain", "TIDEGATE_NATS_PASSWORD": "plain"},
		refusal{exit.NATS, []string{"JetStream", "not enabled for account"}, "enable JetStream"})
	s.recovers(t, nil)
}
