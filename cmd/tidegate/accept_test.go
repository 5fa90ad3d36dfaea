package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/divergence"
	"github.com/tidegate-cdc/tidegate/internal/relay"
	"github.com/tidegate-cdc/tidegate/publish"
)

func TestAcceptPrintsWhatIsGivenUpAndAllEventsWhereTheyAreAskedFor(t *testing.T) {
	plan := &divergence.Plan{Source: "app", From: "0/5100", Findings: []divergence.Finding{{What: "timeline 1 ended", GivenUp: "25 events"}}}
	for n := range 25 {
		plan.Events = append(plan.Events, publish.Event{Stream: "S", Seq: uint64(n + 1), Subject: "x.a", MsgID: fmt.Sprint("app/t/", n+1)})
	}
	for _, tc := range []struct {
		list, asJSON, accepted bool
		says                   []string
		events                 int
	}{
		{says: []string{"found: timeline 1 ended", "given up: 25 events", "25 events in the streams", "and 5 more"}, events: 20},
		{list: true, events: 25},
		{accepted: true, says: []string{"run goes on from 0/5100"}, events: 20},
		{asJSON: true, says: []string{`"continues_from": "0/5100"`, `"accepted": false`}, events: 25},
	} {
		var out bytes.Buffer
		no := false
		err := printAcceptance(&out, &relay.Acceptance{Plan: plan}, acceptFlags{&no, &tc.list, &tc.asJSON}, tc.accepted)
		if err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for _, s := range tc.says {
			if !strings.Contains(text, s) {
				t.Errorf("%+v: no %q in\n%s", tc, s, text)
			}
		}
		if n := strings.Count(text, "app/t/"); n != tc.events {
			t.Errorf("%+v: %d events in\n%s", tc, n, text)
		}
		if tc.asJSON && !json.Valid(out.Bytes()) {
			t.Errorf("no JSON: %s", text)
		}
	}
}
