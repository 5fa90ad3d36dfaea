package decoder_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
	"github.com/tidegate-cdc/tidegate/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestLiveSessionReadsLikePglogreplAndLikeTheRecording does what the recording was made of again, on the server that is
// installed or that POSTGRES_BIN names.
func TestLiveSessionReadsLikePglogreplAndLikeTheRecording(t *testing.T) {
	pg := testkit.Postgres(t)
	url := pg.PlainDatabase(t)
	d := decoder.New()
	var m decoder.Message
	var got strings.Builder
	for i, data := range testkit.RecordSession(t, url) {
		if err := d.Decode(data, &m); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if err := differs(data, &m); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
		fmt.Fprintln(&got, describe(&m))
	}
	want, err := os.ReadFile("testdata/session.golden")
	if err != nil {
		t.Fatal(err)
	}
	version := testkit.Value[int](t, url, "SELECT current_setting('server_version_num')::int / 10000")
	if got, want := comparable(got.String(), version), comparable(string(want), version); got != want {
		t.Errorf("PostgreSQL %d\ngot\n%s\nwant\n%s", version, got, want)
	}
}

var (
	logicalMessage   = regexp.MustCompile(`(?m)^logical message .*\n`)
	emptyTransaction = regexp.MustCompile(`(?m)^begin\n(origin .*\n)?commit\n`)
)

// comparable leaves out of a description what differs between versions: 13 sends no logical messages, and 13 and 14
// also send the begin and commit of transactions that hold nothing for us.
func comparable(description string, version int) string {
	if version == 13 {
		description = logicalMessage.ReplaceAllString(description, "")
	}
	return emptyTransaction.ReplaceAllString(description, "")
}
