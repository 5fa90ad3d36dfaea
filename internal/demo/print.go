package demo

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/geometry"
)

const (
	subjectWidth = 44
	bodyWidth    = 96
)

// line is one event for the terminal: when it arrived, its subject, and the gist of its body.
func line(at time.Time, subject string, header nats.Header, body []byte) string {
	gist, ok := featureGist(body)
	if !ok {
		gist = header.Get(event.HeaderEventType) + " " + string(body)
	}
	return fmt.Sprintf("%s  %-*s  %s\n", at.Format("15:04:05.000"), subjectWidth, subject, shorten(gist, bodyWidth))
}

// featureGist picks from a feature's message what a person looks for.
func featureGist(body []byte) (string, bool) {
	var f struct {
		Action  string          `json:"action"`
		ID      string          `json:"feature_id"`
		Version json.RawMessage `json:"event_version"`
		Status  string          `json:"geometry_status"`

		Geometry *struct {
			Type        string          `json:"type"`
			Coordinates json.RawMessage `json:"coordinates"`
		} `json:"geometry"`
	}
	if json.Unmarshal(body, &f) != nil || f.ID == "" || f.Status == "" {
		return "", false
	}
	gist := fmt.Sprintf("%s feature %s v%s", f.Action, f.ID, f.Version)
	if f.Geometry != nil {
		gist += fmt.Sprintf(" %s %s", f.Geometry.Type, f.Geometry.Coordinates)
	}
	if f.Status != string(geometry.StatusOK) {
		gist += " (geometry " + f.Status + ")"
	}
	return gist, true
}

// shorten cuts s to at most width characters, between characters, and to one line.
func shorten(s string, width int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
