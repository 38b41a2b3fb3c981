package preflight

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"time"

	"opensource.internal/agent/checkin"
)

// certificates tells of the pair of every external domain, and of the one that
// stands in for a missing one.
func certificates(_ context.Context, o *Options) []Finding {
	found := list(o.snakeoil())
	good, first := 0, time.Time{}
	for _, domain := range slices.Sorted(maps.Keys(o.Host.Certificates)) {
		pair := o.Host.Certificates[domain]
		if pair.State != checkin.CertificateOK {
			found = append(found, o.certificate(domain, pair))
			continue
		}
		good++
		if pair.NotAfter != nil && (first.IsZero() || pair.NotAfter.Before(first)) {
			first = *pair.NotAfter
		}
	}
	if o.Unread { // and so are the domains
		found = append(found, o.notKnown())
	}
	if good > 0 {
		found = append(found, ok("%d in use, the first one ends on %s", good, first.Format(time.DateOnly)))
	}
	return found
}

func (o *Options) certificate(domain string, pair checkin.Certificate) Finding {
	paths := o.Facts.Paths
	put := fmt.Sprintf("put the pair into %s/%s.crt and %s/%s.key", paths.CertDir, domain, paths.KeyDir, domain)
	words := fmt.Sprintf("%s: %s: %s", domain, pair.State, o.Host.CertificateNotes[domain])
	switch pair.State {
	case checkin.CertificateMissing:
		return warn(put, "%s; browsers warn of the one that stands in for it", words)
	case checkin.CertificateExpiring:
		return warn("renew it", "%s", words)
	case checkin.CertificateExpired:
		return fail("renew it, or set this host's clock right (date)", "%s", words)
	}
	return fail(put, "%s", words)
}

// snakeoil looks at the pair of the servers that have none of their own, without
// which nginx loads nothing at all.
func (o *Options) snakeoil() Finding {
	paths := o.Facts.Paths
	if _, err := tls.LoadX509KeyPair(paths.SnakeoilCert, paths.SnakeoilKey); err != nil {
		if o.UserID != 0 {
			return warn("run as root", "the self-signed pair cannot be read: %v", err)
		}
		return fail("make-ssl-cert generate-default-snakeoil --force-overwrite (package ssl-cert)", "the self-signed pair: %v", err)
	}
	return ok("the self-signed pair %s is there", paths.SnakeoilCert)
}
