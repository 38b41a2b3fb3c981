package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"opensource.internal/agent/checkin"
)

// RevisionPath is where the default server on port 80 answers loopback peers
// with Result.Revision, and nothing else, as text.
const RevisionPath = "/.well-known/opensource-agent/revision"

// blankRevision stands in the place of the revision while it is computed.
var blankRevision = strings.Repeat("0", sha256.Size*2)

// NGINX renders nginx.conf. Records that cannot be served are left out, each
// with its reason; an error means that there is no configuration at all.
func NGINX(s checkin.Snapshot, f Facts, t *Templates) (Result, error) {
	if f.NGINX.Version == (Version{}) {
		// What an unknown nginx cannot do would be rendered away.
		return Result{}, errors.New("the version of nginx could not be found out: is the Debian package nginx installed?")
	}
	v, left, err := newNGINXView(s, f)
	if err != nil {
		return Result{}, err
	}
	out, err := t.execute(&t.nginx, "nginx/nginx.conf.tmpl", v)
	if err != nil {
		return Result{}, err
	}
	if !bytes.Contains(out.content, []byte(blankRevision)) {
		return Result{}, errors.New("render template nginx/nginx.conf.tmpl: it does not write .Revision, without which nobody can tell what nginx runs")
	}
	revision := nginxRevision(out.content, v.certificates, f.Certificates)
	return Result{
		Files: []File{{
			Path:    v.Paths.NGINXConf,
			Content: bytes.ReplaceAll(out.content, []byte(blankRevision), []byte(revision)),
			Mode:    0o644,
			Lines:   out.lines,
		}},
		LeftOut:  left,
		InForce:  v.inForce(s),
		Revision: revision,
	}, nil
}

// nginxRevision covers the file and the contents of the certificates in it: a
// renewed certificate has to be loaded too.
func nginxRevision(content []byte, used map[string]bool, facts map[string]CertificateFact) string {
	sum := sha256.New()
	sum.Write(content)
	domains := make([]string, 0, len(used))
	for domain := range used {
		domains = append(domains, domain)
	}
	slices.Sort(domains)
	for _, domain := range domains {
		fmt.Fprintf(sum, "\n%s %s", domain, facts[domain].Digest)
	}
	return hexSum(sum)
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
