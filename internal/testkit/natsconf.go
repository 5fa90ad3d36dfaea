package testkit

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// NATSOption changes what NATS starts.
type NATSOption func(*natsOptions)

type natsOptions struct {
	user, password string
	token          string
	nkey           string
	tls            *Certs
	maxPayload     int
	name           string // of the server; empty: testkit
	store          string // JetStream's folder; empty: one in the server's own
	maxFileStore   string // in the server's own notation; empty: 8GB
	extra          []string
}

// NATSUser makes clients need a user and a password; URL carries them.
func NATSUser(user, password string) NATSOption {
	return func(o *natsOptions) { o.user, o.password = user, password }
}

// NATSToken makes clients need a token; URL carries it.
func NATSToken(token string) NATSOption { return func(o *natsOptions) { o.token = token } }

// NATSNKey lets in only the client that owns this public user nkey.
func NATSNKey(public string) NATSOption { return func(o *natsOptions) { o.nkey = public } }

// NATSTLS makes clients need TLS and a certificate of the same authority.
func NATSTLS(certs *Certs) NATSOption { return func(o *natsOptions) { o.tls = certs } }

// NATSMaxPayload sets the largest message, in bytes.
func NATSMaxPayload(bytes int) NATSOption { return func(o *natsOptions) { o.maxPayload = bytes } }

// NATSStore puts JetStream's files into a folder that stays when the server is gone.
func NATSStore(dir string) NATSOption { return func(o *natsOptions) { o.store = dir } }

// NATSMaxFileStore bounds what JetStream stores in files, in the server's own notation: 16MB.
func NATSMaxFileStore(size string) NATSOption { return func(o *natsOptions) { o.maxFileStore = size } }

// NATSConf adds text to the configuration, in the server's own format.
func NATSConf(text string) NATSOption {
	return func(o *natsOptions) { o.extra = append(o.extra, text) }
}

// URL is how a client connects, with the user and password or the token that it needs.
func (n *NATSServer) URL() string {
	u := url.URL{Scheme: "nats", Host: n.Address()}
	switch o := n.options; {
	case o.user != "":
		u.User = url.UserPassword(o.user, o.password)
	case o.token != "":
		u.User = url.User(o.token)
	}
	if n.options.tls != nil {
		u.Scheme = "tls"
	}
	return u.String()
}

// BareURL is URL without credentials.
func (n *NATSServer) BareURL() string {
	scheme := "nats://"
	if n.options.tls != nil {
		scheme = "tls://"
	}
	return scheme + n.Address()
}

// conf is the server's configuration file.
func (o *natsOptions) conf(port int, dir string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "listen: \"127.0.0.1:%d\"\nserver_name: %s\n", port, cmp.Or(o.name, "testkit"))
	fmt.Fprintf(&text, "jetstream { store_dir: %q, max_file_store: %s, max_memory_store: 256MB }\n",
		cmp.Or(o.store, filepath.Join(dir, "store")), cmp.Or(o.maxFileStore, "8GB"))
	switch {
	case o.user != "":
		fmt.Fprintf(&text, "authorization { user: %q, password: %q }\n", o.user, o.password)
	case o.token != "":
		fmt.Fprintf(&text, "authorization { token: %q }\n", o.token)
	case o.nkey != "":
		fmt.Fprintf(&text, "authorization { users: [ { nkey: %q } ] }\n", o.nkey)
	}
	if o.tls != nil {
		fmt.Fprintf(&text, "tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n",
			o.tls.ServerCertFile, o.tls.ServerKeyFile, o.tls.CAFile)
	}
	if o.maxPayload != 0 {
		fmt.Fprintf(&text, "max_payload: %d\n", o.maxPayload)
	}
	text.WriteString(strings.Join(o.extra, "\n"))
	return text.String()
}
