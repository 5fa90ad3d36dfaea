package relay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/relay"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// scene is a bridge with the first ten rows stored and confirmed.
type scene struct {
	url  string
	nats *testkit.NATSServer
	js   jetstream.JetStream
	slot string // slots are the cluster's: each scene has its own
	cfg  *config.Config
	b    *bridge
}

func newScene(t *testing.T, pg *testkit.PG, stream *jetstream.StreamConfig) *scene {
	t.Helper()
	s := &scene{url: pg.Database(t), nats: testkit.NATS(t)}
	testkit.Exec(t, s.url, outboxTable)
	if stream != nil {
		stream.Name, stream.Subjects = "OUTBOX", []string{"outbox.>"}
		s.nats.Stream(t, *stream)
	}
	s.slot = "of_" + s.url[strings.LastIndexByte(s.url, '/')+1:strings.IndexByte(s.url, '?')]
	s.cfg = load(t, eventConfig+"slot: {name: "+s.slot+"}\n", map[string]string{"PG": s.url, "NATS": s.nats.URL()})
	s.js = s.nats.JetStream(t)
	s.b = start(t, s.cfg)
	testkit.Eventually(t, 20*time.Second, func() bool { return slots(t, s.url, "active AND confirmed_flush_lsn IS NOT NULL") == 1 }, "the slot is not taken")
	s.insert(t, 1, 10)
	s.confirmed(t)
	return s
}

// insert commits a row for each number; a number is known by its payload.
func (s *scene) insert(t *testing.T, from, to int) {
	t.Helper()
	testkit.Exec(t, s.url, fmt.Sprintf("INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "+
		"SELECT 'order', 'o'||(i%%3), 'placed', to_jsonb(i) FROM generate_series(%d,%d) i", from, to))
}

// confirmed waits until everything that is committed was confirmed to the slot.
func (s *scene) confirmed(t *testing.T) {
	t.Helper()
	end := testkit.Value[string](t, s.url, "SELECT pg_current_wal_lsn()::text")
	testkit.Eventually(t, 20*time.Second, func() bool { return slots(t, s.url, "confirmed_flush_lsn >= '"+end+"'") == 1 }, "%s is not confirmed", end)
}

// numbers counts the rows that the stream holds.
func (s *scene) numbers(t *testing.T) map[int]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	found := map[int]int{}
	st, err := s.js.Stream(ctx, "OUTBOX")
	if err != nil {
		return found
	}
	state := st.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := st.GetMsg(ctx, seq)
		var n int
		if err == nil && json.Unmarshal(m.Data, &n) == nil {
			found[n]++
		}
	}
	return found
}

// accept accepts what is found, which must say the text, and gives what is not in the database.
func (s *scene) accept(t *testing.T, says string) []string {
	t.Helper()
	b, err := relay.New(s.cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	a, err := b.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	for _, f := range a.Findings {
		fmt.Fprintf(&found, "%s; given up: %s\n", f.What, f.GivenUp)
	}
	t.Log(found.String())
	if !strings.Contains(found.String(), says) {
		t.Fatalf("found %q, want %q", found.String(), says)
	}
	if err := a.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range a.Events {
		ids = append(ids, e.MsgID)
	}
	return ids
}

// goesOn starts the bridge again: the wanted rows, committed before and after, are stored once each, no other twice.
func (s *scene) goesOn(t *testing.T, from, to int) {
	t.Helper()
	s.b = start(t, s.cfg)
	s.insert(t, to+1, to+5)
	testkit.Eventually(t, 20*time.Second, func() bool { return s.numbers(t)[to+5] > 0 || ended(s.b) }, "the bridge does not go on")
	s.confirmed(t)
	found := s.numbers(t)
	for n := from; n <= to+5; n++ {
		if found[n] != 1 {
			t.Errorf("row %d is stored %d times", n, found[n])
		}
	}
	for n, times := range found {
		if times > 1 {
			t.Errorf("row %d is stored %d times", n, times)
		}
	}
	if err := s.b.end(t); err != nil {
		t.Fatal(err)
	}
}

func ended(b *bridge) bool {
	select {
	case err := <-b.done:
		b.done <- err
		return true
	default:
		return false
	}
}

// endsWith waits for the bridge's end, and sees that it says what is lost and what to do.
func endsWith(t *testing.T, b *bridge, within time.Duration, code int, says ...string) {
	t.Helper()
	began := time.Now()
	err := b.wait(t, within)
	t.Logf("after %s: %v", time.Since(began).Round(time.Millisecond), err)
	t.Log(exit.Hint(err))
	if exit.Code(err) != code || !strings.Contains(exit.Hint(err), "tidegate accept") {
		t.Fatalf("ended with exit %d and hint %q, want %d", exit.Code(err), exit.Hint(err), code)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Fatalf("the error does not say %q", text)
		}
	}
}

const streamConfig = `{"name":"OUTBOX","subjects":["outbox.*.*"]}`

func TestLossInNATSEndsARunningBridgeWithTheRangeAndAcceptGoesOn(t *testing.T) {
	makeAgain := func(ctx context.Context, s *scene) error {
		if err := s.js.DeleteStream(ctx, "OUTBOX"); err != nil {
			return err
		}
		var cfg jetstream.StreamConfig
		if err := json.Unmarshal([]byte(streamConfig), &cfg); err != nil {
			return err
		}
		_, err := s.js.CreateStream(ctx, cfg)
		return err
	}
	var older []byte
	for _, tc := range []struct {
		name   string
		before func(ctx context.Context, s *scene) error
		do     func(ctx context.Context, s *scene) error
		says   string
		found  string
		from   int // rows from this one on must be stored in the end
	}{
		{name: "stream deleted", do: func(ctx context.Context, s *scene) error { return s.js.DeleteStream(ctx, "OUTBOX") }, says: "sequences 1 to 10", found: "sequences 1 to 10", from: 11},
		{name: "stream made again", do: makeAgain, says: "sequences 1 to 10", found: "sequences 1 to 10", from: 11},
		{name: "stream made again and refilled past the mark", do: func(ctx context.Context, s *scene) error {
			if err := makeAgain(ctx, s); err != nil {
				return err
			}
			for range 20 {
				if _, err := s.js.Publish(ctx, "outbox.others.x", []byte("theirs")); err != nil {
					return err
				}
			}
			return nil
		}, says: "sequences 1 to 10", found: "sequences 1 to 10", from: 11},
		{name: "stream purged", do: func(ctx context.Context, s *scene) error {
			st, err := s.js.Stream(ctx, "OUTBOX")
			if err != nil {
				return err
			}
			return st.Purge(ctx)
		}, says: "sequences 1 to 1", found: "sequences 1 to 1", from: 12},
		{name: "key deleted", do: func(ctx context.Context, s *scene) error {
			kv, err := s.js.KeyValue(ctx, "tidegate")
			if err != nil {
				return err
			}
			return kv.Delete(ctx, "app")
		}, says: "key app of KV bucket tidegate was deleted", found: "there is no checkpoint", from: 1},
		{name: "bucket deleted", do: func(ctx context.Context, s *scene) error { return s.js.DeleteKeyValue(ctx, "tidegate") }, says: "bucket tidegate was deleted", found: "there is no checkpoint", from: 1},
		{name: "key set back", before: func(ctx context.Context, s *scene) error {
			kv, err := s.js.KeyValue(ctx, "tidegate")
			if err != nil {
				return err
			}
			e, err := kv.Get(ctx, "app")
			if err == nil {
				older = e.Value()
			}
			return err
		}, do: func(ctx context.Context, s *scene) error {
			kv, err := s.js.KeyValue(ctx, "tidegate")
			if err != nil {
				return err
			}
			_, err = kv.Put(ctx, "app", older)
			return err
		}, says: "set back", found: "the slot was confirmed up to", from: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, testkit.SharedPostgres(t), nil)
			ctx := t.Context()
			if tc.before != nil {
				if err := tc.before(ctx, s); err != nil {
					t.Fatal(err)
				}
				s.insert(t, 11, 11)
				s.confirmed(t)
			}
			if err := tc.do(ctx, s); err != nil {
				t.Fatal(err)
			}
			if tc.before == nil {
				s.insert(t, 11, 11)
			}
			inserted := testkit.Value[string](t, s.url, "SELECT pg_current_wal_lsn()::text")
			endsWith(t, s.b, 5*time.Second, exit.NATS, tc.says)
			if tc.from > 10 && slots(t, s.url, "confirmed_flush_lsn >= '"+inserted+"'") > 0 {
				t.Error("something was confirmed after the loss")
			}
			s.insert(t, 12, 13)
			endsWith(t, start(t, s.cfg), 20*time.Second, exit.NATS) // a new process says so too
			s.insert(t, 14, 15)
			s.accept(t, tc.found)
			s.goesOn(t, tc.from, 15)
		})
	}
}

func TestRestoredNATSEndsTheBridgeWithTheRangeAndAcceptGoesOn(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running=%v", running), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, testkit.SharedPostgres(t), nil)
			backup := t.TempDir() + "/store"
			s.nats.Stop(t)
			if err := os.CopyFS(backup, os.DirFS(s.nats.StoreDir())); err != nil {
				t.Fatal(err)
			}
			s.nats.Start(t)
			s.insert(t, 11, 20)
			s.confirmed(t)
			if !running {
				if err := s.b.end(t); err != nil {
					t.Fatal(err)
				}
			}
			s.nats.Stop(t)
			if err := os.RemoveAll(s.nats.StoreDir()); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(s.nats.StoreDir(), os.DirFS(backup)); err != nil {
				t.Fatal(err)
			}
			s.nats.Start(t)
			if running {
				endsWith(t, s.b, 5*time.Second, exit.NATS, "sequences 11 to 20")
			}
			endsWith(t, start(t, s.cfg), 20*time.Second, exit.NATS, "NATS has lost what it acknowledged between the two")
			s.insert(t, 21, 23)
			s.accept(t, "the slot was confirmed up to")
			s.goesOn(t, 21, 23)
		})
	}
}

func TestWhatStreamsRemoveByThemselvesDoesNotEndTheBridge(t *testing.T) {
	for name, cfg := range map[string]jetstream.StreamConfig{
		"age":                  {MaxAge: time.Second, Duplicates: time.Second},
		"number":               {MaxMsgs: 3},
		"number a subject":     {MaxMsgsPerSubject: 1},
		"consumed":             {Retention: jetstream.WorkQueuePolicy},
		"configuration edited": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, testkit.SharedPostgres(t), &cfg)
			ctx := t.Context()
			st, err := s.js.Stream(ctx, "OUTBOX")
			if err != nil {
				t.Fatal(err)
			}
			s.insert(t, 11, 20)
			s.confirmed(t)
			switch name {
			case "consumed":
				cons, err := st.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "d", AckPolicy: jetstream.AckExplicitPolicy})
				if err != nil {
					t.Fatal(err)
				}
				batch, err := cons.Fetch(20)
				if err != nil {
					t.Fatal(err)
				}
				for m := range batch.Messages() {
					if err := m.DoubleAck(ctx); err != nil {
						t.Fatal(err)
					}
				}
			case "configuration edited":
				edited := st.CachedInfo().Config
				edited.MaxMsgs, edited.Discard, edited.Description = 2, jetstream.DiscardOld, "edited"
				if _, err := s.js.UpdateStream(ctx, edited); err != nil {
					t.Fatal(err)
				}
			case "age":
				testkit.Eventually(t, 10*time.Second, func() bool { return messages(t, s.js, "OUTBOX") == 0 }, "nothing expires")
			}
			select { // two looks and more
			case err := <-s.b.done:
				t.Fatalf("ended: %v (%s)", err, exit.Hint(err))
			case <-time.After(4 * time.Second):
			}
			s.insert(t, 21, 25)
			s.confirmed(t)
			if err := s.b.end(t); err != nil {
				t.Fatal(err)
			}
			again := start(t, s.cfg)
			s.insert(t, 26, 30)
			s.confirmed(t)
			if err := again.end(t); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Two databases must not publish as one source: their ids would be taken for each other's.
func TestCloneOfTheDatabaseIsRefused(t *testing.T) {
	s := newScene(t, testkit.SharedPostgres(t), nil)
	clone := testkit.SharedPostgres(t).Database(t)
	testkit.Exec(t, clone, outboxTable)
	cfg := load(t, eventConfig+"slot: {name: clone}\n", map[string]string{"PG": clone, "NATS": s.nats.URL()})
	err := start(t, cfg).wait(t, 20*time.Second)
	if exit.Code(err) != exit.Drift || !strings.Contains(err.Error(), "it belongs to system") || !strings.Contains(exit.Hint(err), "a copy of production must not publish as production") {
		t.Fatalf("ended with %v (code %d, hint %q)", err, exit.Code(err), exit.Hint(err))
	}
	testkit.Exec(t, clone, "SELECT pg_create_logical_replication_slot('clone', 'pgoutput')")
	b, err := relay.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Survey(t.Context()); exit.Code(err) != exit.Drift || !strings.Contains(exit.Hint(err), "source.name") {
		t.Fatalf("the source of a running bridge can be taken away: %v", err)
	}
	if err := s.b.end(t); err != nil {
		t.Fatal(err)
	}
}

func TestDatabaseThatLacksPublishedEventsIsRefusedWithTheirListAndAcceptGoesOn(t *testing.T) {
	for _, tc := range []struct {
		name string
		back func(t *testing.T, pg *testkit.PG, s *scene)
		says string
	}{
		{"restored backup", func(t *testing.T, pg *testkit.PG, _ *scene) { pg.Restore(t) }, "the server's WAL ends at"},
		{"promoted standby with its slot", func(t *testing.T, pg *testkit.PG, _ *scene) { pg.FailOver(t) }, "timeline 1 ended at"},
		{"promoted standby with a new slot", func(t *testing.T, pg *testkit.PG, s *scene) {
			pg.FailOver(t)
			testkit.Exec(t, s.url, "SELECT pg_drop_replication_slot('"+s.slot+"')")
			testkit.Exec(t, s.url, "SELECT pg_create_logical_replication_slot('"+s.slot+"', 'pgoutput')")
		}, "timeline 1 ended at"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pg := testkit.Postgres(t)
			s := newScene(t, pg, nil)
			pg.Backup(t)
			testkit.Eventually(t, 20*time.Second, func() bool { return slots(t, s.url, "active") == 1 }, "the slot is not taken again")
			testkit.Exec(t, s.url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "+
				"SELECT 'order', 'o'||(i%3), 'lost', to_jsonb(i) FROM generate_series(101,125) i, generate_series(1,200) g WHERE g = 1")
			testkit.Exec(t, s.url, "CREATE TABLE filler AS SELECT repeat('x', 500) FROM generate_series(1, 2000)")
			testkit.Exec(t, s.url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', 'o1', 'lost', '126')")
			s.confirmed(t)
			lost := testkit.Column[string](t, s.url, "SELECT 'app/public.outbox/' || id FROM outbox WHERE event_type = 'lost' ORDER BY seq")
			if err := s.b.end(t); err != nil {
				t.Fatal(err)
			}
			tc.back(t, pg, s)
			endsWith(t, start(t, s.cfg), 30*time.Second, exit.Drift, tc.says, fmt.Sprintf("the streams hold %d events that this server does not have", len(lost)), lost[0])
			s.insert(t, 11, 15)
			if ids := s.accept(t, "published events that this server does not have"); tc.name != "restored backup" && fmt.Sprint(slices.Sorted(slices.Values(ids))) != fmt.Sprint(slices.Sorted(slices.Values(lost))) {
				t.Errorf("listed %v\nwant   %v", ids, lost)
			}
			s.goesOn(t, 1, 15)
		})
	}
}

func TestAcceptRefusesWhileABridgeRunsAndFindsNothingWhereAllAgree(t *testing.T) {
	s := newScene(t, testkit.SharedPostgres(t), nil)
	survey := func() (*relay.Acceptance, error) {
		b, err := relay.New(s.cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		return b.Survey(t.Context())
	}
	if _, err := survey(); exit.Code(err) != exit.Usage || !strings.Contains(exit.Hint(err), "stop all instances") {
		t.Fatalf("got %v", err)
	}
	if err := s.b.end(t); err != nil {
		t.Fatal(err)
	}
	a, err := survey()
	if err != nil || len(a.Findings) > 0 || len(a.Events) > 0 {
		t.Fatalf("got %+v, %v", a, err)
	}
	testkit.Exec(t, s.url, "SELECT pg_drop_replication_slot('"+s.slot+"')")
	if _, err := survey(); exit.Code(err) != exit.SlotLost || !strings.Contains(exit.Hint(err), "pg_create_logical_replication_slot") {
		t.Fatalf("got %v", err)
	}
}
