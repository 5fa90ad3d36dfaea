package config

import (
	"net/url"
	"regexp"
	"strings"
)

const mask = "*****"

// maskSecret hides what is secret in the value of a secret key: the whole of it or, in an address, the password.
func maskSecret(path, value string) string {
	if value == "" {
		return ""
	}
	switch {
	case strings.HasPrefix(path, "postgres."):
		return maskPostgres(value)
	case path == "nats.url":
		return maskNATS(value)
	default:
		return mask
	}
}

// maskPostgres hides the passwords in a Postgres URL or keyword string. What it cannot read it hides whole.
func maskPostgres(s string) string {
	if !strings.Contains(s, "://") {
		return keywordPassword().ReplaceAllString(s, "${1}"+mask)
	}
	u, err := url.Parse(s)
	if err != nil || (u.User == nil && strings.Contains(s, "@")) {
		return mask
	}
	query := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if query.Has(name) {
			query.Set(name, mask)
			u.RawQuery = query.Encode()
		}
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), mask)
	}
	return readable(u)
}

// keywordPassword finds the passwords of a keyword string, quoted or not.
func keywordPassword() *regexp.Regexp {
	return regexp.MustCompile(`((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'?|(?:[^\s'\\]|\\.)(?:[^\s\\]|\\.)*)`)
}

// maskNATS hides passwords, and user names that stand alone: NATS takes them as tokens.
func maskNATS(s string) string {
	servers := strings.Split(s, ",")
	for i, server := range servers {
		at := strings.LastIndex(server, "@")
		if at < 0 {
			continue
		}
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil || u.User == nil {
			servers[i] = mask + server[at:]
			continue
		}
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), mask)
		} else {
			u.User = url.User(mask)
		}
		servers[i] = readable(u)
	}
	return strings.Join(servers, ",")
}

// readable gives u with the mask as it was written.
func readable(u *url.URL) string {
	return strings.ReplaceAll(u.String(), url.QueryEscape(mask), mask)
}
