package relay

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/admin"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/publish"
)

func newRow() *row { return new(rowPool).get() }

func TestRowThatTheBrokerRefusesEndsTheSessionOnceEverythingBeforeItIsStored(t *testing.T) {
	s := &session{log: discard, bridge: &Bridge{}}
	before, refused, behind := newRow(), newRow(), newRow()
	for _, r := range []*row{before, refused, behind} {
		s.tracker.addRow(&r.pub, time.Time{})
	}
	advance := func() { s.tracker.advance(func(*publish.Row) {}) }
	tooLarge := fromNATS(&publish.AckError{Code: 400, ErrCode: 10054, Description: "message size exceeds maximum allowed"})
	if err := s.refused(&refused.pub, tooLarge, time.Now()); err != nil {
		t.Fatal(err)
	}
	behind.pub.Done = true
	advance()
	if err := s.poisoned(); err != nil {
		t.Fatalf("ends although a row before is not stored: %v", err)
	}
	before.pub.Done = true
	advance()
	var poison *poisonError
	if err := s.poisoned(); !errors.As(err, &poison) || poison.row != refused {
		t.Fatalf("got %v", err)
	}
	refused.event.Table, refused.event.ID = &event.Table{Name: "public.outbox"}, []byte("4711")
	if text := poison.Error(); !strings.Contains(text, "public.outbox") || !strings.Contains(text, "4711") || !strings.Contains(poison.Hint(), "max_msg_size") {
		t.Fatalf("%s: %s", text, poison.Hint())
	}
}

func TestRefusalThatIsNotTheRowsFaultEndsTheSessionAtOnce(t *testing.T) {
	s := &session{log: discard, bridge: &Bridge{}}
	r := newRow()
	r.pub.Msg.Subject = "outbox.order.o"
	err := failure(s.refused(&r.pub, fromNATS(&publish.AckError{Code: 400, ErrCode: 10109, Description: "stream is sealed"}), time.Now()))
	if exit.Code(err) != exit.NATS {
		t.Fatalf("got %v", err)
	}
}

func TestMessageThatTheClientWillNotSendIsThatRowsFault(t *testing.T) {
	r := newRow()
	var poison *poisonError
	if err := unsent(&publish.SendError{Row: &r.pub, Err: nats.ErrMaxPayload}); !errors.As(err, &poison) || poison.row != r {
		t.Fatalf("got %v", err)
	}
	if err := unsent(&publish.SendError{Row: &r.pub, Err: nats.ErrConnectionClosed}); errors.As(err, &poison) || failure(err) != nil {
		t.Fatalf("a lost connection: %v", err)
	}
}

// Nobody would take back what a session has reported: an instance that stands by afterwards must be ready.
func TestSessionLeavesNoProblemBehind(t *testing.T) {
	b := &Bridge{metrics: NewMetrics("s"), health: admin.NewHealth(0)}
	for _, what := range []string{problemNATS, problemPublish, problemLookup, problemCheckpoint} {
		b.health.Report(what, "why")
	}
	(&session{bridge: b}).quiet()
	b.health.SetRole(admin.RoleStandby, "pid 7")
	if r := b.health.Readiness(); !r.Ready {
		t.Fatalf("%+v", r)
	}
}
