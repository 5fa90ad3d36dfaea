package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

func TestStreamIsMadeAsConfigured(t *testing.T) {
	c := connect(t, startServer(t, nil))
	s := ensure(t, c, StreamConfig{Name: "S", MaxAge: time.Hour, DuplicateWindow: time.Minute}, "x.*", "y.>")
	if fmt.Sprint(s.Subjects) != "[x.* y.>]" || s.DuplicateWindow != time.Minute || s.Replicas != 1 ||
		s.Retention != jetstream.LimitsPolicy || s.Storage != jetstream.FileStorage || s.Discard != jetstream.DiscardNew {
		t.Fatalf("stream %+v", s)
	}
	put(t, c, rowFor(s, "a", 1))
	state, err := s.Info(testContext(t))
	if err != nil || state.First != 1 || state.Last != 1 || state.Messages != 1 || state.LastAt.IsZero() {
		t.Fatalf("state %+v, %v", state, err)
	}
}

// Every setting but the subjects is left as it is, those too that this client does not know.
func TestWideningAddsSubjectsAndChangesNothingElse(t *testing.T) {
	c := connect(t, startServer(t, nil))
	ctx := testContext(t)
	mine := map[string]any{
		"name": "S", "subjects": []string{"theirs", "x.one", "x.two"}, "storage": "memory", "retention": "limits",
		"max_msgs": 77, "max_age": int64(time.Hour), "duplicate_window": int64(time.Minute), "description": "mine", "discard": "old",
		"num_replicas": 1, "allow_atomic": true, "allow_batched": true, "metadata": map[string]string{"owner": "ops"},
	}
	var answer any
	if err := c.call(ctx, "STREAM.CREATE.S", mine, &answer); err != nil {
		t.Fatal(err)
	}
	before, err := c.streamInfo(ctx, "S")
	if err != nil {
		t.Fatal(err)
	}
	s := ensure(t, c, StreamConfig{Name: "S", MaxAge: time.Minute, Replicas: 3}, "x.*", "y.*")
	if fmt.Sprint(s.Subjects) != "[theirs x.* y.*]" {
		t.Errorf("subjects %v", s.Subjects)
	}
	after, err := c.streamInfo(ctx, "S")
	if err != nil {
		t.Fatal(err)
	}
	delete(before.raw, "subjects")
	delete(after.raw, "subjects")
	if b, a := asText(t, before.raw), asText(t, after.raw); b != a {
		t.Errorf("before %s\nafter  %s", b, a)
	}
	if again := ensure(t, c, StreamConfig{Name: "S"}, "x.*"); fmt.Sprint(again.Subjects) != "[theirs x.* y.*]" {
		t.Errorf("narrowed to %v", again.Subjects)
	}
}

func asText(t *testing.T, raw map[string]json.RawMessage) string {
	t.Helper()
	b, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestStreamThatCannotBeUsedSaysWhatToDo(t *testing.T) {
	c := connect(t, startServer(t, nil))
	ctx := testContext(t)
	for _, cfg := range []jetstream.StreamConfig{
		{Name: "NARROW", Subjects: []string{"n.a"}},
		{Name: "NOACK", Subjects: []string{"na.*"}, NoAck: true},
		{Name: "MIRROR", Mirror: &jetstream.StreamSource{Name: "NARROW"}},
		{Name: "SEALED", Subjects: []string{"s.*"}},
	} {
		if _, err := c.JetStream().CreateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.JetStream().UpdateStream(ctx, jetstream.StreamConfig{Name: "SEALED", Subjects: []string{"s.*"}, Sealed: true}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, subject, says string
		create              bool
	}{
		{"NONE", "none.*", "nats stream add NONE", false},
		{"NARROW", "n.*", `covers "n.*"`, false},
		{"OTHER", "n.*", "another stream has some of these subjects", true},
		{"NOACK", "na.*", "does not acknowledge", true},
		{"MIRROR", "m.*", "is a mirror", true},
		{"SEALED", "s.*", "is sealed", true},
	} {
		_, err := c.EnsureStream(ctx, StreamConfig{Name: tc.name, Create: tc.create}, []string{tc.subject}, false)
		var refused *StreamError
		if !errors.As(err, &refused) || !strings.Contains(err.Error()+": "+refused.Fix, tc.says) || refused.Fix == "" {
			t.Errorf("%s: %v", tc.name, err)
		}
		if class, _ := Classify(err); class != Fatal {
			t.Errorf("%s: class %d", tc.name, class)
		}
	}
}

func TestServerWithoutJetStreamSaysWhatToDo(t *testing.T) {
	c := connect(t, startServer(t, func(o *server.Options) { o.JetStream = false }))
	_, err := c.EnsureStream(testContext(t), StreamConfig{Name: "S", Create: true}, []string{"x"}, false)
	if err == nil || !strings.Contains(Explain(err), "enable JetStream") {
		t.Fatalf("error %v", err)
	}
}

func TestNarrowedStreamIsNoticed(t *testing.T) {
	c := connect(t, startServer(t, nil))
	s := ensure(t, c, StreamConfig{Name: "S"}, "x.*")
	if _, err := c.JetStream().UpdateStream(testContext(t), jetstream.StreamConfig{Name: "S", Subjects: []string{"x.a"}}); err != nil {
		t.Fatal(err)
	}
	var narrowed *NotCoveredError
	if err := s.Recheck(testContext(t)); !errors.As(err, &narrowed) || narrowed.Subject != "x.*" {
		t.Fatalf("a narrowed stream: %v", err)
	}
	if err := c.JetStream().DeleteStream(testContext(t), "S"); err != nil {
		t.Fatal(err)
	}
	var lost *LostError
	if err := s.Recheck(testContext(t)); !errors.As(err, &lost) {
		t.Fatalf("a deleted stream: %v", err)
	}
}
