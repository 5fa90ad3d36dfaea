package oracle_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const tables = `
CREATE TABLE outbox (id text PRIMARY KEY, seq bigint GENERATED ALWAYS AS IDENTITY, aggregate_type text, aggregate_id text);
CREATE TABLE feature_outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, feature_id bigint);
INSERT INTO outbox (id, aggregate_type, aggregate_id) VALUES ('z', 'order', 'a b%'), ('y', 'order', 'a b%'), ('x', 'order', ' c');
INSERT INTO feature_outbox (feature_id) VALUES (7), (8), (7);`

const rolledBack = `
BEGIN;
INSERT INTO outbox (id, aggregate_type, aggregate_id) VALUES ('rolled back', 'order', 'a b%');
ROLLBACK;`

func message(table, id, kind, aggregate string) *nats.Msg {
	m := nats.NewMsg("out." + table)
	m.Header.Set(event.HeaderMsgID, string(event.AppendMsgID(nil, "app", "public."+table, []byte(id))))
	m.Header.Set(event.HeaderAggregateType, kind)
	m.Header.Set(event.HeaderAggregateID, string(event.AppendHeaderValue(nil, []byte(aggregate))))
	m.Data = []byte("a body that is not read")
	return m
}

func publish(t *testing.T, js jetstream.JetStream, m *nats.Msg) {
	t.Helper()
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func TestOutboxesAreComparedWithTheWholeStream(t *testing.T) {
	url := testkit.SharedPostgres(t).PlainDatabase(t)
	testkit.Exec(t, url, tables)
	testkit.Exec(t, url, rolledBack)
	server := testkit.NATS(t)
	js := server.JetStream(t)
	server.Stream(t, jetstream.StreamConfig{Name: "OUT", Subjects: []string{"out.*"}})
	compare := func() *oracle.Report {
		t.Helper()
		report, err := oracle.Compare(t.Context(), testkit.Connect(t, url), js, "OUT", oracle.Outbox("app"), oracle.FeatureOutbox("app"))
		if err != nil {
			t.Fatal(err)
		}
		return report
	}

	if report := compare(); report.Missing != 6 || report.Stored != 0 {
		t.Errorf("with an empty stream: %v", report)
	}
	for _, m := range []*nats.Msg{
		message("outbox", "z", "order", "a b%"), message("feature_outbox", "1", "features", "7"),
		message("outbox", "y", "order", "a b%"), message("feature_outbox", "2", "features", "8"),
		message("outbox", "x", "order", " c"), message("feature_outbox", "3", "features", "7"),
	} {
		publish(t, js, m)
	}
	if report := compare(); !report.Clean() || report.Committed != 6 || report.Stored != 6 {
		t.Errorf("with every row stored once in order: %v", report)
	}

	publish(t, js, message("outbox", "rolled back", "order", "a b%"))
	foreign := message("outbox", "z", "order", "a b%")
	foreign.Header.Set(event.HeaderMsgID, "other/public.outbox/z")
	publish(t, js, foreign)
	if report := compare(); report.Extra != 2 || report.Missing != 0 {
		t.Errorf("with a rolled back and a foreign row stored: %v", report)
	}
}

func TestRemovedMessagesAreMissing(t *testing.T) {
	url := testkit.SharedPostgres(t).PlainDatabase(t)
	testkit.Exec(t, url, tables)
	server := testkit.NATS(t)
	js := server.JetStream(t)
	stream := server.Stream(t, jetstream.StreamConfig{Name: "OUT", Subjects: []string{"out.*"}})
	for _, id := range []string{"z", "y", "x"} {
		publish(t, js, message("outbox", id, "order", map[string]string{"z": "a b%", "y": "a b%", "x": " c"}[id]))
	}
	for _, sequence := range []uint64{1, 3} { // the first and the last
		if err := stream.DeleteMsg(t.Context(), sequence); err != nil {
			t.Fatal(err)
		}
	}
	report, err := oracle.Compare(t.Context(), testkit.Connect(t, url), js, "OUT", oracle.Outbox("app"))
	if err != nil {
		t.Fatal(err)
	}
	if report.Stored != 1 || report.Missing != 2 || report.OutOfOrder != 0 {
		t.Errorf("with one message left: %v", report)
	}
}
