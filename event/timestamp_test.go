package event

import (
	"fmt"
	"testing"
	"time"
)

func TestTimestampsAreExactToTheMicrosecond(t *testing.T) {
	utc := func(year, month, day, hour, minute, second, micro int) time.Time {
		return time.Date(year, time.Month(month), day, hour, minute, second, micro*1000, time.UTC)
	}
	for text, want := range map[string]time.Time{
		"2026-11-30 22:53:39.123456+00":          utc(2026, 11, 30, 22, 53, 39, 123456),
		"2026-11-30 22:53:39.000001+00":          utc(2026, 11, 30, 22, 53, 39, 1),
		"2026-11-30 22:53:39.5+00":               utc(2026, 11, 30, 22, 53, 39, 500000),
		"2026-11-30 22:53:39+00":                 utc(2026, 11, 30, 22, 53, 39, 0),
		"2026-11-30 22:53:39":                    utc(2026, 11, 30, 22, 53, 39, 0),
		"2024-02-29 00:00:00+00":                 utc(2024, 2, 29, 0, 0, 0, 0),
		"2026-01-01 00:00:00+05:30":              utc(2025, 12, 31, 18, 30, 0, 0),
		"2026-01-01 00:00:00-03:30":              utc(2026, 1, 1, 3, 30, 0, 0),
		"1891-01-01 00:00:00.25+00:09:21":        utc(1890, 12, 31, 23, 50, 39, 250000),
		"0001-01-01 00:00:00+00 BC":              utc(0, 1, 1, 0, 0, 0, 0),
		"4713-11-24 00:00:00+00 BC":              utc(-4712, 11, 24, 0, 0, 0, 0),
		"294276-12-31 23:59:59.999999+00":        utc(294276, 12, 31, 23, 59, 59, 999999),
		"0044-03-15 12:00:00.000007-00:01:15 BC": utc(-43, 3, 15, 12, 1, 15, 7),
	} {
		if got, ok := parseTimestamp([]byte(text)); !ok || !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%q: got %v, %t, want %v", text, got, ok, want)
		}
	}
}

func TestWhatIsNoTimestampIsRefused(t *testing.T) {
	for _, text := range []string{
		"", " BC", "infinity", "-infinity", "now", "2026", "2026-11-30", "2026-11-30 22:53", "2026-11-30T22:53:39+00",
		"11/30/2026 22:53:39 UTC", "30.11.2026 22:53:39", "Mon Nov 30 22:53:39 2026 UTC",
		"2026-13-01 00:00:00+00", "2026-00-01 00:00:00+00", "2026-02-30 00:00:00+00", "2025-02-29 00:00:00+00",
		"2026-01-00 00:00:00+00", "2026-01-01 24:00:00+00", "2026-01-01 00:60:00+00", "2026-01-01 00:00:60+00",
		"0000-01-01 00:00:00+00", "026-01-01 00:00:00+00", "2026-01-01 00:00:00.+00", "2026-01-01 00:00:00.1234567+00",
		"2026-01-01 00:00:00+0", "2026-01-01 00:00:00+00:", "2026-01-01 00:00:00+00 AD", "2026-01-01 00:00:00+00 BC BC",
		"2026-01-01 00:00:00 +00", "2026-01-01 00:00:00Z", " 2026-01-01 00:00:00+00", "1234567-01-01 00:00:00+00",
	} {
		if got, ok := parseTimestamp([]byte(text)); ok {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

// format writes t as PostgreSQL does with TimeZone UTC.
func format(t time.Time) string {
	year, era := t.Year(), ""
	if year <= 0 {
		year, era = 1-year, " BC"
	}
	return fmt.Sprintf("%04d", year) + t.Format("-01-02 15:04:05.999999+00") + era
}

// FuzzTimestamp checks that every instant of PostgreSQL's range is read as it was written.
func FuzzTimestamp(f *testing.F) {
	for _, us := range []int64{0, 1, -1, 849308019123456, -63082281600000000, -210866803200000000, 9223371331199999999} {
		f.Add(us)
	}
	const first, last = -210866803200000000, 9223371331199999999 // 4713 BC to 294276 AD
	f.Fuzz(func(t *testing.T, us int64) {
		if us < first || us > last {
			return
		}
		want := time.Unix(946_684_800+us/1e6, us%1e6*1e3).UTC()
		text := format(want)
		if got, ok := parseTimestamp([]byte(text)); !ok || !got.Equal(want) {
			t.Errorf("%q: got %v, %t, want %v", text, got, ok, want)
		}
	})
}

// FuzzTimestampText checks that what is accepted is a plain rendering of an instant, and that no text makes it panic.
func FuzzTimestampText(f *testing.F) {
	for _, text := range []string{"2026-11-30 22:53:39.123456+00", "0044-03-15 12:00:00+00 BC", "12026-01-01 00:00:00-05:30", "infinity", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := parseTimestamp(text)
		if !ok {
			return
		}
		if year := got.Year(); year < -999_998 || year > 999_999 {
			return // an offset moved it out of the six digits
		}
		if again, ok := parseTimestamp([]byte(format(got))); !ok || !again.Equal(got) {
			t.Errorf("%q was read as %v, that as %v", text, got, again)
		}
	})
}
