package probe

import (
	"crypto/x509"
	"fmt"
	"os"
)

// Bundle holds every certificate authority that a Debian host trusts, private
// ones too (update-ca-certificates(8)).
const Bundle = "/etc/ssl/certs/ca-certificates.crt"

// Authorities reads a bundle. (Those of crypto/x509 would not do: it trusts every
// file beside the bundle, and that is where nginx has its certificates from. Each
// would vouch for itself.)
func Authorities(bundle string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	text, err := os.ReadFile(bundle)
	if err != nil {
		return pool, fmt.Errorf("no certificate authority is trusted: %w (apt-get install ca-certificates)", err)
	}
	if !pool.AppendCertsFromPEM(text) {
		return pool, fmt.Errorf("no certificate authority is trusted: there is none in %s (update-ca-certificates)", bundle)
	}
	return pool, nil
}
