package router

import (
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/event"
)

func TestSubjectsCoverTheTemplate(t *testing.T) {
	for _, c := range []struct {
		table      *event.Table
		subject    string
		resolution int
		want       string
	}{
		{outbox, "outbox.{aggregate_type}.{aggregate_id}", 8, "outbox.*.*"},
		{outbox, "outbox.p-{partition:16}.{event_type}", 8, "outbox.*.*"},
		{outbox, "fixed.subject", 8, "fixed.subject"},
		{outbox, "{aggregate_type}", 8, "*"},
		{outbox, "a.{aggregate_type}-{event_type}.z", 8, "a.*.z"},
		{featureOutbox, "geo.{collection}.{event_type}.{h3}", 8, "geo.*.*.*.*.*.*.*.*.*.*.*"},
		{featureOutbox, "{h3}.{feature_id}", 1, "*.*.*"},
		{featureOutbox, "geo.{h3}", 0, "geo.*"},
	} {
		r, err := New(Config{Source: "app", Table: c.table, Subject: c.subject, H3Resolution: c.resolution})
		if err != nil {
			t.Errorf("%s: %v", c.subject, err)
		} else if got := r.Subjects(); got != c.want {
			t.Errorf("%s: filter %s, want %s", c.subject, got, c.want)
		}
	}
}

func TestBadTemplatesSayWhatToWriteInstead(t *testing.T) {
	for _, c := range []struct {
		table         *event.Table
		subject, want string
	}{
		{outbox, "o.{agregate_id}", "unknown token {agregate_id}; did you mean {aggregate_id}? There are {aggregate_type} {aggregate_id} {event_type} {partition:N}"},
		{featureOutbox, "o.{colection}", "unknown token {colection}; did you mean {collection}?"},
		{outbox, "o.{h3}", "token {h3} is only for an outbox of kind feature; use one of {aggregate_type} {aggregate_id} {event_type} {partition:N}"},
		{outbox, "o.{partition}", "unknown token {partition}; did you mean {partition:N}?"},
		{outbox, "o.{partition:N}", "token {partition:N}: want a number of partitions from 1 to 1048576, as in {partition:16}"},
		{outbox, "o.{partition:0}", "want a number of partitions"},
		{outbox, "o.{partition:1048577}", "want a number of partitions"},
		{outbox, "o.{}", "unknown token {}"},
		{outbox, "o.{event_type", `the { before "event_type" is not closed`},
		{outbox, "o.event_type}", "a } without a { before it"},
		{outbox, "", "it is empty"},
		{outbox, "o..{event_type}", "a dot has no token at one of its sides"},
		{outbox, ".o", "a dot has no token at one of its sides"},
		{outbox, "o.{event_type}.", "a dot has no token at one of its sides"},
		{outbox, "$JS.{event_type}", "subjects that begin with $ or _INBOX belong to the server"},
		{outbox, "_INBOX.x", "subjects that begin with $ or _INBOX belong to the server"},
		{outbox, "o.*", `'*' must not stand in a subject`},
		{outbox, "o.>", `'>' must not stand in a subject`},
		{outbox, "o o", `' ' must not stand in a subject`},
		{outbox, "o\to", `'\t' must not stand in a subject`},
		{outbox, "o\xff", `must not stand in a subject`},
		{featureOutbox, "geo.a{h3}", "put a dot before and behind it"},
		{featureOutbox, "geo.{h3}{feature_id}", "put a dot before and behind it"},
	} {
		_, err := New(Config{Source: "app", Table: c.table, Subject: c.subject, H3Resolution: 8})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %s", c.subject, err, c.want)
		} else if !strings.HasPrefix(err.Error(), "route outbox "+c.table.Name+": subject ") {
			t.Errorf("%q: error %v does not say where", c.subject, err)
		}
	}
}

func TestImpossibleRoutesAreRefused(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Source: "app", Subject: "o"}, "no table is given"},
		{Config{Table: outbox, Subject: "o"}, "route outbox public.outbox: the source has no name"},
		{Config{Source: "app", Table: outbox, Subject: "o", H3Resolution: 16}, "h3_resolution 16: want 0 to 15"},
		{Config{Source: "app", Table: outbox, Subject: "o", H3Resolution: -1}, "h3_resolution -1: want 0 to 15"},
	} {
		if _, err := New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %s", c.config, err, c.want)
		}
	}
}
