package host

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// expiring is how long before its end a certificate is reported.
const expiring = 30 * 24 * time.Hour

// maxPEM bounds a certificate or key file, in bytes.
const maxPEM = 1 << 20

// Pair is what a certificate and its key are, as last read.
type Pair struct {
	Certificate FileID `json:"certificate"`
	Key         FileID `json:"key"`
	// State is CertificateOK for a pair that nginx can load, whatever its
	// dates, and otherwise missing, mismatch or unreadable.
	State     checkin.CertificateState `json:"state"`
	Note      string                   `json:"note,omitempty"` // what is wrong
	NotBefore time.Time                `json:"notBefore,omitzero"`
	NotAfter  time.Time                `json:"notAfter,omitzero"`
	// Digest is the hexadecimal SHA-256 over the digests of both contents.
	Digest string `json:"digest,omitempty"`
}

// probeCertificates looks at the pair of every domain. Names are parsed before
// they become paths; one that is not a domain has no certificate.
//
// The dates of a certificate decide what is reported and nothing else: a host
// with a wrong clock goes on serving the certificates it has.
func (f *Facts) probeCertificates(in Inputs) {
	f.Certificates = map[string]checkin.Certificate{}
	f.CertificateNotes = map[string]string{}
	f.Usable = map[string]render.CertificateFact{}
	for _, name := range in.Domains {
		domain, err := checkin.ParseDomain(name)
		if err != nil {
			continue // whoever renders the domain leaves it out and says so
		}
		if _, done := f.Certificates[domain]; done {
			continue
		}
		certificate, key := filepath.Join(in.CertDir, domain+".crt"), filepath.Join(in.KeyDir, domain+".key")
		pair, known := in.Cache.Certificates[domain]
		if !known || pair.State == "" || pair.Certificate != identify(certificate) || pair.Key != identify(key) {
			pair = readPair(certificate, key)
		}
		if pair.Certificate.settled(in.Now) && pair.Key.settled(in.Now) {
			f.Cache.Certificates[domain] = pair
		}
		if pair.State == checkin.CertificateOK {
			f.Usable[domain] = render.CertificateFact{Digest: pair.Digest}
		}
		report, note := pair.report(in.Now)
		f.Certificates[domain] = report
		if note != "" {
			f.CertificateNotes[domain] = note
		}
	}
}

// report adds the clock. A certificate that is not valid yet is reported as
// expired: clients refuse both alike.
func (p Pair) report(now time.Time) (checkin.Certificate, string) {
	report := checkin.Certificate{State: p.State, Fallback: p.State != checkin.CertificateOK}
	if !p.NotAfter.IsZero() {
		end := p.NotAfter.UTC()
		report.NotAfter = &end
	}
	if report.Fallback {
		return report, p.Note
	}
	switch {
	case now.Before(p.NotBefore):
		report.State = checkin.CertificateExpired
		return report, "it is valid only from " + p.NotBefore.UTC().Format(time.RFC3339) + "; it is served all the same"
	case now.After(p.NotAfter):
		report.State = checkin.CertificateExpired
		return report, "it ended on " + p.NotAfter.UTC().Format(time.RFC3339) + "; it is served all the same"
	case p.NotAfter.Sub(now) < expiring:
		report.State = checkin.CertificateExpiring
		return report, "it ends on " + p.NotAfter.UTC().Format(time.RFC3339)
	}
	return report, ""
}

// readPair reads a certificate with its chain, and its key, and judges whether
// nginx could load them: one that it cannot would fail the whole configuration.
func readPair(certificatePath, keyPath string) Pair {
	certificate, certificateID, errCertificate := readFile(certificatePath, maxPEM)
	key, keyID, errKey := readFile(keyPath, maxPEM)
	pair := Pair{Certificate: certificateID, Key: keyID, State: checkin.CertificateUnreadable}
	refuse := func(state checkin.CertificateState, err error) Pair {
		pair.State, pair.Note = state, checkin.CleanMessage(err.Error(), 512)
		return pair
	}
	for _, err := range []error{errCertificate, errKey} {
		if isMissing(err) {
			return refuse(checkin.CertificateMissing, err)
		}
	}
	if err := errors.Join(errCertificate, errKey); err != nil {
		return refuse(checkin.CertificateUnreadable, err)
	}
	leaf, err := parseChain(certificate)
	if err != nil {
		return refuse(checkin.CertificateUnreadable, fmt.Errorf("%s: %w", certificatePath, err))
	}
	pair.NotBefore, pair.NotAfter = leaf.NotBefore, leaf.NotAfter
	public, err := parseKey(key)
	if err != nil {
		return refuse(checkin.CertificateUnreadable, fmt.Errorf("%s: %w", keyPath, err))
	}
	if !public.Equal(leaf.PublicKey) {
		return refuse(checkin.CertificateMismatch, fmt.Errorf("%s is not the key of %s", keyPath, certificatePath))
	}
	pair.State, pair.Digest = checkin.CertificateOK, digest(certificate, key)
	return pair
}

func digest(certificate, key []byte) string {
	one, two := sha256.Sum256(certificate), sha256.Sum256(key)
	both := sha256.Sum256(append(one[:], two[:]...))
	return hex.EncodeToString(both[:])
}

var beginLine = pattern(`(?m)^-----BEGIN `)

// pemBlocks splits a file as strictly as OpenSSL does: a damaged block is an
// error there, while pem.Decode passes over it.
func pemBlocks(content []byte) ([]*pem.Block, error) {
	var blocks []*pem.Block
	for {
		block, rest := pem.Decode(content)
		if block == nil {
			break
		}
		blocks = append(blocks, block)
		if begun := len(beginLine().FindAll(content[:len(content)-len(rest)], 2)); begun != 1 {
			return nil, errors.New("a PEM block is damaged")
		}
		content = rest
	}
	if beginLine().Match(content) {
		return nil, errors.New("a PEM block is damaged")
	}
	return blocks, nil
}

// parseChain reads the certificate and what signed it. Every one of them must
// be acceptable to nginx.
func parseChain(content []byte) (*x509.Certificate, error) {
	blocks, err := pemBlocks(content)
	if err != nil {
		return nil, err
	}
	var leaf *x509.Certificate
	for _, block := range blocks {
		if block.Type != "CERTIFICATE" && block.Type != "X509 CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if err := checkStrength(certificate); err != nil {
			return nil, err
		}
		if leaf == nil {
			leaf = certificate
		}
	}
	if leaf == nil {
		return nil, errors.New("there is no PEM certificate in it")
	}
	return leaf, nil
}

// checkStrength refuses what OpenSSL refuses at security level 2, Debian's
// default (SSL_CTX_set_security_level(3)): keys below 112 bits of security and
// signatures by MD5 or SHA-1, except on a self-signed certificate.
func checkStrength(c *x509.Certificate) error {
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < 2048 {
			return fmt.Errorf("its RSA key of %d bits is too small: 2048 are needed", key.N.BitLen())
		}
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return fmt.Errorf("its key type %s is not supported: use RSA, ECDSA or Ed25519", c.PublicKeyAlgorithm)
	}
	switch c.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.DSAWithSHA1:
		if string(c.RawIssuer) != string(c.RawSubject) {
			return fmt.Errorf("its signature by %s is too weak", c.SignatureAlgorithm)
		}
	}
	return nil
}

// publicKey is what every public key of the standard library can do.
type publicKey interface{ Equal(crypto.PublicKey) bool }

// parseKey returns the public half of the first private key in a file.
func parseKey(content []byte) (publicKey, error) {
	blocks, err := pemBlocks(content)
	if err != nil {
		return nil, err
	}
	for _, block := range blocks {
		var key any
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return nil, errors.New("the key is encrypted: nginx cannot ask for its passphrase")
		case block.Type == "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case block.Type == "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case block.Type == "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		default:
			continue // such as EC PARAMETERS
		}
		if err != nil {
			return nil, err
		}
		if signer, ok := key.(crypto.Signer); ok {
			if public, ok := signer.Public().(publicKey); ok {
				return public, nil
			}
		}
		return nil, fmt.Errorf("its key type %T is not supported: use RSA, ECDSA or Ed25519", key)
	}
	return nil, errors.New("there is no PEM private key in it")
}
