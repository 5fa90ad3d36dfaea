package decoder_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// transaction gives what the server sends for rows outbox rows of 316 bytes of JSON: begin, the rows, commit. The
// relation comes first, and once.
func transaction(rows int) (relation wire, messages []wire) {
	relation = wire("R").u32(relationOID).str("public").str("outbox").u8('d').u16(7).
		column(1, "id", 2950, -1).column(0, "aggregate_type", 25, -1).column(0, "aggregate_id", 25, -1).
		column(0, "event_type", 25, -1).column(0, "payload", 3802, -1).column(0, "created_at", 1184, -1).
		column(0, "published_at", 1184, -1)
	payload := `{"note": "` + strings.Repeat("x", 316-len(`{"note": ""}`)) + `"}`
	messages = append(messages, wire("B").u64(0x16B374D848).u64(846_000_000_000_000).u32(7_000))
	for i := range rows {
		messages = append(messages, wire("I").u32(relationOID).u8('N').u16(7).
			text(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)).text("order").text(fmt.Sprintf("o-%d", i)).
			text("OrderPlaced").text(payload).text("2026-11-30 22:53:39.123456+00").null())
	}
	return relation, append(messages, wire("C").u8(0).u64(0x16B374D848).u64(0x16B374D900).u64(846_000_000_000_000))
}

// One operation is one row: of transactions of one row (begin and commit are in its price) and of a hundred.
func benchmarkRows(b *testing.B, decode func(data []byte) error) {
	for _, rows := range []int{1, 100} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			relation, messages := transaction(rows)
			if err := decode(relation); err != nil {
				b.Fatal(err)
			}
			size := 0
			for _, data := range messages {
				size += len(data)
			}
			b.SetBytes(int64(size / rows))
			b.ReportAllocs()
			for done := 0; done < b.N; done += rows {
				for _, data := range messages {
					if err := decode(data); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	d := decoder.New()
	var m decoder.Message
	benchmarkRows(b, func(data []byte) error { return d.Decode(data, &m) })
}

func BenchmarkDecodePglogrepl(b *testing.B) {
	benchmarkRows(b, func(data []byte) error {
		_, err := pglogrepl.Parse(data)
		return err
	})
}
