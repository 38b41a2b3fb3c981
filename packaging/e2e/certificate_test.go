//go:build e2e

package e2e

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs the certificates of the sites' domains.
type authority struct {
	file        string // its certificate, for curl
	pool        *x509.CertPool
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the tests"},
		NotBefore: time.Now().Add(-100 * 24 * time.Hour), NotAfter: time.Now().Add(100 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{file: filepath.Join(t.TempDir(), "authority.pem"), pool: x509.NewCertPool(), certificate: certificate, key: key}
	a.pool.AddCert(certificate)
	if err := os.WriteFile(a.file, encode("CERTIFICATE", der), 0o644); err != nil {
		t.Fatal(err)
	}
	return a
}

// pair is a certificate and its key in PEM.
type pair struct{ certificate, key string }

// issue makes a pair for a domain and the names below it.
func (a *authority) issue(t testing.TB, domain string, serial int64, notBefore, notAfter time.Time) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return a.sign(t, domain, serial, notBefore, notAfter, key)
}

// issueWeak makes a pair that Go accepts and nginx does not: OpenSSL refuses
// keys of fewer than 2048 bits at Debian's security level.
func (a *authority) issueWeak(t testing.TB, domain string) pair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return a.sign(t, domain, 66, time.Now().Add(-time.Hour), time.Now().Add(60*24*time.Hour), key)
}

func (a *authority) sign(t testing.TB, domain string, serial int64, notBefore, notAfter time.Time, key crypto.Signer) pair {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: domain},
		DNSNames: []string{domain, "*." + domain}, NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{string(encode("CERTIFICATE", der)), string(encode("PRIVATE KEY", private))}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// lastMonthToNext is when most certificates of these tests are valid.
func lastMonthToNext() (notBefore, notAfter time.Time) {
	return time.Now().Add(-30 * 24 * time.Hour), time.Now().Add(60 * 24 * time.Hour)
}
