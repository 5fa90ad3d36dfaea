package exit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/exit"
)

func TestOutermostCodeAndHintWin(t *testing.T) {
	cause := errors.New("slot is gone")
	inner := &exit.Error{Code: exit.SlotLost, Err: cause, Hint: "create it again"}
	tests := []struct {
		name string
		err  error
		code int
		hint string
	}{
		{"none", nil, exit.OK, ""},
		{"plain", cause, exit.Unexpected, ""},
		{"broken off", fmt.Errorf("read: %w", context.Canceled), exit.Unexpected, ""},
		{"carried", inner, exit.SlotLost, "create it again"},
		{"wrapped", fmt.Errorf("start: %w", inner), exit.SlotLost, "create it again"},
		{"outer code, inner hint", &exit.Error{Code: exit.Drift, Err: fmt.Errorf("check: %w", inner)}, exit.Drift, "create it again"},
		{"outer hint", &exit.Error{Code: exit.Drift, Err: inner, Hint: "verify"}, exit.Drift, "verify"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exit.Code(tt.err); got != tt.code {
				t.Errorf("code %d, want %d", got, tt.code)
			}
			if got := exit.Hint(tt.err); got != tt.hint {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
		})
	}
}

func TestCauseStaysReachable(t *testing.T) {
	cause := errors.New("slot is gone")
	err := fmt.Errorf("start: %w", &exit.Error{Code: exit.SlotLost, Err: cause})
	if !errors.Is(err, cause) || err.Error() != "start: slot is gone" {
		t.Errorf("got %q, cause reachable: %v", err, errors.Is(err, cause))
	}
}
