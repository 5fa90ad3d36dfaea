package acceptance_test

import (
	"bufio"
	"encoding/json"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/oracle"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

const featureConfig = `
source: {name: app}
postgres: {url: "{{.PG}}"}
slot: {name: {{.Slot}}, publication: {{.Slot}}}
streams: [{name: GEO, duplicate_window: 2s}]
outboxes:
  - table: public.feature_outbox
    kind: feature
    stream: GEO
    subject: "geo.{collection}.{feature_id}.{event_type}.{h3}"
    feature: {table: public.features}
park: {store: off}
nats: {url: "{{.NATS}}"}
`

// noCell is {h3} of a feature that lies nowhere.
const noCell = "x.x.x.x.x.x.x.x.x"

// featureCase is what a report from the field asks for; testdata/field_cases.jsonl names where each comes from.
type featureCase struct {
	ID    string `json:"id"`
	Input struct {
		Batch      []*string `json:"batch"`
		SQL        string    `json:"sql"`
		FeatureIDs []string  `json:"feature_ids"`
	} `json:"input"`
}

func fieldCase(t *testing.T, id string) featureCase {
	t.Helper()
	f, err := os.Open("testdata/field_cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c featureCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("testdata has no case %s", id)
	return featureCase{}
}

// featureScene is a shared scene with a feature outbox. The ids of features are text, and any geometry is taken.
func featureScene(t *testing.T) *scene {
	t.Helper()
	pg := testkit.SharedPostgres(t)
	s := &scene{pg: pg, url: pg.Database(t), nats: testkit.NATS(t), bin: testkit.Binary(t)}
	s.js = s.nats.JetStream(t)
	s.config = testkit.ConfigText(t, featureConfig, map[string]string{"PG": s.url, "Slot": s.slot(t), "NATS": s.nats.URL()})
	if code, output := s.bin.Run(t, 20*time.Second, testkit.Call{Args: []string{"migrate", "up"}, Config: s.config}); code != 0 {
		t.Fatalf("migrate up ended with %d: %s", code, output)
	}
	testkit.Exec(t, s.url, `ALTER TABLE features ALTER COLUMN geom TYPE geometry, ALTER COLUMN id DROP IDENTITY; ALTER TABLE features ALTER COLUMN id TYPE text;
		ALTER TABLE feature_outbox ALTER COLUMN feature_id TYPE text`)
	return s
}

// create commits a feature of version 1 with its outbox row. geometry is SQL.
func (s *scene) create(t *testing.T, id, geometry string) {
	t.Helper()
	quoted := "'" + strings.ReplaceAll(id, "'", "''") + "'"
	testkit.Exec(t, s.url, "INSERT INTO features (id, geom) VALUES ("+quoted+", "+geometry+"); INSERT INTO feature_outbox (feature_id, feature_version, event_type) VALUES ("+quoted+", 1, 'created')")
}

// features waits until n events are stored and the last is confirmed, stops the bridge, and gives the events with their
// bodies.
func (s *scene) features(t *testing.T, p *testkit.Process, n int) (stored []message, bodies []map[string]any) {
	t.Helper()
	testkit.AllStored(t, 30*time.Second, s.url, s.nats, "GEO", oracle.FeatureOutbox("app"))
	stored = s.read(t, "GEO")
	if len(stored) != n {
		t.Fatalf("%d events are stored, not %d", len(stored), n)
	}
	last, err := event.ParsePosition(strings.TrimPrefix(stored[n-1].header(event.HeaderPosition), "app/"))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() bool { return s.confirmedSlot(t) > last.Commit }, "what is stored is not confirmed")
	stop(t, p)
	for _, m := range stored {
		body := map[string]any{}
		decoder := json.NewDecoder(strings.NewReader(string(m.Data)))
		decoder.UseNumber()
		if err := decoder.Decode(&body); err != nil {
			t.Fatalf("the body of %s is no JSON: %v: %s", m.Subject, err, m.Data)
		}
		bodies = append(bodies, body)
	}
	return stored, bodies
}

func wantMember(t *testing.T, body map[string]any, name, want string) {
	t.Helper()
	got, err := json.Marshal(body[name])
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("feature %v: %s is %s, not %s", body["feature_id"], name, got, want)
	}
}

// TestOddGeometryNeitherStopsNorDelaysTheOthers is case A05: NULL, a curve, an empty part and NaN between two points.
// One more feature is older than the slot.
func TestOddGeometryNeitherStopsNorDelaysTheOthers(t *testing.T) {
	t.Parallel()
	s := featureScene(t)
	s.create(t, "0", "'SRID=4326;POINT(13.405 52.525)'::geometry")
	p := s.startWith(t, publishOlder)
	for i, geometry := range fieldCase(t, "A05").Input.Batch {
		sql := "NULL"
		switch {
		case geometry != nil && *geometry == "NAN":
			sql = "ST_SetSRID(ST_MakePoint('NaN'::float8, 1), 4326)"
		case geometry != nil:
			sql = "'" + *geometry + "'::geometry"
		}
		s.create(t, strconv.Itoa(i+1), sql)
	}
	stored, bodies := s.features(t, p, 7)
	const point = `{"coordinates":[13.405,52.525],"type":"Point"}`
	for i, want := range []struct{ status, geometry string }{
		{"ok", point}, {"ok", point}, {"null", "null"}, {"ok", ""}, {"ok", ""}, {"invalid_coordinates", "null"}, {"ok", point},
	} {
		wantMember(t, bodies[i], "feature_id", `"`+strconv.Itoa(i)+`"`)
		wantMember(t, bodies[i], "geometry_status", `"`+want.status+`"`)
		if want.geometry != "" {
			wantMember(t, bodies[i], "geometry", want.geometry)
		}
	}
	if want := "geo.features.6.created.15.4.3.5.2.2.1.1.0"; stored[6].Subject != want {
		t.Errorf("subject %s, want %s", stored[6].Subject, want)
	}
}

// TestDeletedFeatureStillHasItsEvents is case A11: an inner join would drop them. The outbox's key routes them.
func TestDeletedFeatureStillHasItsEvents(t *testing.T) {
	t.Parallel()
	s := featureScene(t)
	testkit.Exec(t, s.url, "INSERT INTO features (id, geom) VALUES ('2', 'SRID=4326;POINT(13.405 52.525)')")
	p := s.start(t)
	testkit.Exec(t, s.url, "DELETE FROM features WHERE id = '2'; INSERT INTO feature_outbox (feature_id, feature_version, event_type, routing_key) VALUES ('2', 1, 'created', '881f1d4891fffff'), ('2', 2, 'retired', '881f1d4891fffff')")
	stored, bodies := s.features(t, p, 2)
	for i, action := range []string{"created", "retired"} {
		wantMember(t, bodies[i], "action", `"`+action+`"`)
		wantMember(t, bodies[i], "event_version", strconv.Itoa(i+1))
		wantMember(t, bodies[i], "geometry", "null")
		wantMember(t, bodies[i], "geometry_version", "null")
		wantMember(t, bodies[i], "geometry_status", `"missing"`)
		wantMember(t, bodies[i], "routing_key", `"881f1d4891fffff"`)
		if want := "geo.features.2." + action + ".15.4.3.5.2.2.1.1.0"; stored[i].Subject != want {
			t.Errorf("subject %s, want %s", stored[i].Subject, want)
		}
	}
}

// TestNaNGeometryIsStrictJSONWithoutACell is case A27.
func TestNaNGeometryIsStrictJSONWithoutACell(t *testing.T) {
	t.Parallel()
	s := featureScene(t)
	p := s.start(t)
	s.create(t, "1", fieldCase(t, "A27").Input.SQL)
	stored, bodies := s.features(t, p, 1)
	wantMember(t, bodies[0], "geometry", "null")
	wantMember(t, bodies[0], "geometry_status", `"invalid_coordinates"`)
	wantMember(t, bodies[0], "routing_key", "null")
	for _, name := range []string{"bbox", "valid"} {
		if _, there := bodies[0][name]; there {
			t.Errorf("%s is there: %s", name, stored[0].Data)
		}
	}
	if want := "geo.features.1.created." + noCell; stored[0].Subject != want {
		t.Errorf("subject %s, want %s", stored[0].Subject, want)
	}
}

// TestRoutingKeyThatIsNoCellIsKeptAndTheCellComputed: {routing_key} has the row's text, {h3} the geometry's cell.
func TestRoutingKeyThatIsNoCellIsKeptAndTheCellComputed(t *testing.T) {
	t.Parallel()
	s := featureScene(t)
	s.config = strings.Replace(s.config, "{feature_id}.{event_type}.{h3}", "{routing_key}.{h3}", 1)
	p := s.start(t)
	keys := []string{"berlin mitte", "ffffffffffffffff", "881f1d4891ffff*", "", "881f1d4891fffff"}
	for i, key := range keys {
		testkit.Exec(t, s.url, "INSERT INTO features (id, geom) VALUES ('"+strconv.Itoa(i)+"', 'SRID=4326;POINT(13.405 52.525)'); INSERT INTO feature_outbox (feature_id, feature_version, event_type, routing_key) VALUES ('"+strconv.Itoa(i)+"', 1, 'created', '"+key+"')")
	}
	stored, bodies := s.features(t, p, len(keys))
	for i, token := range []string{"berlin%20mitte", "ffffffffffffffff", "881f1d4891ffff%2A", "881f1d4891fffff", "881f1d4891fffff"} {
		if want := "geo.features." + token + ".15.4.3.5.2.2.1.1.0"; stored[i].Subject != want {
			t.Errorf("subject %s, want %s", stored[i].Subject, want)
		}
		if key := keys[i]; key != "" {
			wantMember(t, bodies[i], "routing_key", `"`+key+`"`)
		}
	}
}

// TestFeatureIdsCannotBreakOutOfTheirToken is case A37: dots, wildcards, nothing, 300 bytes, and a number that floats
// would change.
func TestFeatureIdsCannotBreakOutOfTheirToken(t *testing.T) {
	t.Parallel()
	s := featureScene(t)
	ids := fieldCase(t, "A37").Input.FeatureIDs
	p := s.start(t)
	for _, id := range ids {
		s.create(t, id, "'SRID=4326;POINT(13.405 52.525)'::geometry")
	}
	stored, bodies := s.features(t, p, len(ids))
	for i, id := range ids {
		rest, ok := strings.CutSuffix(stored[i].Subject, ".created.15.4.3.5.2.2.1.1.0")
		if !ok {
			t.Errorf("subject %s", stored[i].Subject)
		}
		wantToken(t, rest, 2, id)
		wantHeader(t, stored[i], "Tidegate-Aggregate-Id", id)
		if got := bodies[i]["feature_id"]; got != id {
			t.Errorf("feature_id is %#v, not %q", got, id)
		}
	}
}

// TestFeaturesThatCannotBeReadStopTheBridge: no event goes out without the geometry that it should have.
func TestFeaturesThatCannotBeReadStopTheBridge(t *testing.T) {
	t.Parallel()
	s := featureScene(t)
	role := s.slot(t) + "_role"
	testkit.Exec(t, s.url, "CREATE ROLE "+role+" LOGIN REPLICATION")
	p := s.start(t)
	s.create(t, "0", "NULL")
	testkit.AllStored(t, 20*time.Second, s.url, s.nats, "GEO", oracle.FeatureOutbox("app"))
	stop(t, p)
	s.create(t, "1", "'SRID=4326;POINT(13.405 52.525)'::geometry")
	features := func(text string) change {
		return outboxes(`[{"table": "public.feature_outbox", "kind": "feature", "stream": "GEO", "subject": "geo.{feature_id}.{h3}.x", "feature": ` + text + `}]`)
	}
	asRole := change{"TIDEGATE_POSTGRES_URL": altered(t, s.url, func(u *url.URL) { u.User = url.User(role) })}
	for name, tc := range map[string]struct {
		change change
		want   refusal
	}{
		"missing table":       {features(`{"table": "public.featurs"}`), refusal{exit.Drift, []string{"public.featurs"}, "feature.table"}},
		"missing geometry":    {features(`{"table": "public.features", "geometry": "shape"}`), refusal{exit.Drift, []string{"shape"}, "feature.table"}},
		"geometry of no type": {features(`{"table": "public.features", "geometry": "updated_at"}`), refusal{exit.Drift, []string{"public.features", "timestamp"}, "feature.table"}},
		"no SELECT":           {asRole, refusal{exit.Postgres, []string{"features"}, "SELECT"}},
	} {
		t.Run(name, func(t *testing.T) { s.refuses(t, tc.change, tc.want) })
	}
	p = s.start(t)
	_, bodies := s.features(t, p, 2)
	wantMember(t, bodies[1], "geometry_status", `"ok"`)
}
