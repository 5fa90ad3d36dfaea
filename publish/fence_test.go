package publish

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func TestNothingIsWrittenBehindTheFenceAndNothingOfItLater(t *testing.T) {
	s := startServer(t, nil)
	var closed atomic.Bool
	conn := connectWith(t, Config{Name: "test", URL: s.url(), Fence: func() error {
		if closed.Load() {
			return errors.New("closed")
		}
		return nil
	}}, Hooks{})
	listener := connectWith(t, Config{Name: "listener", URL: s.url()}, Hooks{})
	heard, err := listener.NATS().SubscribeSync("x.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.NATS().Flush(); err != nil {
		t.Fatal(err)
	}
	closed.Store(true)
	if err := conn.PublishMsg(nats.NewMsg("x.held")); err != nil {
		t.Fatal(err)
	}
	conn.Drop()
	closed.Store(false)
	deadline := time.Now().Add(20 * time.Second)
	for err := errors.New("not yet"); err != nil; err = conn.PublishMsg(nats.NewMsg("x.after")) {
		if time.Now().After(deadline) {
			t.Fatalf("not connected again: %v", err)
		}
		<-time.After(10 * time.Millisecond)
	}
	m, err := heard.NextMsg(20 * time.Second)
	if err != nil || m.Subject != "x.after" {
		t.Fatalf("heard %+v, %v", m, err)
	}
}
