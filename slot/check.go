package slot

import (
	"fmt"
	"strings"
)

// Check gives a *RefusedError or *LostError when the slot cannot be used, or made, on this server. That there is no
// slot is no error here: whether one may be made is for the caller to know.
func (s *Server) Check(c Config) error {
	if err := c.validate(); err != nil {
		return err
	}
	switch {
	case s.Standby:
		return &RefusedError{Check: "server", Seen: "it is a standby", Fix: "list the primary in postgres.url; decoding from a standby is not supported"}
	case s.WALLevel != "logical":
		return &RefusedError{
			Check: "wal_level", Seen: s.WALLevel,
			Fix: "ALTER SYSTEM SET wal_level = logical, then restart PostgreSQL (managed services have a switch of their own, such as rds.logical_replication = 1)",
		}
	case MatchesSynchronous(s.SynchronousNames, AppName(c.Slot)):
		return &RefusedError{
			Check: "synchronous_standby_names",
			Seen:  fmt.Sprintf("%q matches our application_name %s: commits would wait for NATS", s.SynchronousNames, AppName(c.Slot)),
			Fix:   "ALTER SYSTEM SET synchronous_standby_names = '<the names of the real standbys>'; SELECT pg_reload_conf()",
		}
	case s.Slot != nil:
		return s.Slot.check(c, s.Database)
	}
	return nil
}

func (s *State) check(c Config, database string) error {
	refuse := func(seen, fix string) error {
		return &RefusedError{Check: "slot " + c.Slot, Seen: seen, Fix: fix}
	}
	switch {
	case s.Type != "logical":
		return refuse("it is a physical slot", "set slot.name to an own name")
	case s.Plugin != Plugin:
		return refuse(fmt.Sprintf("its output plug-in is %s, not %s", s.Plugin, Plugin),
			"set slot.name to an own name, or drop the slot if nobody needs it: SELECT pg_drop_replication_slot('"+c.Slot+"')")
	case s.Database != database:
		return refuse(fmt.Sprintf("it belongs to database %s, not %s", s.Database, database),
			"set slot.name to an own name, or the database in postgres.url to "+s.Database)
	case s.Temporary:
		return refuse("it is temporary", "set slot.name to an own name")
	case s.Lost():
		return &LostError{Slot: c.Slot, Confirmed: s.Confirmed, Reason: s.reason()}
	}
	return nil
}

func (s *State) reason() string {
	if s.Invalidation != "" {
		return s.Invalidation
	}
	return "wal_status " + s.WALStatus
}

// MatchesSynchronous reports whether a walsender named app would count as a synchronous standby under the setting
// synchronous_standby_names: FIRST, ANY and plain lists, quoted names, "*", in any case.
func MatchesSynchronous(setting, app string) bool {
	for _, name := range standbyNames(setting) {
		if name == "*" || strings.EqualFold(name, app) {
			return true
		}
	}
	return false
}

// standbyNames gives the names of the list: what is inside the parentheses where there are any.
func standbyNames(setting string) []string {
	var (
		names []string
		name  strings.Builder
		quote bool
	)
	flush := func() {
		if name.Len() > 0 {
			names = append(names, name.String())
			name.Reset()
		}
	}
	for _, r := range setting {
		switch {
		case r == '"':
			quote = !quote
		case quote:
			name.WriteRune(r)
		case r == '(':
			name.Reset()
			names = nil
		case r == ',' || r == ')' || r == ' ' || r == '\t' || r == '\n' || r == '\r':
			flush()
		default:
			name.WriteRune(r)
		}
	}
	flush()
	return names
}
