package slot

import (
	"context"
	"errors"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestBusySlotNamesItsHolder(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	holder := begin(t, c, &taker{})
	_, err := connect(t, c).Start(t.Context())
	var active *ActiveError
	if !errors.As(err, &active) || active.PID != holder.PID() || !Transient(err) {
		t.Fatalf("Start: %v", err)
	}
}

func TestStandbySaysWhoHoldsTheSlotAndTakesOver(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	first := begin(t, c, &taker{})
	seen := make(chan Holder, 10)
	free := make(chan error, 1)
	go func() { free <- WaitFree(context.Background(), c, func(h Holder) { seen <- h }) }()
	h := <-seen
	if h.PID != first.PID() || h.Application != AppName(c.Slot) || h.Since.IsZero() {
		t.Fatalf("holder %+v, want pid %d", h, first.PID())
	}
	insert(t, c, "one")
	first.stop(t)
	if err := <-free; err != nil {
		t.Fatal(err)
	}
	k := &taker{}
	second := begin(t, c, k)
	wantRows(t, awaitRows(t, k, 1), "one")
	second.stop(t)
}

func TestStandbyWaitsOverARestartOfPostgres(t *testing.T) {
	pg := testkit.Postgres(t)
	c := newSlot(t, pg)
	first := begin(t, c, &taker{})
	seen := make(chan Holder, 10)
	free := make(chan error, 1)
	go func() { free <- WaitFree(context.Background(), c, func(h Holder) { seen <- h }) }()
	<-seen
	pg.Restart(t, testkit.Immediate)
	if err := first.ended(t); !Transient(err) {
		t.Fatalf("Run: %v", err)
	}
	if err := <-free; err != nil {
		t.Fatal(err)
	}
}

func TestStandbyOfAMissingSlotIsTold(t *testing.T) {
	c := newConfig(t, testkit.SharedPostgres(t))
	var missing *MissingSlotError
	if err := WaitFree(t.Context(), c, nil); !errors.As(err, &missing) {
		t.Fatalf("WaitFree: %v", err)
	}
	if _, err := connect(t, c).Start(t.Context()); !errors.As(err, &missing) {
		t.Fatalf("Start: %v", err)
	}
	if err := DropSlot(t.Context(), testkit.Connect(t, c.URL), c.Slot); !errors.As(err, &missing) {
		t.Fatalf("DropSlot: %v", err)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	c := newSlot(t, testkit.SharedPostgres(t))
	begin(t, c, &taker{})
	ctx, cancel := context.WithCancel(t.Context())
	err := WaitFree(ctx, c, func(Holder) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("WaitFree: %v", err)
	}
}
