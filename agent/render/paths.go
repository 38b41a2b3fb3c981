package render

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// DefaultPaths returns the places Debian and our package use.
func DefaultPaths() Paths {
	return Paths{
		NGINXConf:     "/etc/nginx/nginx.conf",
		NGINXPid:      "/run/nginx.pid",
		NGINXErrorLog: "/var/log/nginx/error.log",
		NGINXLog:      "/var/log/nginx/access.log",
		CertDir:       "/etc/ssl/certs",
		KeyDir:        "/etc/ssl/private",
		SnakeoilCert:  "/etc/ssl/certs/ssl-cert-snakeoil.pem",
		SnakeoilKey:   "/etc/ssl/private/ssl-cert-snakeoil.key",
		ErrorPages:    "/usr/share/opensource-agent/pages",
		ACMERoot:      "/var/lib/opensource-agent/acme",
		AuthCache:     "/run/opensource-agent-nginx-auth",
		DNSMasqConf:   "/etc/dnsmasq.conf",
		DNSMasqDir:    "/var/lib/dnsmasq",
	}
}

// namedPath is a pointer to one of the paths and what it is called in errors.
type namedPath struct {
	name string
	path *string
}

func (p *Paths) all() []namedPath {
	return []namedPath{
		{"nginx.conf", &p.NGINXConf},
		{"nginx's pid file", &p.NGINXPid},
		{"nginx's error log", &p.NGINXErrorLog},
		{"nginx's access log", &p.NGINXLog},
		{"the certificate folder", &p.CertDir},
		{"the key folder", &p.KeyDir},
		{"the snakeoil certificate", &p.SnakeoilCert},
		{"the snakeoil key", &p.SnakeoilKey},
		{"the error pages", &p.ErrorPages},
		{"the ACME folder", &p.ACMERoot},
		{"the auth cache", &p.AuthCache},
		{"dnsmasq.conf", &p.DNSMasqConf},
		{"dnsmasq's folder", &p.DNSMasqDir},
	}
}

// complete returns the paths with Debian's in the place of empty ones. It
// refuses a path that would need quoting: nginx and dnsmasq quote differently,
// and a variable in a path makes nginx resolve it per request.
func (p Paths) complete() (Paths, error) {
	defaults := DefaultPaths()
	var errs []error
	for i, named := range p.all() {
		if *named.path == "" {
			*named.path = *defaults.all()[i].path
		}
		if err := checkConfPath(*named.path); err != nil {
			errs = append(errs, field(named.name, err))
		}
	}
	return p, errors.Join(errs...)
}

func checkConfPath(p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p {
		return fmt.Errorf("%q is not an absolute, clean path", p)
	}
	for _, c := range []byte(p) {
		if c <= ' ' || c == 0x7f || strings.IndexByte("\"'`\\$;{}#,*?[]", c) >= 0 {
			return fmt.Errorf("%q contains %q, which a configuration file cannot name", p, c)
		}
	}
	return nil
}
