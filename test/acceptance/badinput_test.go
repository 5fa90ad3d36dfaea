package acceptance_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

// change is what is set over a scene's configuration file: TIDEGATE_ variables, which win over it.
type change map[string]string

const sharedConfig = `
source: {name: app}
postgres: {url: "{{.PG}}"}
slot: {name: {{.Slot}}, publication: {{.Slot}}}
streams: [{name: OUTBOX, duplicate_window: 2s}]
outboxes: [{table: public.outbox, kind: event, stream: OUTBOX}]
park: {store: off}
nats: {url: "{{.NATS}}"}
`

// sharedScene is a scene whose database and slot are its own, on the cluster that the package's tests share.
func sharedScene(t *testing.T, options ...testkit.NATSOption) *scene {
	t.Helper()
	pg := testkit.SharedPostgres(t)
	return sceneOn(t, pg, pg.PlainDatabase(t), options...)
}

// sceneOn is a scene in a database that was made for it. The slot has the database's name.
func sceneOn(t *testing.T, pg *testkit.PG, url string, options ...testkit.NATSOption) *scene {
	t.Helper()
	s := &scene{pg: pg, url: url, nats: testkit.NATS(t, options...), bin: testkit.Binary(t)}
	s.js = s.nats.JetStream(t)
	s.config = testkit.ConfigText(t, sharedConfig, map[string]string{"PG": url, "Slot": s.slot(t), "NATS": s.nats.URL()})
	testkit.Exec(t, url, outboxTable)
	return s
}

// slot is the name of a shared scene's slot, publication and database.
func (s *scene) slot(t *testing.T) string {
	t.Helper()
	return testkit.Value[string](t, s.url, "SELECT current_database()::text")
}

// insert commits some rows, each in a transaction of its own.
func (s *scene) insert(t *testing.T, n int) {
	t.Helper()
	for range n {
		testkit.Exec(t, s.url, "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', 'o' || floor(random() * 3), 'placed', '{}')")
	}
}

// begun runs the bridge once, so that slot, stream and checkpoint exist, and leaves rows that it has not seen.
func (s *scene) begun(t *testing.T) {
	t.Helper()
	p := s.start(t)
	s.insert(t, 2)
	s.settled(t, 20*time.Second)
	stop(t, p)
	s.insert(t, 3)
}

// startWith is start under a changed configuration.
func (s *scene) startWith(t *testing.T, c change) *testkit.Process {
	t.Helper()
	p := s.bin.Start(t, testkit.Call{Args: []string{"run"}, Config: s.config, Env: c})
	p.WaitLog(t, 20*time.Second, `"msg":"streaming"`)
	return p
}

// recovers starts the bridge when what was wrong is mended, and finds that nothing was lost, doubled or reordered.
func (s *scene) recovers(t *testing.T, c change) {
	t.Helper()
	p := s.startWith(t, c)
	s.settled(t, 30*time.Second)
	stop(t, p)
	s.judge(t)
}

// refusal is how the program ends when it cannot go on.
type refusal struct {
	code int
	says []string // what is wrong, and where
	mend string   // what to do about it
}

// refuses runs the bridge to its end, which has to come by itself, and compares what it says.
func (s *scene) refuses(t *testing.T, c change, want refusal) {
	t.Helper()
	code, output := s.bin.Run(t, 30*time.Second, testkit.Call{Args: []string{"run"}, Config: s.config, Env: c})
	want.check(t, code, output)
}

func (want refusal) check(t *testing.T, code int, output string) {
	t.Helper()
	at := strings.LastIndex("\n"+output, "\ntidegate: ")
	if at < 0 {
		t.Fatalf("it ended with %d and said nothing:\n%s", code, output)
	}
	said := output[at:]
	if code != want.code {
		t.Errorf("it ended with %d, not %d: %s", code, want.code, said)
	}
	cause, mend, found := strings.Cut(said, "what to do: ")
	if !found {
		t.Errorf("it does not say what to do: %s", said)
	}
	for _, part := range want.says {
		if !strings.Contains(cause, part) {
			t.Errorf("it does not say %q: %s", part, said)
		}
	}
	if !strings.Contains(mend, want.mend) {
		t.Errorf("what to do does not name %q: %s", want.mend, said)
	}
	checkWords(t, said)
}

var commandNamed = regexp.MustCompile("`?tidegate (init|doctor|status|monitor|verify|replay|slot|explain)\\b")

// checkWords refuses advice that this version cannot follow, and secrets.
func checkWords(t *testing.T, said string) {
	t.Helper()
	if name := commandNamed.FindString(said); name != "" {
		t.Errorf("it advises %s, which this version does not have: %s", name, said)
	}
	for _, secret := range []string{"secret", "hunter2"} {
		if strings.Contains(said, secret) {
			t.Errorf("it tells a secret: %s", said)
		}
	}
}

// dropSlot drops a slot that belongs to no database, when the test is over.
func dropSlot(url, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	_, _ = conn.Exec(ctx, "SELECT pg_drop_replication_slot($1)", name)
}
