package acceptance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
	"github.com/tidegate-cdc/tidegate/router"
)

// message is a stored message.
type message struct{ *jetstream.RawStreamMsg }

// header gives a header's value, decoded.
func (m message) header(name string) string {
	value, _ := event.DecodeHeaderValue(m.Header.Get(name))
	return value
}

// read gives every message of a small stream, in its order.
func (s *scene) read(t *testing.T, stream string) []message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	st, err := s.js.Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	var all []message
	for seq := st.CachedInfo().State.FirstSeq; seq > 0 && seq <= st.CachedInfo().State.LastSeq; seq++ {
		m, err := st.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, message{m})
	}
	return all
}

// query gives rows of texts.
func (s *scene) query(t *testing.T, sql string) [][]string {
	t.Helper()
	rows, err := testkit.Connect(t, s.url).Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]string, error) {
		values := make([]string, len(row.FieldDescriptions()))
		targets := make([]any, len(values))
		for i := range values {
			targets[i] = &values[i]
		}
		return values, row.Scan(targets...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantToken(t *testing.T, subject string, at int, want string) {
	t.Helper()
	tokens := strings.Split(subject, ".")
	if len(tokens) != 3 {
		t.Errorf("subject %q of %.40q has %d tokens", subject, want, len(tokens))
		return
	}
	if got, ok := router.Unescape(tokens[at]); !ok || got != want {
		t.Errorf("token %q stands for %.40q, not for %.40q", tokens[at], got, want)
	}
}

func wantHeader(t *testing.T, m message, name, want string) {
	t.Helper()
	if got := m.header(name); got != want {
		t.Errorf("header %s is %.40q, not %.40q", name, got, want)
	}
}

// escaped writes bytes as PostgreSQL's encode(…, 'escape') does.
func escaped(data []byte) string {
	var b strings.Builder
	for _, c := range data {
		switch {
		case c == '\\':
			b.WriteString(`\\`)
		case c == 0 || c >= 0x80:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
