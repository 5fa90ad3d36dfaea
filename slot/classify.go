package slot

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// classify gives an error of PostgreSQL, or of connecting to it, the type by which a caller branches. What may pass
// by itself is returned as it is, and so is what has its type already.
func classify(err error, c Config) error {
	var (
		pe    *pgconn.PgError
		typed hinted
	)
	switch {
	case err == nil || errors.As(err, &typed):
		return err
	case errors.As(err, &pe):
		return classifyServer(err, pe, c)
	case tlsTrouble(err):
		return &RefusedError{Check: "TLS", Seen: err.Error(), Fix: hintTLS(err), Err: err}
	}
	return err
}

func classifyServer(err error, pe *pgconn.PgError, c Config) error {
	switch {
	case pe.Code == "55006":
		return &ActiveError{Slot: c.Slot, PID: pidIn(pe.Message), Err: err}
	case pe.Code == "42704" && strings.Contains(pe.Message, quoteIdent(c.Slot)) && !strings.Contains(pe.Message, "publication"):
		return &MissingSlotError{Slot: c.Slot, Err: err}
	case pe.Code == "42704" && strings.Contains(pe.Message, quoteIdent(c.Publication)):
		return publicationGone(c.Publication, err)
	case pe.Code == "55000" && lostText(pe):
		return &LostError{Slot: c.Slot, Reason: pe.Message, Err: err}
	case Transient(err):
		return err
	}
	if hint := hintServer(pe); hint != "" {
		return &RefusedError{Check: "what PostgreSQL allows", Seen: pe.Message + " (SQLSTATE " + pe.Code + ")", Fix: hint, Err: err}
	}
	return err
}

// publicationGone is the error of a decoder that needs the publication and does not find it.
func publicationGone(publication string, err error) error {
	return &DriftError{
		Object: "publication " + publication,
		Seen:   "it does not exist at the slot's position in the WAL",
		Fix: "the publication was dropped, or made after the slot: create it again; if the error stays, " +
			"the slot must be dropped and made again, and the rows of the window read from the outbox table",
		Err: err,
	}
}

// lostText recognises a slot whose WAL was removed, in the words of PostgreSQL 13 to 18.
func lostText(pe *pgconn.PgError) bool {
	for _, text := range []string{
		"cannot read from logical replication slot",
		"can no longer get changes from replication slot",
		"can no longer access replication slot",
	} {
		if strings.Contains(pe.Message, text) {
			return true
		}
	}
	return strings.Contains(pe.Detail, "invalidated")
}

var lastNumber = regexp.MustCompile(`(\d+)\D*$`)

func pidIn(message string) int {
	if m := lastNumber.FindStringSubmatch(message); m != nil {
		pid, _ := strconv.Atoi(m[1])
		return pid
	}
	return 0
}

// Transient reports whether the same call may succeed later although nobody mends anything: the server is starting,
// stopping or full, the slot is held by another session, or the network failed. A cancelled context is not
// transient, a time that ran out is.
func Transient(err error) bool {
	var (
		active  *ActiveError
		typed   hinted
		pe      *pgconn.PgError
		network net.Error
		connect *pgconn.ConnectError
	)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return false
	case errors.Is(err, ErrSilent) || errors.As(err, &active):
		return true
	case errors.As(err, &typed):
		return false
	case errors.As(err, &pe):
		return transientCode(pe.Code)
	case tlsTrouble(err):
		return false
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, pgconn.ErrConnClosed):
		return true
	}
	return errors.As(err, &network) || errors.As(err, &connect)
}

// transientCode knows SQLSTATEs: connection exceptions, except the protocol violation that poolers answer with;
// operator intervention; insufficient resources, except the limits that are set by configuration.
func transientCode(code string) bool {
	switch code {
	case "08P01", "53400", "57014", "57P04":
		return false
	case "55006", "25006":
		return true
	}
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "53")
}

// tlsTrouble recognises an agreement on TLS that will not come about by waiting.
func tlsTrouble(err error) bool {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		peer      *net.OpError
	)
	if errors.As(err, &peer) && peer.Op == "remote error" { // an alert of the server's
		return true
	}
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) || errors.As(err, &verify) ||
		errors.As(err, &record) || errors.As(err, &alert) || strings.Contains(err.Error(), refusedTLS)
}

// refusedTLS is pgconn's text for a server without TLS; it has no type.
const refusedTLS = "server refused TLS connection"
