package event_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/event"
)

func TestPositionIsWrittenInFixedWidth(t *testing.T) {
	p := event.Position{Timeline: 0x1A, Commit: 0x16_B374D848, Index: 3}
	const want = "0000001A-00000016B374D848-00000003"
	if got := p.String(); got != want || len(got) != event.PositionLen {
		t.Errorf("got %q, want %q", got, want)
	}
	if p.IsZero() || !(event.Position{}).IsZero() {
		t.Error("only the zero position is zero")
	}
}

func TestParsePositionRefusesWhatIsNone(t *testing.T) {
	for _, s := range []string{
		"", "0000001A-00000016B374D848-0000003", "0000001a-00000016B374D848-00000003", "0000001A-00000016B374D848_00000003",
		"0000001A_00000016B374D848-00000003", "0000001G-00000016B374D848-00000003", "0000001A-00000016B374D848-000000031",
	} {
		if p, err := event.ParsePosition(s); err == nil || !strings.HasPrefix(err.Error(), "parse position ") {
			t.Errorf("%q: %v, %v", s, p, err)
		}
	}
}

func TestPositionsCompareLikeTheirTexts(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) event.Position {
		return event.Position{
			Timeline: rapid.Uint32Range(0, 3).Draw(t, "timeline"),
			Commit:   decoder.LSN(rapid.SampledFrom([]uint64{0, 1, 1 << 32, 1<<32 + 1, 1<<64 - 1, rapid.Uint64().Draw(t, "any")}).Draw(t, "commit")),
			Index:    rapid.Uint32().Draw(t, "index"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		p, q := draw.Draw(t, "p"), draw.Draw(t, "q")
		if got, want := p.Compare(q), strings.Compare(p.String(), q.String()); got != want {
			t.Fatalf("%v and %v: %d, their texts %d", p, q, got, want)
		}
		if back, err := event.ParsePosition(p.String()); err != nil || back != p {
			t.Fatalf("%v came back as %v, %v", p, back, err)
		}
	})
}

func FuzzParsePosition(f *testing.F) {
	f.Add("0000001A-00000016B374D848-00000003")
	f.Add(strings.Repeat("-", event.PositionLen))
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := event.ParsePosition(s); err == nil && p.String() != s {
			t.Errorf("%q was read as %q", s, p)
		}
	})
}

func TestMessageResetKeepsOnlyMemory(t *testing.T) {
	m := event.Message{Subject: "s", ID: "i", Headers: []event.Header{{"a", "b"}}, Body: []byte("body")}
	m.Reset()
	if m.Subject != "" || m.ID != "" || len(m.Headers) != 0 || len(m.Body) != 0 {
		t.Errorf("left: %+v", m)
	}
	if cap(m.Headers) != 1 || cap(m.Body) < 4 {
		t.Errorf("memory is gone: %d headers, %d bytes", cap(m.Headers), cap(m.Body))
	}
}
