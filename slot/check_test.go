package slot

import (
	"errors"
	"strings"
	"testing"
)

func TestSynchronousStandbyNamesAreMatchedAsPostgresDoes(t *testing.T) {
	const app = "tidegate_orders"
	for setting, want := range map[string]bool{
		"":                                     false,
		"*":                                    true,
		`"*"`:                                  true,
		"tidegate_orders":                      true,
		"TideGate_Orders":                      true,
		`"tidegate_orders"`:                    true,
		"tidegate_orders2":                     false,
		"node1, node2":                         false,
		"node1,tidegate_orders":                true,
		"FIRST 1 (node1, tidegate_orders)":     true,
		"ANY 2 (node1, node2, *)":              true,
		"2 (node1, node2)":                     false,
		"first 1(node1,\ttidegate_orders)":     true,
		`ANY 1 ("node, 1", "tidegate_orders")`: true,
		`"node, tidegate_orders"`:              false,
		`"any 1 (tidegate_orders)"`:            false,
	} {
		if got := MatchesSynchronous(setting, app); got != want {
			t.Errorf("%s: %v, want %v", setting, got, want)
		}
	}
}

func TestNameIsCutAsPostgresCutsIt(t *testing.T) {
	long := strings.Repeat("x", 63)
	if got := AppName(long); got != "tidegate_"+strings.Repeat("x", 54) {
		t.Fatalf("got %s", got)
	}
}

func TestServerThatCannotServeTheSlotIsRefused(t *testing.T) {
	good := func() *Server {
		return &Server{Database: "app", WALLevel: "logical", Slot: &State{Type: "logical", Plugin: "pgoutput", Database: "app", WALStatus: "reserved"}}
	}
	c := Config{Slot: "orders", Publication: "orders"}
	if err := good().Check(c); err != nil {
		t.Fatal(err)
	}
	none := good()
	none.Slot = nil
	if err := none.Check(c); err != nil {
		t.Fatalf("a server without the slot: %v", err)
	}
	for name, spoil := range map[string]func(*Server){
		"a standby":          func(s *Server) { s.Standby = true },
		"replica":            func(s *Server) { s.WALLevel = "replica" },
		"commits would wait": func(s *Server) { s.SynchronousNames = "*" },
		"physical":           func(s *Server) { s.Slot.Type = "physical" },
		"test_decoding":      func(s *Server) { s.Slot.Plugin = "test_decoding" },
		"database other":     func(s *Server) { s.Slot.Database = "other" },
		"temporary":          func(s *Server) { s.Slot.Temporary = true },
	} {
		s := good()
		spoil(s)
		var refused *RefusedError
		if err := s.Check(c); !errors.As(err, &refused) || !strings.Contains(err.Error(), name) || refused.Fix == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, spoil := range map[string]func(*State){
		"wal_status lost": func(s *State) { s.WALStatus = "lost"; s.Confirmed = 0x10 },
		"idle_timeout":    func(s *State) { s.Invalidation = "idle_timeout"; s.Confirmed = 0x10 },
	} {
		s := good()
		spoil(s.Slot)
		var lost *LostError
		if err := s.Check(c); !errors.As(err, &lost) || lost.Confirmed != 0x10 || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamesThatNoSlotCanHaveAreRefused(t *testing.T) {
	for _, name := range []string{"", "Orders", "a-b", "a b", `a"b`, "ä", strings.Repeat("x", 64)} {
		if ValidName(name) == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	if err := ValidName("tidegate_1"); err != nil {
		t.Error(err)
	}
}
