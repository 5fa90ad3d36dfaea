package testkit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certs is a certificate authority of one test with a server's certificate for localhost and 127.0.0.1 and a client's,
// in PEM and as files.
type Certs struct {
	CA, ServerCert, ServerKey, ClientCert, ClientKey []byte

	CAFile, ServerCertFile, ServerKeyFile, ClientCertFile, ClientKeyFile string
}

// NewCerts makes certificates whose client is called commonName, valid for the time of a test.
func NewCerts(t testing.TB, commonName string) *Certs {
	t.Helper()
	a := newAuthority(t)
	c := &Certs{CA: encode("CERTIFICATE", a.cert.Raw)}
	c.ServerCert, c.ServerKey = a.issue(t, "localhost", x509.ExtKeyUsageServerAuth)
	c.ClientCert, c.ClientKey = a.issue(t, commonName, x509.ExtKeyUsageClientAuth)
	dir := t.TempDir()
	for _, file := range []struct {
		path *string
		name string
		text []byte
	}{
		{&c.CAFile, "ca.crt", c.CA},
		{&c.ServerCertFile, "server.crt", c.ServerCert},
		{&c.ServerKeyFile, "server.key", c.ServerKey},
		{&c.ClientCertFile, "client.crt", c.ClientCert},
		{&c.ClientKeyFile, "client.key", c.ClientKey},
	} {
		*file.path = filepath.Join(dir, file.name)
		if err := os.WriteFile(*file.path, file.text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key := newKey(t)
	template := certificate("tidegate test authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// issue makes a certificate with its key.
func (a *authority) issue(t testing.TB, name string, usage x509.ExtKeyUsage) (cert, key []byte) {
	t.Helper()
	private := newKey(t)
	template := certificate(name)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{usage}
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", pkcs8)
}

func certificate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
	}
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
