// Package host finds out what the agent's host can do: the installed nginx and
// dnsmasq, IPv6, name servers, the certificate of every external domain, and
// what the manager's page shows about the machine. It only reads. What costs
// time (running a tool, parsing a certificate) is remembered in a Cache by the
// identity of the file, so that a pass in which nothing changed costs a few
// stat calls.
package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// Inputs says where to look. Empty fields mean the places of Debian.
type Inputs struct {
	// Root is the agent's --root: a file below it is read instead of the
	// host's own if it exists there (see Path).
	Root string
	// StateDir is the folder whose free disk space is told.
	StateDir string
	// Domains are the external domains of the snapshot, as they were sent.
	Domains []string
	// CertDir and KeyDir hold DOMAIN.crt and DOMAIN.key.
	CertDir, KeyDir string
	// ModulesDir is the folder whose *.conf files load nginx's modules. Root
	// does not move it: nginx.conf always includes the host's.
	ModulesDir string
	// NGINX and DNSMasq are the programs.
	NGINX, DNSMasq string
	// Now decides which certificates have expired; time.Now if zero.
	Now time.Time
	// Cache is what the previous Probe returned, or empty.
	Cache Cache
}

// Facts is what Probe found.
type Facts struct {
	// Host is told to the manager.
	Host checkin.HostInfo
	// Certificates is told to the manager: by domain, how its pair is.
	Certificates map[string]checkin.Certificate
	// CertificateNotes says in words what is wrong with a domain's pair.
	CertificateNotes map[string]string
	// Usable holds the pairs that nginx can load, by domain.
	Usable map[string]render.CertificateFact

	NGINX     render.NGINXFacts
	Resolvers []netip.Addr

	Hostname  string
	IPv4      checkin.Text // the host's primary address, or empty
	MachineID string       // hashed, or empty

	// Cache is for the next Probe.
	Cache Cache
	// Warnings are the facts that could not be found out, and why.
	Warnings []error

	modules []moduleFile
}

// Cache holds what was learnt of files, by program and by domain.
type Cache struct {
	Tools        map[string]Tool `json:"tools,omitempty"`
	Certificates map[string]Pair `json:"certificates,omitempty"`
}

// Probe finds out everything. It never fails as a whole: what cannot be found
// out has its zero value and a warning. It runs no program whose file is the
// one that in.Cache knows, and at most 5 s otherwise.
func Probe(ctx context.Context, in Inputs) Facts {
	in = in.withDefaults()
	f := Facts{Cache: Cache{Tools: map[string]Tool{}, Certificates: map[string]Pair{}}}
	f.probeTools(ctx, in)
	f.probeMachine(in)
	f.probeNetwork(in)
	f.probeCertificates(in)
	return f
}

func (in Inputs) withDefaults() Inputs {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&in.CertDir, Path(in.Root, "/etc/ssl/certs"))
	fill(&in.KeyDir, Path(in.Root, "/etc/ssl/private"))
	fill(&in.ModulesDir, "/etc/nginx/modules-enabled")
	fill(&in.NGINX, findProgram("nginx"))
	fill(&in.DNSMasq, findProgram("dnsmasq"))
	fill(&in.StateDir, "/")
	if in.Now.IsZero() {
		in.Now = time.Now()
	}
	return in
}

func (f *Facts) warn(act string, err error) {
	if err != nil {
		f.Warnings = append(f.Warnings, fmt.Errorf("%s: %w", act, err))
	}
}

// Render returns the part of render.Facts that the host decides.
func (f Facts) Render() render.Facts {
	return render.Facts{NGINX: f.NGINX, IPv6: f.Host.IPv6, Certificates: f.Usable, Resolvers: f.Resolvers}
}

// Signature identifies everything found that could change a rendered file, or
// what its validator says: it is part of the fingerprint of a pass. Free space
// and dates are not in it.
func (f Facts) Signature() string {
	tools := map[string]FileID{}
	for name, tool := range f.Cache.Tools {
		tools[name] = tool.File
	}
	content, err := json.Marshal([]any{f.Render(), tools, f.modules, f.Host.DNSMasq})
	if err != nil {
		return "" // no type in there can fail to be encoded
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Path returns where to read a file or folder of the host: below root if it
// exists there, else the path itself.
func Path(root, path string) string {
	if root == "" {
		return path
	}
	relocated := filepath.Join(root, path)
	if _, err := os.Stat(relocated); err != nil {
		return path
	}
	return relocated
}
