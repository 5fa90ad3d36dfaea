package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestFailureHasOneClass(t *testing.T) {
	ack := func(code, errCode int) error { return &AckError{Code: code, ErrCode: errCode} }
	for _, c := range []struct {
		err    error
		class  Class
		reason string
	}{
		{ack(503, 10077), Transient, ReasonStreamFull},
		{ack(400, 10002), Transient, ReasonStreamFull},
		{ack(409, 10158), Transient, ReasonDuplicateInProcess},
		{ack(429, 10167), Transient, ReasonTooManyRequests},
		{ack(503, 10008), Transient, ReasonUnavailable},
		{ack(500, 10009), Transient, ReasonUnavailable},
		{ack(400, 10054), Poison, ReasonTooLarge},
		{ack(400, 10060), Fatal, ReasonRefused},
		{ack(400, 10109), Fatal, ReasonRefused},
		{ack(404, 10059), Fatal, ReasonRefused},
		{&jetstream.APIError{Code: 503, ErrorCode: 10008}, Transient, ReasonUnavailable},
		{&jetstream.APIError{Code: 503, ErrorCode: 10039}, Fatal, ReasonRefused},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, Fatal, ReasonPermission},
		{nats.ErrNoResponders, Transient, ReasonNoResponders},
		{nats.ErrTimeout, Transient, ReasonTimeout},
		{context.DeadlineExceeded, Transient, ReasonTimeout},
		{nats.ErrReconnectBufExceeded, Transient, ReasonDisconnected},
		{nats.ErrConnectionClosed, Transient, ReasonDisconnected},
		{io.EOF, Transient, ReasonDisconnected},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, Transient, ReasonDisconnected},
		{fmt.Errorf("%w: %w", errIncomplete, &jetstream.APIError{Code: 404}), Transient, ReasonUnavailable},
		{&StreamError{Err: nats.ErrTimeout}, Transient, ReasonTimeout},
		{&StreamError{}, Fatal, ReasonRefused},
		{&ConnectError{Err: nats.ErrNoServers}, Transient, ReasonDisconnected},
		{&ConnectError{Err: nats.ErrAuthorization}, Fatal, ReasonPermission},
		{nats.ErrPermissionViolation, Fatal, ReasonPermission},
		{nats.ErrMaxPayload, Poison, ReasonTooLarge},
		{&LimitError{}, Poison, ReasonTooLarge},
		{&NotCoveredError{}, NotCovered, ReasonNotCovered},
		{&LostError{}, Fatal, ReasonLost},
		{&StolenError{}, Fatal, ReasonLost},
		{errNotAck, Fatal, ReasonUnexpected},
	} {
		if class, reason := Classify(fmt.Errorf("wrapped: %w", c.err)); class != c.class || reason != c.reason {
			t.Errorf("%T %v: class %d, %q; want %d, %q", c.err, c.err, class, reason, c.class, c.reason)
		}
	}
}
