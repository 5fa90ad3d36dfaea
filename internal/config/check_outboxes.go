package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/router"
)

func (l *loader) checkStreams(c *Config) {
	if len(c.Streams) == 0 {
		l.problem("streams", "is an empty list", "write a stream, or remove the key for the default one")
	}
	names := map[string]int{}
	for i, s := range c.Streams {
		path := fmt.Sprintf("streams[%d].", i)
		l.checkStreamName(path+"name", s.Name)
		if other, twice := names[s.Name]; twice && s.Name != "" {
			l.problem(path+"name", fmt.Sprintf("is also the name of streams[%d]", other), "give every stream a name of its own")
		}
		names[s.Name] = i
		if s.Replicas < 1 || s.Replicas > 5 {
			l.problem(path+"replicas", "is not between 1 and 5", "write 1, or 3 on a cluster")
		}
		l.checkStreamTimes(path, s)
		if !l.isUsed(c, s.Name) && s.Name != "" {
			l.problem(path+"name", "is named by no outbox", "remove the stream, or name it in the outbox that publishes to it")
		}
	}
}

func (l *loader) checkStreamName(path, name string) {
	switch {
	case name == "":
		l.problem(path, "is missing", "write the stream's name, such as OUTBOX")
	case !matches(`^[^\s.*>/\\\x00-\x20\x7f]{1,255}$`, name):
		l.problem(path, "holds a character that JetStream does not take in a stream's name", "use letters, digits, _ and -")
	}
}

func (l *loader) checkStreamTimes(path string, s Stream) {
	const least = 100 * time.Millisecond
	if s.MaxAge != 0 && s.MaxAge < least {
		l.problem(path+"max_age", "is shorter than 100ms", "write a longer time, or 0 to keep messages for ever")
	}
	switch {
	case s.DuplicateWindow < least:
		l.problem(path+"duplicate_window", "is shorter than 100ms", "write a longer time; the default is 2m")
	case s.MaxAge >= least && s.DuplicateWindow > s.MaxAge:
		l.problem(path+"duplicate_window", "is more than "+path+"max_age ("+formatDuration(s.MaxAge)+")",
			"raise "+path+"max_age, or lower "+path+"duplicate_window")
	}
}

// isUsed reports whether an outbox names the stream. One whose own stream is in doubt may.
func (l *loader) isUsed(c *Config, stream string) bool {
	for i, o := range c.Outboxes {
		if o.Stream == stream || l.failed[fmt.Sprintf("outboxes[%d].stream", i)] {
			return true
		}
	}
	return len(c.Outboxes) == 0
}

func (l *loader) checkOutboxes(c *Config) {
	if len(c.Outboxes) == 0 {
		l.problem("outboxes", "is an empty list", "write an outbox: its table and, where it is not event, its kind")
	}
	tables := map[string]int{}
	for i, o := range c.Outboxes {
		path := fmt.Sprintf("outboxes[%d].", i)
		l.checkTable(path+"table", o.Table)
		if other, twice := tables[o.Table]; twice && o.Table != "" {
			l.problem(path+"table", fmt.Sprintf("is also the table of outboxes[%d]", other), "keep one outbox of a table")
		}
		tables[o.Table] = i
		l.checkOutboxStream(c, path, o)
		l.checkSubject(path+"subject", o)
		l.checkColumns(path+"columns", o)
		if o.Kind == "feature" {
			l.checkFeature(path, o)
		}
	}
}

func (l *loader) checkOutboxStream(c *Config, path string, o Outbox) {
	if len(c.Streams) == 0 {
		return
	}
	var names []string
	for _, s := range c.Streams {
		names = append(names, s.Name)
		if s.Name == o.Stream && o.Stream != "" {
			return
		}
	}
	mend := "write the name of a stream that is listed under streams"
	if near := nearest(o.Stream, names); near != "" {
		mend += "; did you mean " + near + "?"
	}
	if o.Stream == "" {
		l.problem(path+"stream", "is missing, and there are several streams", mend)
		return
	}
	l.problem(path+"stream", "is not the name of a stream under streams", mend)
}

// checkTable wants "schema.table" as Postgres stores the two names.
func (l *loader) checkTable(path, name string) {
	schema, table, found := strings.Cut(name, ".")
	switch {
	case name == "":
		l.problem(path, "is missing", "write it as schema.table")
	case strings.Contains(name, `"`):
		l.problem(path, "holds quotes", "write the names as they are stored, without quotes")
	case !found:
		l.problem(path, "names no schema", "write public."+name+", or the schema it lies in")
	case schema == "" || table == "" || strings.Contains(table, ".") || len(schema) > 63 || len(table) > 63:
		l.problem(path, "is not a schema and a table with a dot between them", "write it as schema.table")
	}
}

// checkSubject asks the router, which will read the template again.
func (l *loader) checkSubject(path string, o Outbox) {
	_, err := router.New(router.Config{Source: "source", Table: o.EventTable(), Subject: o.Subject})
	if err == nil {
		return
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	l.problem(path, "cannot be a subject: "+err.Error(), "mend the template, or remove the key for the default")
}

// checkColumns refuses names for the other kind, and a required column that is unmapped.
func (l *loader) checkColumns(path string, o Outbox) {
	if o.Columns == (Columns{}) {
		return
	}
	columns := reflect.ValueOf(o.Columns)
	defaults := reflect.ValueOf(event.DefaultColumns(o.EventKind()))
	for i := range columns.NumField() {
		child := join(path, tag(columns.Type().Field(i)))
		name, usual := columns.Field(i).String(), defaults.Field(i).String()
		switch {
		case name == "" && usual != "" && isRequired(last(child)):
			l.problem(child, "is unmapped, and an event of kind "+o.Kind+" needs it", "write the column's name, or remove the key for "+usual)
		case name != "" && usual == "" && isOfOtherKind(last(child), o.Kind):
			l.problem(child, "is not for kind "+o.Kind, "remove it")
		case len(name) > 63:
			l.problem(child, "is longer than 63 bytes", "write the column's name as it is stored")
		}
	}
}

func isRequired(column string) bool {
	switch column {
	case "id", "aggregate_type", "aggregate_id", "event_type", "payload", "feature_id", "feature_version":
		return true
	default:
		return false
	}
}

func isOfOtherKind(column, kind string) bool {
	switch column {
	case "feature_id", "feature_version", "routing_key", "schema_version":
		return kind == "event"
	case "aggregate_type", "aggregate_id", "payload", "version", "headers":
		return kind == "feature"
	default:
		return false
	}
}

func (l *loader) checkFeature(path string, o Outbox) {
	if o.Feature.Table == "" {
		l.problem(path+"feature.table", "is missing, and "+path+"kind is feature", "write the features' table as schema.table, such as public.features")
	} else {
		l.checkTable(path+"feature.table", o.Feature.Table)
	}
	for key, name := range map[string]string{"id": o.Feature.ID, "version": o.Feature.Version, "geometry": o.Feature.Geometry} {
		if name == "" {
			l.problem(path+"feature."+key, "is empty", "write the column's name, or remove the key for the default")
		}
	}
	if s := o.Feature.AssumeSRID; s < 1 || s > 999999 {
		l.problem(path+"feature.assume_srid", "is not an SRID", "write one that PostGIS knows, such as 4326")
	}
	if r := o.H3Resolution; r < 0 || r > 15 {
		l.problem(path+"h3_resolution", "is not between 0 and 15", "write 8 for cells of about 0.7 square kilometres")
	}
}
