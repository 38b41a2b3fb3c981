package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/agent/internal/config"
)

// TestTrust checks that a manager is trusted as crypto/x509 has it, whether its
// authority is in the host's bundle or only in a file of its own.
func TestTrust(t *testing.T) {
	var bodies []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
	}))
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	none := x509.NewCertPool()

	for name, c := range map[string]struct {
		few, all *x509.CertPool
		trusted  bool
	}{
		"in the bundle":        {pool, none, true},
		"in a file of its own": {none, pool, true},
		"nowhere":              {none, none, false},
	} {
		t.Run(name, func(t *testing.T) {
			bodies = nil
			client := http.Client{Transport: &fewRootsFirst{few: transportTrusting(c.few), all: transportTrusting(c.all)}}
			answer, err := client.Post(server.URL, "text/plain", strings.NewReader("told"))
			if err == nil {
				answer.Body.Close()
			}
			var refused *tls.CertificateVerificationError
			if c.trusted != (err == nil) || err != nil && !errors.As(err, &refused) {
				t.Errorf("got %v", err)
			}
			want := ""
			if c.trusted {
				want = "told"
			}
			if got := strings.Join(bodies, ","); got != want {
				t.Errorf("the manager got %q, want %q", got, want)
			}
		})
	}
}

func TestTransportReadsTheBundle(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	bundle := filepath.Join(t.TempDir(), "bundle.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(bundle, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", bundle)
	manager, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	made := transport(config.Config{ManagerURL: manager})
	first, ok := made.(*fewRootsFirst)
	if !ok {
		t.Fatalf("got %T", made)
	}
	answer, err := (&http.Client{Transport: first.few}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()

	for name, c := range map[string]config.Config{
		"a configured authority": {ManagerURL: manager, ManagerRoots: x509.NewCertPool()},
		"no TLS":                 {ManagerURL: &url.URL{Scheme: "http", Host: "127.0.0.1"}},
	} {
		if made, ok := transport(c).(*http.Transport); !ok || made.TLSClientConfig.RootCAs != c.ManagerRoots {
			t.Errorf("%s: got %T", name, made)
		}
	}
	t.Setenv("SSL_CERT_FILE", bundle+".missing")
	if made, ok := transport(config.Config{ManagerURL: manager}).(*http.Transport); !ok || made.TLSClientConfig.RootCAs != nil {
		t.Error("without a bundle the host's own way to find authorities is not taken")
	}
}
