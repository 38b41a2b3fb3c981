// Package render turns a snapshot and what the host can do into the files of
// each managed service. It is a pure function: it reads nothing from the host
// and writes nothing, so the manager can use it to preview what an agent
// would do.
package render

import (
	"io/fs"
	"net/netip"

	"opensource.internal/agent/checkin"
)

// Facts is what rendering needs to know of the host and of the agent's own
// configuration. Its JSON form is what support archives hold: with it a
// snapshot renders elsewhere as it does on its host.
type Facts struct {
	NGINX NGINXFacts `json:"nginx"`
	// IPv6 is false where the kernel cannot open an IPv6 socket.
	IPv6 bool `json:"ipv6"`
	// Certificates tells, by external domain as CertificateDomains writes it,
	// which certificate pairs are fit for use. A domain that is not in it
	// falls back to the snakeoil pair.
	Certificates map[string]CertificateFact `json:"certificates"`
	// Resolvers are the host's name servers, for names nginx resolves late.
	// Without any, auth servers must be given by address.
	Resolvers []netip.Addr `json:"resolvers"`
	// ManagerUpstream is "127.0.0.1:PORT" if MANAGER_URL is a loopback
	// address, else empty.
	ManagerUpstream string `json:"managerUpstream"`
	// ManagerHostname keeps a proxied server for the dashboard if not empty,
	// as long as there is a ManagerUpstream.
	ManagerHostname string `json:"managerHostname"`
	// DocsRoot is the folder of the static documentation site, or empty.
	DocsRoot string `json:"docsRoot"`
	Paths    Paths  `json:"paths"`

	// Refused are records that the service's own program has refused on this
	// host: they are left out, or their previous version is rendered.
	Refused map[Record]Refusal `json:"-"`
	// Before is what was in force before, as a Result tells it: where previous
	// versions of records come from. It may be nil.
	Before *checkin.Snapshot `json:"-"`
}

// Refusal is why a record was refused.
type Refusal struct {
	Reason string
	// Previous is true if its previous version was refused as well.
	Previous bool
}

// NGINXFacts is the installed nginx. A zero Version means that it is
// unknown; nothing is rendered then.
type NGINXFacts struct {
	Version Version `json:"version"`
	HTTP3   bool    `json:"http3"`  // built with --with-http_v3_module
	Stream  bool    `json:"stream"` // the stream module is built in or will be loaded
}

// Version is a dotted version number such as 1.26.3.
type Version [3]int

// CertificateFact is a usable certificate pair.
type CertificateFact struct {
	// Digest is the hexadecimal SHA-256 over both files' contents: a renewed
	// pair is another configuration.
	Digest string `json:"digest"`
}

// Paths are the places that rendered files name. Every field is absolute; an
// empty one stands for the one of DefaultPaths.
type Paths struct {
	NGINXConf     string `json:"nginxConf"`     // /etc/nginx/nginx.conf
	NGINXPid      string `json:"nginxPid"`      // /run/nginx.pid
	NGINXErrorLog string `json:"nginxErrorLog"` // /var/log/nginx/error.log
	NGINXLog      string `json:"nginxLog"`      // /var/log/nginx/access.log
	CertDir       string `json:"certDir"`       // /etc/ssl/certs
	KeyDir        string `json:"keyDir"`        // /etc/ssl/private
	SnakeoilCert  string `json:"snakeoilCert"`  // /etc/ssl/certs/ssl-cert-snakeoil.pem
	SnakeoilKey   string `json:"snakeoilKey"`   // /etc/ssl/private/ssl-cert-snakeoil.key
	ErrorPages    string `json:"errorPages"`    // /usr/share/opensource-agent/pages
	ACMERoot      string `json:"acmeRoot"`      // /var/lib/opensource-agent/acme
	AuthCache     string `json:"authCache"`     // /run/opensource-agent-nginx-auth; nginx makes it
	DNSMasqConf   string `json:"dnsmasqConf"`   // /etc/dnsmasq.conf
	DNSMasqDir    string `json:"dnsmasqDir"`    // /var/lib/dnsmasq
}

// File is one rendered file. Every line of Content that belongs to a record
// is named in Lines.
type File struct {
	Path    string
	Content []byte
	Mode    fs.FileMode // for a file that does not exist yet
	// Lines maps line numbers (from 1) to the record that produced them.
	Lines map[int]Record
}

// Record names the part of a snapshot that a rendered line came from.
type Record struct {
	Kind string // one of checkin.Kind…
	ID   int64
	Name string
}

// Result is what one managed service should look like.
type Result struct {
	// Files holds the files in commit order, the main file last. It is empty
	// if there is nothing to manage, and Skipped then says why.
	Files   []File
	Skipped string
	// LeftOut names the records whose values were refused, or that are in
	// Facts.Refused. The rest of the service is rendered without them. A record
	// keeps its previous version if that is as well protected, and takes nothing
	// that another record has.
	LeftOut []checkin.QuarantinedItem
	// InForce is the snapshot as it is rendered: without what is left out, and
	// with previous versions where they are kept. Only what the service is
	// made of differs from the snapshot that was given.
	InForce checkin.Snapshot
	// Revision identifies the rendered content including certificates:
	// hexadecimal SHA-256. A live service that shows it runs this Result.
	Revision string
}
