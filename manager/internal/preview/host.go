// Package preview tells what a snapshot does on a site's host, before any agent
// has it: the files of nginx and dnsmasq, what of them differs from another
// snapshot's, and whom that concerns. It is pure, and renders with the package
// that agents render with.
package preview

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
	"opensource.internal/manager/internal/prose"
)

// Host is what a site's host can do, as far as its agent has told.
type Host struct {
	// Agent is the host name of the agent that told it, "" if none has.
	Agent   string
	Version string // of the agent
	// Own names the templates that an administrator has overridden there.
	Own          []string
	NGINX        *checkin.NGINXInfo // nil if it is not installed
	DNSMasq      *checkin.DNSMasqInfo
	IPv6         bool
	Certificates map[string]checkin.Certificate
	// Refused are records that were left out there. Those that were kept as
	// before are rendered as Before has them, if it is known.
	Refused []checkin.QuarantinedItem
	Before  *checkin.Snapshot
	// Others is how many more agents the site has.
	Others int
}

// assumed is Debian 13 with everything from its archive.
func assumed() Host {
	return Host{
		NGINX: &checkin.NGINXInfo{Version: "1.26.3", HTTP3: true, Stream: true}, DNSMasq: &checkin.DNSMasqInfo{Version: "2.91"}, IPv6: true,
	}
}

// HostOf returns the host that a check-in tells of; of an agent that tells
// nothing, and of none at all (nil), the one that is assumed.
func HostOf(report *checkin.Request) Host {
	if report == nil {
		return assumed()
	}
	host := assumed()
	host.Agent, host.Certificates = report.Hostname, report.Certificates
	if report.Agent != nil {
		host.Version, host.Own = report.Agent.Version, report.Agent.Templates
	}
	if report.Host != nil {
		host.NGINX, host.DNSMasq, host.IPv6 = report.Host.NGINX, report.Host.DNSMasq, report.Host.IPv6
	}
	return host
}

// resolver stands for the host's name servers, of which no agent tells. It is an
// address of documentation.
var resolver = netip.MustParseAddr("192.0.2.53")

func (h Host) facts() render.Facts {
	facts := render.Facts{
		IPv6: h.IPv6, Certificates: map[string]render.CertificateFact{}, Resolvers: []netip.Addr{resolver}, Paths: render.DefaultPaths(),
		Refused: map[render.Record]render.Refusal{}, Before: h.Before,
	}
	for _, item := range h.Refused {
		facts.Refused[render.Record{Kind: item.Kind, ID: item.ID, Name: item.Name}] = render.Refusal{Reason: item.Reason, Previous: !item.KeptPrevious}
	}
	if h.NGINX != nil {
		facts.NGINX = render.NGINXFacts{Version: versionOf(h.NGINX.Version), HTTP3: h.NGINX.HTTP3, Stream: h.NGINX.Stream}
	}
	for domain, certificate := range h.Certificates {
		if !certificate.Fallback {
			facts.Certificates[domain] = render.CertificateFact{}
		}
	}
	return facts
}

// versionOf reads a version such as 1.26.3; it is zero, and nothing is rendered
// for it, if it is none.
func versionOf(text string) render.Version {
	var version render.Version
	for i, part := range strings.SplitN(text, ".", len(version)) {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return render.Version{}
		}
		version[i] = n
	}
	return version
}

// Basis is what a preview is made for, in words.
type Basis struct {
	Agent   string `json:"agent" doc:"Host name of the agent whose report it is; empty if none has told" example:"agent"`
	NGINX   string `json:"nginx" doc:"Version; empty if it is not installed" example:"1.26.3"`
	DNSMasq string `json:"dnsmasq" example:"2.91"`
	// Assumptions are what is not known, and what is put in its place.
	Assumptions []string `json:"assumptions" nullable:"false"`
}

// basis says what a preview of the snapshots rests on, for a manager of the
// given version.
func (h Host) basis(manager string, snapshots ...checkin.Snapshot) Basis {
	basis := Basis{Agent: h.Agent, Assumptions: []string{}}
	if h.NGINX != nil {
		basis.NGINX = h.NGINX.Version
	}
	if h.DNSMasq != nil {
		basis.DNSMasq = h.DNSMasq.Version
	}
	assume := func(format string, args ...any) {
		basis.Assumptions = append(basis.Assumptions, fmt.Sprintf(format, args...))
	}
	if h.Agent == "" {
		assume("no agent of the site has told yet what its host has: Debian 13 is assumed, with nginx %s, HTTP/3, the stream module, dnsmasq %s and IPv6", basis.NGINX, basis.DNSMasq)
	}
	if h.Agent != "" && h.Others > 0 {
		assume("it is worked out for %s, which was heard last; the site has %s besides", h.Agent, prose.Counted(h.Others, "agent"))
	}
	if len(h.Own) > 0 {
		assume("the host has templates of its own (%s), which are not known here: those of the package are used", strings.Join(h.Own, ", "))
	}
	if h.Version != "" && h.Version != manager {
		assume("the agent has version %s: its templates may differ from those of this manager, %s", h.Version, cmp.Or(manager, "unknown"))
	}
	if domains := h.withoutCertificate(snapshots); len(domains) > 0 {
		assume("no certificate is known of %s: the self-signed one is assumed", prose.Some(domains))
	}
	if askNames(snapshots) {
		assume("the host's name servers are not known here: %s stands for them", resolver)
	}
	return basis
}

// withoutCertificate names the domains of which the agent has told nothing: new
// ones, mostly.
func (h Host) withoutCertificate(snapshots []checkin.Snapshot) []string {
	var domains []string
	seen := map[string]bool{}
	for _, s := range snapshots {
		for _, domain := range render.CertificateDomains(s, "") {
			if _, told := h.Certificates[domain]; !told && !seen[domain] {
				seen[domain] = true
				domains = append(domains, domain)
			}
		}
	}
	return domains
}

// askNames reports whether nginx would have to ask for names.
func askNames(snapshots []checkin.Snapshot) bool {
	for _, s := range snapshots {
		for _, service := range s.NGINX.HTTPServices {
			if service.AuthRequired && service.ExternalDomain.AuthServer != "" {
				return true
			}
		}
	}
	return false
}
