package router

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidegate-cdc/tidegate/event"
)

func TestTokensAreEncodedAsDocumented(t *testing.T) {
	for value, want := range map[string]string{
		"":                 "%",
		"%":                "%25",
		"plain-Value_1:2/": "plain-Value_1:2/",
		"eu.west 1":        "eu%2Ewest%201",
		"*>":               "%2A%3E",
		"$JS$":             "%24JS$",
		"a\tb\nc\x00\x7f":  "a%09b%0Ac%00%7F",
		"Zürich 東京":        "Zürich%20東京",
		"\u0085":           "%C2%85",
		"\xc3(":            "%C3(",
		"\ufffd\xff":       "\ufffd%FF",
	} {
		if got := string(AppendToken([]byte("a."), []byte(value))); got != "a."+want {
			t.Errorf("%q becomes %q, want %q", value, got, "a."+want)
		}
		if back, ok := Unescape(want); !ok || back != value {
			t.Errorf("Unescape(%q) = %q, %v", want, back, ok)
		}
	}
}

func TestUnescapeRefusesWhatWasNeverWritten(t *testing.T) {
	for _, token := range []string{"", "%%", "a%", "a%2", "%2e", "%GG", "%41", "a.b", "$x", "a b", "a%24", "\xff"} {
		if value, ok := Unescape(token); ok {
			t.Errorf("Unescape(%q) = %q", token, value)
		}
	}
}

func FuzzToken(f *testing.F) {
	for _, s := range []string{"", "%", "$JS.API", "a b", "\xff\xc3", "Zürich", "\u0085", strings.Repeat("*", 300)} {
		f.Add([]byte(s), []byte(s+"x"))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		token := string(AppendToken(nil, a))
		if back, ok := Unescape(token); !ok || back != string(a) {
			t.Fatalf("%q becomes %q, and that %q, %v", a, token, back, ok)
		}
		if !bytes.Equal(a, b) && string(AppendToken(nil, b)) == token {
			t.Fatalf("%q and %q both become %q", a, b, token)
		}
		if value, ok := Unescape(string(b)); ok && string(AppendToken(nil, []byte(value))) != string(b) {
			t.Fatalf("Unescape(%q) = %q, which is encoded otherwise", b, value)
		}
	})
}

// checkSubject fails unless NATS takes s for a subject to publish to.
func checkSubject(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.HasPrefix(s, "$") {
		t.Fatalf("subject %q", s)
	}
	for _, token := range strings.Split(s, ".") {
		if token == "" || strings.ContainsAny(token, "*>") || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			t.Fatalf("subject %q has token %q", s, token)
		}
	}
}

func FuzzSubject(f *testing.F) {
	f.Add([]byte("features"), []byte("4471"), []byte("moved"), []byte("881f1d4891fffff"), 13.4, 52.5)
	f.Add([]byte("$SYS"), []byte(""), []byte("a.b"), []byte(" \xff*"), 999.0, -91.0)
	f.Fuzz(func(t *testing.T, collection, id, action, key []byte, lon, lat float64) {
		r := newRoute(t, featureOutbox, "{collection}.{feature_id}.x{event_type}.{h3}.{partition:7}.{routing_key}")
		ev, g := move(), berlin(t)
		ev.AggregateType, ev.AggregateID, ev.EventType, ev.RoutingKey = collection, id, action, key
		g.Lon, g.Lat = lon, lat
		var m event.Message
		if r.Fill(&m, ev, g) != nil {
			return // too long
		}
		checkSubject(t, m.Subject)
		tokens := strings.Split(m.Subject, ".")
		if len(tokens) != strings.Count(r.Subjects(), ".")+1 {
			t.Fatalf("subject %q is not covered by %s", m.Subject, r.Subjects())
		}
		if back, ok := Unescape(tokens[1]); !ok || back != string(id) {
			t.Fatalf("id %q comes back as %q", id, back)
		}
	})
}
