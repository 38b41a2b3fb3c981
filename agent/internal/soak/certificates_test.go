package soak

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"syscall"
	"time"

	"opensource.internal/agent/checkin"
)

const snakeoil = "/etc/ssl/certs/ssl-cert-snakeoil.pem"

func certificateFiles(domain string) (cert, key string) {
	return "/etc/ssl/certs/" + domain + ".crt", "/etc/ssl/private/" + domain + ".key"
}

// pairs are the ways in which the pair of a domain can be, with the state that
// the agent is to see in it.
var pairs = map[checkin.CertificateState]func(domain string) error{
	checkin.CertificateOK: func(domain string) error {
		cert, key, err := newPair(domain)
		return errors.Join(err, writePair(domain, cert, key))
	},
	checkin.CertificateMissing: func(domain string) error {
		cert, key := certificateFiles(domain)
		return errors.Join(os.RemoveAll(cert), os.RemoveAll(key))
	},
	checkin.CertificateUnreadable: func(domain string) error {
		cert, key, err := newPair(domain)
		return errors.Join(err, writePair(domain, cert[:len(cert)/2], key))
	},
	checkin.CertificateMismatch: func(domain string) error {
		cert, _, err := newPair(domain)
		_, key, errOther := newPair(domain)
		return errors.Join(err, errOther, writePair(domain, cert, key))
	},
}

func newPair(domain string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: domain}, DNSNames: []string{domain, "*." + domain},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), err
}

func writePair(domain string, cert, key []byte) error {
	certFile, keyFile := certificateFiles(domain)
	return errors.Join(os.WriteFile(certFile, cert, 0o644), os.WriteFile(keyFile, key, 0o600))
}

// checkCertificates asserts that every pair is reported as it is, and served or
// replaced by Debian's where nginx runs what it should.
func (s *session) checkCertificates(told checkin.Request, inForce bool) {
	for _, domain := range domains {
		want := s.pairs[domain]
		got := told.Certificates[domain]
		if got.State != want || got.Fallback != (want != checkin.CertificateOK) {
			s.wrong("the certificate of %s is %s, and reported to be %s, fallback %t", domain, want, got.State, got.Fallback)
		}
		if inForce && s.machine.nginx().alive() {
			s.checkServedCertificate(domain, want)
		}
	}
}

func (s *session) checkServedCertificate(domain string, state checkin.CertificateState) {
	file, _ := certificateFiles(domain)
	if state != checkin.CertificateOK {
		file = snakeoil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		s.wrong("certificate of %s: %v", domain, err)
		return
	}
	want, _ := pem.Decode(content)
	served, err := servedCertificate("any." + domain)
	if err != nil || !bytes.Equal(want.Bytes, served) {
		s.wrong("another certificate is served for %s than that of %s (%v)", domain, file, err)
	}
}

// servedCertificate returns the certificate that nginx shows for a name.
func servedCertificate(name string) ([]byte, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 2 * time.Second}, "tcp", "127.0.0.1:443", &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Raw, nil
}

// changeCertificate gives a domain another pair.
func (s *session) changeCertificate() {
	domain := draw(s, "domain", domains...)
	state := draw(s, "pair", checkin.CertificateOK, checkin.CertificateOK, checkin.CertificateMissing, checkin.CertificateUnreadable, checkin.CertificateMismatch)
	if err := pairs[state](domain); errors.Is(err, syscall.ENOSPC) {
		state = checkin.CertificateMissing
		must(s.t, pairs[state](domain))
	} else {
		must(s.t, err)
	}
	s.pairs[domain] = state
	s.say("the pair of %s is %s", domain, state)
	if s.coin("with a change") {
		s.change()
	}
	s.somePass()
}
