package publish

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
)

func testCheckpoint() *Checkpoint {
	return &Checkpoint{
		Source:      "app.prod",
		Identity:    Identity{SystemID: "7301234567890123456", DatabaseOID: 16384, Database: "app", Slot: "tidegate"},
		W:           event.Position{Timeline: 1, Commit: 0x16B374D848, Index: 7},
		CommittedAt: time.Date(2026, 11, 30, 22, 53, 39, 123456000, time.UTC),
		Confirmable: 0x16B374D900,
		Streams:     map[string]Mark{"OUTBOX": {Seq: 42, MsgID: "app.prod/public.outbox/7"}},
		Subjects:    map[string][]string{"OUTBOX": {"outbox.*.*"}},
		Phase:       PhaseInitial,
		InitialFrom: map[string]Mark{"OUTBOX": {Seq: 1}},
		Witnesses: map[string]Witness{"OUTBOX": {
			Created: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Seq: 41, MsgID: "app.prod/public.outbox/6",
			StoredAt: time.Date(2026, 11, 30, 22, 53, 38, 0, time.UTC), MaxAge: time.Hour, Limited: true,
		}},
		OtherHistory: map[string]uint64{"OUTBOX": 12},
		AcceptedAt:   time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC),
		WrittenAt:    time.Date(2026, 11, 30, 22, 53, 40, 0, time.UTC),
	}
}

func openCheckpoints(t *testing.T, c *Conn) (*Checkpoints, *Checkpoint) {
	t.Helper()
	k, err := OpenCheckpoints(testContext(t), c, 1, jetstream.FileStorage)
	if err != nil {
		t.Fatal(err)
	}
	cp, err := k.Load(testContext(t), "app.prod")
	if err != nil {
		t.Fatal(err)
	}
	return k, cp
}

func TestCheckpointIsReadAsItWasWritten(t *testing.T) {
	c := connect(t, startServer(t, nil))
	k, none := openCheckpoints(t, c)
	if none != nil {
		t.Fatalf("a checkpoint before the first was written: %+v", none)
	}
	want := testCheckpoint()
	for range 3 {
		want.W.Index++
		if err := k.Save(testContext(t), want); err != nil {
			t.Fatal(err)
		}
	}
	if _, got := openCheckpoints(t, c); !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	bare := &Checkpoint{Source: "app.prod"}
	if err := k.Save(testContext(t), bare); err != nil {
		t.Fatal(err)
	}
	if _, got := openCheckpoints(t, c); !reflect.DeepEqual(got, bare) {
		t.Fatalf("got  %+v\nwant %+v", got, bare)
	}
}

func TestDeletedCheckpointIsNone(t *testing.T) {
	c := connect(t, startServer(t, nil))
	k, _ := openCheckpoints(t, c)
	if err := k.Save(testContext(t), testCheckpoint()); err != nil {
		t.Fatal(err)
	}
	if err := k.kv.Delete(testContext(t), "app.prod"); err != nil {
		t.Fatal(err)
	}
	again, none := openCheckpoints(t, c)
	if none != nil {
		t.Fatalf("a deleted checkpoint is %+v", none)
	}
	if err := again.Save(testContext(t), testCheckpoint()); err != nil {
		t.Fatalf("write after the deletion: %v", err)
	}
}

func TestCheckpointOfAnotherWriterIsStolen(t *testing.T) {
	c := connect(t, startServer(t, nil))
	first, _ := openCheckpoints(t, c)
	second, _ := openCheckpoints(t, c)
	if err := first.Save(testContext(t), testCheckpoint()); err != nil {
		t.Fatal(err)
	}
	err := second.Save(testContext(t), testCheckpoint())
	var stolen *StolenError
	if !errors.As(err, &stolen) || stolen.Source != "app.prod" {
		t.Fatalf("error %v", err)
	}
	if class, _ := Classify(err); class != Fatal {
		t.Fatalf("class %v", class)
	}
	if err := first.Save(testContext(t), testCheckpoint()); err != nil {
		t.Fatalf("the owner can no longer write: %v", err)
	}
}

// An earlier attempt is applied after it was found not to be: the entry is our own all the same.
func TestCheckpointAppliedLateIsNotTakenForAnothers(t *testing.T) {
	c := connect(t, startServer(t, nil))
	k, _ := openCheckpoints(t, c)
	older, newer := testCheckpoint(), testCheckpoint()
	newer.W.Index = 99
	data, err := older.encode(k.writer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.kv.Update(testContext(t), "app.prod", data, 0); err != nil {
		t.Fatal(err)
	}
	if err := k.Save(testContext(t), newer); err != nil {
		t.Fatal(err)
	}
	if _, got := openCheckpoints(t, c); got.W.Index != 99 {
		t.Fatalf("the entry is %+v", got)
	}
}

// The checkpoint that a process knows never gets older without somebody's hand.
func TestCheckpointThatIsGoneOrOlderIsLost(t *testing.T) {
	older := testCheckpoint()
	older.Confirmable--
	for _, tc := range []struct {
		name string
		do   func(ctx context.Context, c *Conn, kv jetstream.KeyValue) error
		says string
	}{
		{"key deleted", func(ctx context.Context, _ *Conn, kv jetstream.KeyValue) error { return kv.Delete(ctx, "app.prod") }, "was deleted"},
		{"key purged", func(ctx context.Context, _ *Conn, kv jetstream.KeyValue) error { return kv.Purge(ctx, "app.prod") }, "was deleted"},
		{"bucket deleted", func(ctx context.Context, c *Conn, _ jetstream.KeyValue) error {
			return c.js.DeleteKeyValue(ctx, Bucket)
		}, "bucket tidegate was deleted"},
		{"bucket made again", func(ctx context.Context, c *Conn, _ jetstream.KeyValue) error {
			_ = c.js.DeleteKeyValue(ctx, Bucket)
			_, err := c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: Bucket})
			return err
		}, "was deleted"},
		{"older entry put", func(ctx context.Context, _ *Conn, kv jetstream.KeyValue) error {
			data, _ := older.encode("another")
			_, err := kv.Put(ctx, "app.prod", data)
			return err
		}, "set back"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := connect(t, startServer(t, nil))
			k, _ := openCheckpoints(t, c)
			if err := k.Save(testContext(t), testCheckpoint()); err != nil {
				t.Fatal(err)
			}
			if err := k.Verify(testContext(t)); err != nil {
				t.Fatal(err)
			}
			if err := tc.do(testContext(t), c, k.kv); err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				name string
				err  error
			}{
				{"verify", k.Verify(testContext(t))},
				{"save", k.Save(testContext(t), testCheckpoint())},
				{"load", func() error { _, err := k.Load(testContext(t), "app.prod"); return err }()},
			} {
				var lost *LostCheckpointError
				if !errors.As(step.err, &lost) || !strings.Contains(step.err.Error(), tc.says) || !strings.Contains(step.err.Error(), "16/B374D900") {
					t.Errorf("%s: %v", step.name, step.err)
				}
				if class, _ := Classify(step.err); class != Fatal {
					t.Errorf("%s: class %v", step.name, class)
				}
			}
		})
	}
}

func TestSourceNamesThatAreNoKeysAreRefused(t *testing.T) {
	for _, name := range []string{"", ".a", "a.", "a..b", "a b", "a/b", "a>", "é"} {
		if checkSource(name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
	for _, name := range []string{"a", "app.prod", "A-b_9"} {
		if err := checkSource(name); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckpointThatCannotBeReadSaysSo(t *testing.T) {
	for _, data := range []string{
		``, `{`, `{"version":2}`, `{"version":1,"confirmable":"x"}`,
		`{"version":1,"confirmable":"0/0","w":"1-2-3"}`,
	} {
		if cp, _, err := decodeCheckpoint([]byte(data)); err == nil {
			t.Errorf("%q is %+v", data, cp)
		}
	}
}
