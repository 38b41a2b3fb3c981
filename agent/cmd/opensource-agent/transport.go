package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"time"

	"opensource.internal/agent/internal/config"
)

// bundleFile holds all certificate authorities of a Debian host in one file
// (update-ca-certificates(8)).
const bundleFile = "/etc/ssl/certs/ca-certificates.crt"

// transport makes connections for one pass, with the authority of a private
// certificate if one is configured.
func transport(c config.Config) http.RoundTripper {
	if c.ManagerRoots != nil || c.ManagerURL == nil || c.ManagerURL.Scheme != "https" {
		return transportTrusting(c.ManagerRoots)
	}
	bundle := bundleFile
	if file := os.Getenv("SSL_CERT_FILE"); file != "" { // as crypto/x509 has it
		bundle = file
	}
	text, err := os.ReadFile(bundle)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(text) {
		return transportTrusting(nil)
	}
	return &fewRootsFirst{few: transportTrusting(roots), all: transportTrusting(nil)}
}

// transportTrusting makes connections to servers that roots vouch for; nil
// means those of the host. A pass speaks to one server a few times, so
// HTTP/1.1 with one kept connection is all it needs.
func transportTrusting(roots *x509.CertPool) http.RoundTripper {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    5 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// fewRootsFirst trusts whom the host trusts, but reads all it has to say about
// that only if the bundle is not enough. (crypto/x509 reads each authority
// twice on Debian, in the bundle and in a file of its own. That would be a
// third of the processor time of a pass.)
type fewRootsFirst struct{ few, all http.RoundTripper }

// RoundTrip implements http.RoundTripper. A server that is refused has got
// nothing of the request.
func (t *fewRootsFirst) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.few.RoundTrip(r)
	var refused *tls.CertificateVerificationError
	if !errors.As(err, &refused) {
		return response, err
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.all.RoundTrip(again)
}
