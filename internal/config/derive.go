package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegate-cdc/tidegate/event"
)

// derive fills in the defaults that follow from other values.
func (l *loader) derive(cfg *Config) {
	if cfg.Source.Name == "" && !l.failed["source.name"] {
		l.setDefault("source.name", &cfg.Source.Name, databaseName(cfg.Postgres.URL), "default, the database's name")
	}
	for i := range cfg.Outboxes {
		o, path := &cfg.Outboxes[i], fmt.Sprintf("outboxes[%d].", i)
		if len(cfg.Streams) == 1 {
			l.setDefault(path+"stream", &o.Stream, cfg.Streams[0].Name, "default, the only stream")
		}
		subject := eventSubject
		if o.Kind == "feature" {
			subject = featureSubject
			_, name, _ := strings.Cut(o.Feature.Table, ".")
			l.setDefault(path+"feature.collection", &o.Feature.Collection, name, "default, the table's name")
		}
		l.setDefault(path+"subject", &o.Subject, subject, "default")
		l.completeColumns(o, path+"columns")
		if o.Kind == "event" {
			l.dropFeature(o, path)
		}
	}
}

// completeColumns gives the columns that were left out their default names, when any was given.
func (l *loader) completeColumns(o *Outbox, path string) {
	names := reflect.ValueOf(event.DefaultColumns(o.EventKind()))
	columns := reflect.ValueOf(&o.Columns).Elem()
	given := false
	for i := range columns.NumField() {
		given = given || l.isGiven(join(path, tag(columns.Type().Field(i))))
	}
	for i := range columns.NumField() {
		if given {
			child := join(path, tag(columns.Type().Field(i)))
			name, ok := columns.Field(i).Addr().Interface().(*string)
			if !ok {
				panic("config: a column that is no string") // Columns has strings alone
			}
			l.setDefault(child, name, names.Field(i).String(), "default")
		}
	}
}

// dropFeature notes what was given for kind feature in an outbox of kind event, and clears the defaults.
func (l *loader) dropFeature(o *Outbox, path string) {
	for _, k := range Keys() {
		child, found := strings.CutPrefix(k.Path, "outboxes[].")
		if found && forFeature(child) && l.isGiven(path+child) {
			l.problem(path+child, "is for kind feature, and this outbox is of kind event", "remove it, or write "+path+"kind: feature")
		}
	}
	o.Feature, o.Geometry, o.H3Resolution, o.H3Point = Feature{}, "", 0, ""
}

func forFeature(key string) bool {
	return strings.HasPrefix(key, "feature.") || key == "geometry" || strings.HasPrefix(key, "h3_")
}

// EventKind is the Kind as the event package has it.
func (o Outbox) EventKind() event.Kind {
	if o.Kind == "feature" {
		return event.KindFeature
	}
	return event.KindEvent
}

// isGiven reports whether a key was written somewhere.
func (l *loader) isGiven(path string) bool {
	origin := l.seen[path].origin
	return origin != "" && !strings.HasPrefix(origin, "default")
}

// EventTable is the outbox as the event package binds it.
func (o Outbox) EventTable() *event.Table {
	return &event.Table{Name: o.Table, Kind: o.EventKind(), Columns: event.Columns(o.Columns), Collection: o.Feature.Collection}
}

// setDefault fills a field that was not given.
func (l *loader) setDefault(path string, field *string, value, origin string) {
	if !l.isGiven(path) && value != "" {
		*field = value
		l.seen[path] = seen{value, origin}
	}
}

// databaseName is the database that a connection with url leads to: as with every client, the user's when none is named.
func databaseName(url string) string {
	c, err := pgconn.ParseConfig(url)
	if err != nil {
		return ""
	}
	return or(c.Database, c.User)
}
