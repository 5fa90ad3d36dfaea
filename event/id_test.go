package event_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/event"
)

func TestMsgIDIsReadableAndUnambiguous(t *testing.T) {
	for _, tt := range []struct{ source, table, id, want string }{
		{"app", "public.outbox", "42", "app/public.outbox/42"},
		{"app", "public.outbox", "a/b c", "app/public.outbox/a/b c"},
		{"app", "public.outbox", "", "app/public.outbox/"},
		{"app", "public.outbox", " x\r\n% ", "app/public.outbox/%20x%0D%0A%25%20"},
		{"a/b", `odd/"%".t `, "é\x7f", `a%2Fb/odd%2F"%25".t%20/é%7F`},
	} {
		got := string(event.AppendMsgID([]byte("kept:"), tt.source, tt.table, []byte(tt.id)))
		if got != "kept:"+tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
		source, table, id, ok := event.SplitMsgID(tt.want)
		if !ok || source != tt.source || table != tt.table || id != tt.id {
			t.Errorf("split %q: %q %q %q %t", tt.want, source, table, id, ok)
		}
	}
}

func TestForeignMsgIDIsNotSplit(t *testing.T) {
	for _, s := range []string{"", "42", "app/42", "a%/t/1", "a/%2/1", "a/t/%zz", "a/t/%"} {
		if source, table, id, ok := event.SplitMsgID(s); ok || source+table+id != "" {
			t.Errorf("%q: %q %q %q %t", s, source, table, id, ok)
		}
	}
}

func TestHeaderValueKeepsWhatMayStandThere(t *testing.T) {
	for v, want := range map[string]string{
		"":                 "",
		"plain, ünïcode /": "plain, ünïcode /",
		" a b ":            "%20a b%20",
		" ":                "%20",
		"  ":               "%20%20",
		"100%":             "100%25",
		"\x00\t\r\n\x1f":   "%00%09%0D%0A%1F",
		"\x7f\x80\xff":     "%7F\x80\xff",
	} {
		if got := string(event.AppendHeaderValue(nil, []byte(v))); got != want {
			t.Errorf("%q: got %q, want %q", v, got, want)
		}
	}
	if got, ok := event.DecodeHeaderValue("%c3%A9%"); ok {
		t.Errorf("cut value was decoded as %q", got)
	}
	if got, ok := event.DecodeHeaderValue("%c3%A9"); !ok || got != "é" {
		t.Errorf("lower-case digits: %q, %t", got, ok)
	}
}

func TestAggregateKeysOfDifferentAggregatesDiffer(t *testing.T) {
	seen := make(map[string][3]string)
	parts := []string{"", "a", "b", "ab", "aa", "\x01", "\x01a", "a\x00", "\x00a"}
	for _, table := range parts {
		for _, aggType := range parts {
			for _, id := range parts {
				key := string(event.AggregateKey(nil, table, []byte(aggType), []byte(id)))
				if other, ok := seen[key]; ok {
					t.Errorf("%q and %q share a key", other, [3]string{table, aggType, id})
				}
				seen[key] = [3]string{table, aggType, id}
			}
		}
	}
	if got := event.AggregateKey([]byte("kept"), "t", nil, nil); !bytes.HasPrefix(got, []byte("kept")) {
		t.Errorf("what was there is gone: %q", got)
	}
}

func FuzzHeaderValue(f *testing.F) {
	for _, s := range []string{"", " ", "a b", "%", "%41", "\r\nNats-Rollup: all", "\x00\xff", "é "} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		enc := string(event.AppendHeaderValue(nil, v))
		if got, ok := event.DecodeHeaderValue(enc); !ok || got != string(v) {
			t.Errorf("%q: encoded %q, decoded %q, %t", v, enc, got, ok)
		}
		if strings.Trim(enc, " \t") != enc || strings.ContainsFunc(enc, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("%q: %q may not stand in a header", v, enc)
		}
		if got, ok := event.DecodeHeaderValue(string(v)); ok && len(got) > len(v) {
			t.Errorf("%q: decoded to more, %q", v, got)
		}
	})
}

func FuzzMsgID(f *testing.F) {
	f.Add("app", "public.outbox", []byte("42"))
	f.Add("a/b", "odd/%.t ", []byte(" /\r\n%/"))
	f.Add("", "", []byte(""))
	f.Fuzz(func(t *testing.T, source, table string, id []byte) {
		s := string(event.AppendMsgID(nil, source, table, id))
		gotSource, gotTable, gotID, ok := event.SplitMsgID(s)
		if !ok || gotSource != source || gotTable != table || gotID != string(id) {
			t.Errorf("%q: %q %q %q %t, want %q %q %q", s, gotSource, gotTable, gotID, ok, source, table, id)
		}
	})
}
