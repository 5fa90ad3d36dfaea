package config

import (
	"net/url"
	"os"
	"slices"
	"strings"
)

func (l *loader) checkNATS(c *Config) {
	n := c.NATS
	l.checkServers(n.URL)
	l.checkAuthentication(n)
	for path, file := range map[string]string{
		"nats.creds_file": n.CredsFile, "nats.nkey_file": n.NKeyFile,
		"nats.tls.ca": n.TLS.CA, "nats.tls.cert": n.TLS.Cert, "nats.tls.key": n.TLS.Key,
	} {
		l.checkReadable(path, file)
	}
	if n.TLS.Cert != "" && n.TLS.Key == "" {
		l.problem("nats.tls.key", "is missing beside nats.tls.cert", "write the file of the certificate's key")
	}
	if n.TLS.Key != "" && n.TLS.Cert == "" {
		l.problem("nats.tls.cert", "is missing beside nats.tls.key", "write the file of the certificate")
	}
	if p := n.InboxPrefix; p != "" && !matches(`^[^\s.*>]+(\.[^\s.*>]+)*$`, p) {
		l.problem("nats.inbox_prefix", "is not a subject without wildcards", "write it like _INBOX_tidegate")
	}
	if d := n.JetStreamDomain; d != "" && !matches(`^[^\s.*>]+$`, d) {
		l.problem("nats.jetstream_domain", "is not one token of a subject", "write the domain's name alone")
	}
}

func (l *loader) checkServers(servers string) {
	const mend = "write it like nats://localhost:4222, several separated by commas"
	for server := range strings.SplitSeq(servers, ",") {
		server = strings.TrimSpace(server)
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		u, err := url.Parse(server)
		switch {
		case err != nil || u.Hostname() == "":
			l.problem("nats.url", "is not the address of a server", mend)
		case !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme):
			l.problem("nats.url", "has the scheme "+shorten(u.Scheme)+", which NATS does not know", mend)
		}
	}
}

// checkAuthentication allows one way at most, and none beside a context, which brings its own.
func (l *loader) checkAuthentication(n NATS) {
	var ways []string
	for _, w := range []struct{ path, value string }{
		{"nats.context", n.Context}, {"nats.creds_file", n.CredsFile}, {"nats.nkey_file", n.NKeyFile}, {"nats.user", n.User}, {"nats.token", n.Token},
	} {
		if w.value != "" {
			ways = append(ways, w.path)
		}
	}
	if strings.Contains(n.URL, "@") && len(ways) > 0 {
		ways = append(ways, "nats.url")
	}
	if len(ways) > 1 {
		l.problem(ways[0], "is given together with "+strings.Join(ways[1:], " and ")+": several ways to log in", "keep one of "+strings.Join(ways, ", "))
	}
	if n.Context != "" && l.isGiven("nats.url") {
		l.problem("nats.url", "is given together with nats.context, which names its own servers", "keep one of the two")
	}
	if n.Password != "" && n.User == "" {
		l.problem("nats.password", "is given without nats.user", "write the user's name")
	}
	if n.User != "" && n.Password == "" && !l.failed["nats.password"] {
		l.problem("nats.user", "is given without nats.password", "write the password, or nats.token where the server wants a token")
	}
}

func (l *loader) checkReadable(path, file string) {
	if file == "" {
		return
	}
	f, err := os.Open(file)
	if err != nil {
		l.problem(path, "cannot be opened: "+reason(err), "name a file that this user can read")
		return
	}
	f.Close()
}
