package slot

import (
	"encoding/binary"
	"time"

	"github.com/tidegate-cdc/tidegate/decoder"
)

// statusLen is the length of a standby status update: 'r', three LSNs, a clock, a flag.
const statusLen = 1 + 3*8 + 8 + 1

// postgresEpoch is 2000-01-01 00:00:00 UTC in microseconds of the Unix epoch.
const postgresEpoch = 946684800 * 1_000_000

// appendStatus appends a CopyData message with a standby status update, as in "Streaming Replication Protocol". With
// reply the server is asked to answer at once.
func appendStatus(dst []byte, write, flush, apply decoder.LSN, clock time.Time, reply bool) []byte {
	dst = append(dst, 'd')
	dst = binary.BigEndian.AppendUint32(dst, 4+statusLen)
	dst = append(dst, 'r')
	for _, lsn := range [...]decoder.LSN{write, flush, apply} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(lsn))
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(clock.UnixMicro()-postgresEpoch))
	if reply {
		return append(dst, 1)
	}
	return append(dst, 0)
}
