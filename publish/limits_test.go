package publish

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/event"
)

func limited() *Stream {
	return &Stream{Name: "S", Subjects: []string{"other", "x.*", "y.>"}, MaxMsgSize: -1, replyLen: 80}
}

func TestMessageBeyondALimitIsPoison(t *testing.T) {
	const payload = 1 << 20
	long := strings.Repeat("l", 70000)
	for name, c := range map[string]struct {
		m      event.Message
		change func(*Stream)
	}{
		"headers":        {m: event.Message{Subject: "x.a", Headers: []event.Header{{Name: "h", Value: long}}}},
		"payload":        {m: event.Message{Subject: "x.a", Body: make([]byte, payload)}},
		"stream's limit": {m: event.Message{Subject: "x.a", Body: make([]byte, 1000)}, change: func(s *Stream) { s.MaxMsgSize = 1000 }},
		"subject":        {m: event.Message{Subject: "x." + long[:4000]}},
		"empty token":    {m: event.Message{Subject: "y..a"}},
		"last token":     {m: event.Message{Subject: "y.a."}},
		"no subject":     {m: event.Message{}},
		"star":           {m: event.Message{Subject: "x.*"}},
		"rest":           {m: event.Message{Subject: "y.>"}},
		"space":          {m: event.Message{Subject: "x.a b"}},
		"line end":       {m: event.Message{Subject: "x.a\r\n"}},
	} {
		s := limited()
		if c.change != nil {
			c.change(s)
		}
		var limit *LimitError
		if err := s.Check(&c.m, payload); !errors.As(err, &limit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSubjectOutsideTheStreamIsDrift(t *testing.T) {
	var drift *NotCoveredError
	for _, subject := range []string{"z", "x", "x.a.b", "y", "others"} {
		if err := limited().Check(&event.Message{Subject: subject}, 0); !errors.As(err, &drift) || drift.Subject != subject {
			t.Errorf("%s: %v", subject, err)
		}
	}
}

func TestMessageWithinTheLimitsPassesWithoutAllocating(t *testing.T) {
	s := limited()
	s.MaxMsgSize = 1 << 20
	for _, subject := range []string{"x.a", "y.a.b.c", "other", "x.a*b", "x.%2A"} {
		m := testRow("a", 1).Msg
		m.Subject, m.Body = subject, make([]byte, 500)
		if n := testing.AllocsPerRun(100, func() {
			if err := s.Check(&m, 1<<20); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", subject, n)
		}
	}
}

// The largest that Check lets pass, the server takes: in each limit, to the byte where the limit is the server's own.
func TestServerTakesWhatCheckLetsPass(t *testing.T) {
	c := connect(t, startServer(t, nil))
	s := ensure(t, c, StreamConfig{Name: "S"}, "x.*")
	subject := rowFor(s, "a", 1)
	subject.Msg.Subject = "x." + strings.Repeat("s", maxControlLine-controlLineRest-s.replyLen-2)
	headers := rowFor(s, "b", 2)
	addHeader(headers, maxHeaderBlock)
	body := rowFor(s, "c", 3)
	body.Msg.Body = make([]byte, c.MaxPayload()-headerSize(body))
	for _, r := range []*Row{subject, headers, body} {
		if err := s.Check(&r.Msg, c.MaxPayload()); err != nil {
			t.Fatalf("%s: %v", r.Msg.ID, err)
		}
		put(t, c, r)
	}
	body.Msg.Body = append(body.Msg.Body, 0)
	if err := s.Check(&body.Msg, c.MaxPayload()); err == nil {
		t.Error("one byte more passes")
	}
	subject.Msg.Subject += "s"
	if err := s.Check(&subject.Msg, c.MaxPayload()); err == nil {
		t.Error("a longer subject passes")
	}
}

func headerSize(r *Row) (n int) {
	n = len("NATS/1.0\r\n\r\n")
	for _, h := range r.Msg.Headers {
		n += len(h.Name) + len(h.Value) + 4
	}
	return n
}

func addHeader(r *Row, total int) {
	r.Msg.Headers = append(r.Msg.Headers, event.Header{Name: "fill"})
	r.Msg.Headers[len(r.Msg.Headers)-1].Value = strings.Repeat("v", total-headerSize(r))
}

func TestSubjectsCover(t *testing.T) {
	for _, c := range []struct {
		pattern, subject string
		want             bool
	}{
		{"a.b", "a.b", true},
		{"a.b", "a.c", false},
		{"a.b", "a", false},
		{"a", "a.b", false},
		{"a.*", "a.b", true},
		{"a.*", "a.b.c", false},
		{"a.*", "a.*", true},
		{"a.*", "a.>", false},
		{"a.>", "a.b.c", true},
		{"a.>", "a.*.c", true},
		{"a.>", "a.>", true},
		{"a.>", "a", false},
		{">", "a", true},
		{"*.b", "a.b", true},
		{"*.b", "*.b", true},
		{"a.b", "a.*", false},
		{"*", ">", false},
	} {
		if got := covers(c.pattern, c.subject); got != c.want {
			t.Errorf("%s covers %s: %v", c.pattern, c.subject, got)
		}
	}
}
