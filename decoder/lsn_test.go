package decoder_test

import (
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/decoder"
)

func TestLSNIsWrittenAsPostgresDoes(t *testing.T) {
	for lsn, want := range map[decoder.LSN]string{
		0:                     "0/0",
		0x16_B374D848:         "16/B374D848",
		0xFFFFFFFF_FFFFFFFF:   "FFFFFFFF/FFFFFFFF",
		0x1_00000000:          "1/0",
		decoder.LSN(0xABCDEF): "0/ABCDEF",
	} {
		if got := lsn.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		back, err := decoder.ParseLSN(want)
		if err != nil || back != lsn {
			t.Errorf("parse %q: %v, %v", want, back, err)
		}
	}
}

func TestParseLSNRefusesWhatIsNone(t *testing.T) {
	for _, s := range []string{"", "/", "1", "1/", "/1", "1/2/3", "G/1", "1/G", "-1/1", "100000000/0", "0/100000000", " 1/1"} {
		if lsn, err := decoder.ParseLSN(s); err == nil || !strings.HasPrefix(err.Error(), "parse LSN ") {
			t.Errorf("%q: %v, %v", s, lsn, err)
		}
	}
}
