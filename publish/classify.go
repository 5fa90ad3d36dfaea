package publish

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Class is what a failure means for the bridge.
type Class uint8

// The classes.
const (
	Transient  Class = iota // try again, for ever
	Poison                  // this row can never be stored
	Fatal                   // stop and say why
	NotCovered              // the stream no longer takes the subject: drift
)

// The reasons that Classify gives: few and fixed, fit to be a metric's label.
const (
	ReasonNoResponders       = "no_responders"
	ReasonTimeout            = "timeout"
	ReasonDisconnected       = "disconnected"
	ReasonStreamFull         = "stream_full"
	ReasonDuplicateInProcess = "duplicate_in_process"
	ReasonTooManyRequests    = "too_many_requests"
	ReasonUnavailable        = "unavailable"
	ReasonStale              = "stale" // an unknown outcome grew too old for the duplicate window
	ReasonTooLarge           = "too_large"
	ReasonNotCovered         = "not_covered"
	ReasonRefused            = "refused"
	ReasonPermission         = "permission"
	ReasonLost               = "lost"
	ReasonUnexpected         = "unexpected"
)

// Codes of the JetStream API.
const (
	codeAccountResources            = 10002
	codeMessageTooLarge             = 10054
	codeNotEnabledForAccount        = 10039
	codeStreamNotFound              = 10059
	codeStoreFailed                 = 10077
	codeDuplicateInProcess          = 10158
	codeTooManyRequests             = 10167
	codeWrongLastSequence           = 10071
	codeWrongLastSequenceReplicated = 10164
	codeNoMessage                   = 10037
)

var errNotAck = errors.New("read acknowledgement")

// Classify says what an error of this package, or of the NATS client, means.
func Classify(err error) (c Class, reason string) {
	var (
		refused    *AckError
		api        *jetstream.APIError
		limit      *LimitError
		notCovered *NotCoveredError
		stream     *StreamError
	)
	switch {
	case isVerdict(err):
		return Fatal, ReasonLost
	case errors.Is(err, errIncomplete):
		return Transient, ReasonUnavailable
	case errors.As(err, &refused):
		return classifyCode(refused.Code, refused.ErrCode)
	case errors.As(err, &api):
		return classifyCode(api.Code, int(api.ErrorCode))
	case errors.As(err, &limit):
		return Poison, ReasonTooLarge
	case errors.As(err, &notCovered):
		return NotCovered, ReasonNotCovered
	case errors.As(err, &stream) && stream.Err == nil:
		return Fatal, ReasonRefused
	}
	return classifyClient(err)
}

// isVerdict reports an error that says what happened to stored messages: trying again would not change it.
func isVerdict(err error) bool {
	var (
		lost    *LostError
		point   *LostCheckpointError
		stolen  *StolenError
		foreign *ForeignAckError
		dup     *DuplicateError
	)
	return errors.As(err, &lost) || errors.As(err, &point) || errors.As(err, &stolen) || errors.As(err, &foreign) || errors.As(err, &dup)
}

func classifyCode(code, errCode int) (Class, string) {
	switch errCode {
	case codeStoreFailed, codeAccountResources:
		return Transient, ReasonStreamFull
	case codeDuplicateInProcess:
		return Transient, ReasonDuplicateInProcess
	case codeTooManyRequests:
		return Transient, ReasonTooManyRequests
	case codeMessageTooLarge:
		return Poison, ReasonTooLarge
	case codeNotEnabledForAccount: // a 503 that no waiting mends
		return Fatal, ReasonRefused
	}
	if code >= 500 || code == 408 || code == 429 {
		return Transient, ReasonUnavailable
	}
	return Fatal, ReasonRefused
}

func classifyClient(err error) (Class, string) {
	var (
		network net.Error
		file    *fs.PathError
		peer    *net.OpError
	)
	switch {
	case errors.As(err, &peer) && peer.Op == "remote error": // a TLS alert: the server does not take our certificate
		return Fatal, ReasonPermission
	case errors.As(err, &file): // its cause would pass for a network's
		return Fatal, ReasonRefused
	case isAny(err, nats.ErrMaxPayload, nats.ErrBadSubject, nats.ErrBadHeaderMsg):
		return Poison, ReasonTooLarge
	case isAny(err, nats.ErrPermissionViolation, nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked,
		nats.ErrAccountAuthExpired, nats.ErrHeadersNotSupported):
		return Fatal, ReasonPermission
	case isAny(err, nats.ErrNoResponders, jetstream.ErrNoStreamResponse):
		return Transient, ReasonNoResponders
	case isAny(err, nats.ErrTimeout, context.DeadlineExceeded):
		return Transient, ReasonTimeout
	case isAny(err, nats.ErrConnectionClosed, nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrReconnectBufExceeded,
		nats.ErrNoServers, nats.ErrStaleConnection, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed):
		return Transient, ReasonDisconnected
	case errors.As(err, &network):
		return Transient, ReasonDisconnected
	}
	return Fatal, ReasonUnexpected
}

func isAny(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
