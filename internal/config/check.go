package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// check notes what is wrong with single values beyond their form, and with values beside each other.
func (l *loader) check(c *Config) {
	l.checkPostgres(c)
	l.checkSlot(c)
	l.checkStreams(c)
	l.checkOutboxes(c)
	l.checkNATS(c)
	l.checkPublish(c)
	l.checkRetention(c)
	l.checkMonitor(c)
	l.checkService(c)
}

func (l *loader) checkPostgres(c *Config) {
	for path, conn := range map[string]string{
		"postgres.url": c.Postgres.URL, "postgres.replication_url": c.Postgres.ReplicationURL, "postgres.lookup_url": c.Postgres.LookupURL,
	} {
		if conn == "" && path != "postgres.url" {
			continue
		}
		if err := CheckPostgresURL(conn); err != nil {
			l.problem(path, err.Error(), "write it like postgres://user@host:5432/database?sslmode=require, the password by "+path+fileSuffix)
		}
	}
	if !l.failed["postgres.url"] && !matches(`^[A-Za-z0-9_-]{1,64}$`, c.Source.Name) {
		l.problem("source.name", "is not a name of letters, digits, _ and -, at most 64", "write a short name, such as source.name: orders")
	}
}

// CheckPostgresURL says what is wrong with a URL or keyword string. Where it is not certain which part of it is the
// password, details that may quote it are left out.
func CheckPostgresURL(conn string) error {
	_, err := pgconn.ParseConfig(conn)
	if err == nil {
		return nil
	}
	text := err.Error()
	if _, after, found := strings.Cut(text, "`: "); found {
		text = after
	}
	if maskPostgres(conn) == mask {
		text, _, _ = strings.Cut(text, " (")
	}
	if u, parseErr := url.Parse(conn); parseErr == nil {
		if password, _ := u.User.Password(); password != "" {
			text = strings.ReplaceAll(text, password, mask)
		}
	}
	return fmt.Errorf("cannot be read: %s", shorten(strings.ReplaceAll(text, "failed to ", "cannot ")))
}

func (l *loader) checkSlot(c *Config) {
	if !matches(`^[a-z0-9_]{1,63}$`, c.Slot.Name) {
		l.problem("slot.name", "is not a name of lower-case letters, digits and _, at most 63", "write one such as "+suggestSlot(c.Slot.Name))
	}
	if c.Monitor.Interval < time.Second {
		l.problem("monitor.interval", "is shorter than 1s", "write 10s")
	}
	if n := len(c.Slot.Publication); n == 0 || n > 63 {
		l.problem("slot.publication", "is empty or longer than 63 bytes", "write the publication's name")
	}
}

// suggestSlot gives a name like s that Postgres takes for a slot.
func suggestSlot(s string) string {
	s = regexp.MustCompile(`[^a-z0-9_]+`).ReplaceAllString(strings.ToLower(s), "_")
	if s = strings.Trim(s, "_"); s == "" {
		return "tidegate"
	}
	return s[:min(len(s), 63)]
}

func (l *loader) checkPublish(c *Config) {
	p := c.Publish
	if p.MaxInFlight < 1 {
		l.problem("publish.max_in_flight", "is less than 1", "write at least 1; the default is 4096")
	}
	if p.MaxInFlightBytes < 1<<20 {
		l.problem("publish.max_in_flight_bytes", "is less than 1MiB", "write at least 1MiB; the default is 64MiB")
	}
	if p.AckTimeout < 10*time.Millisecond {
		l.problem("publish.ack_timeout", "is shorter than 10ms", "write a time that an acknowledgement may take; the default is 5s")
	}
	switch {
	case p.MaxRow < 1<<10:
		l.problem("publish.max_row", "is less than 1KiB", "write at least 1KiB; the default is 16MiB")
	case p.MaxRow > p.MaxInFlightBytes:
		l.problem("publish.max_row", "is more than publish.max_in_flight_bytes ("+formatSize(p.MaxInFlightBytes)+")",
			"raise publish.max_in_flight_bytes, or lower publish.max_row")
	}
	if c.Park.MaxRows < 1 {
		l.problem("park.max_rows", "is less than 1", "write at least 1, or park.store: off to park none; the default is 10000")
	}
}

// checkRetention keeps rows at least as long as the stream keeps their messages: rows that are gone from both cannot
// be compared or published again.
func (l *loader) checkRetention(c *Config) {
	const margin = 24 * time.Hour
	r := c.Retention
	if r.Keep < 0 {
		l.problem("retention.keep", "is negative", "write 0 to delete nothing")
	}
	if r.Batch < 1 {
		l.problem("retention.batch", "is less than 1", "write at least 1; the default is 2000")
	}
	for i, s := range c.Streams {
		least := s.MaxAge + margin
		if r.Keep > 0 && s.MaxAge > 0 && r.Keep < least {
			path := fmt.Sprintf("streams[%d].max_age", i)
			l.also("retention.keep", fmt.Sprintf("is less than %s (%s) plus 24h", path, formatDuration(s.MaxAge)),
				"write at least "+formatDuration(least)+", or lower "+path)
		}
	}
}

func (l *loader) checkMonitor(c *Config) {
	w, crit := c.Monitor.Warn, c.Monitor.Critical
	if c.Monitor.Interval < time.Second {
		l.problem("monitor.interval", "is shorter than 1s", "write at least 1s; the default is 10s")
	}
	if w.Used >= crit.Used {
		l.problem("monitor.warn.used", "is not less than monitor.critical.used", "warn before it is critical")
	}
	if w.ETA <= crit.ETA {
		l.problem("monitor.warn.eta", "is not more than monitor.critical.eta", "warn while there is more time left")
	}
	if w.Age >= crit.Age {
		l.problem("monitor.warn.age", "is not less than monitor.critical.age", "warn before it is critical")
	}
}

func (l *loader) checkService(c *Config) {
	_, port, err := net.SplitHostPort(c.HTTP.Listen)
	if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || n > 65535 {
		l.problem("http.listen", "is not an address with a port", "write it like 127.0.0.1:9464, or :9464 for every interface")
	}
	if c.HTTP.ReadyGrace < 0 {
		l.problem("http.ready_grace", "is negative", "write 0 to fail readiness at once")
	}
}

// also notes a second problem of a path that may have one already.
func (l *loader) also(path, reason, mend string) {
	failed := l.failed[path]
	l.failed[path] = false
	l.problem(path, reason, mend)
	l.failed[path] = l.failed[path] || failed
}

func matches(pattern, s string) bool { return regexp.MustCompile(pattern).MatchString(s) }
