package dashboard

import (
	"fmt"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/prose"
)

// describeHost puts into words what an agent told about itself and its host.
func describeHost(report checkin.Request, now time.Time) (facts []fact) {
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	if h := report.Host; h != nil {
		add("System", h.OS)
		add("nginx", describeNGINX(h.NGINX))
		add("dnsmasq", describeDNSMasq(h.DNSMasq))
		add("IPv6", yesOrNo(h.IPv6, "yes", "off"))
		add("Kind", yesOrNo(h.UserNamespace, "unprivileged container", "privileged"))
		add("Free on disk", size(h.DiskFreeBytes))
	}
	if a := report.Agent; a != nil {
		add("Machine", a.MachineID)
		add("Own templates", strings.Join(a.Templates, ", "))
		if p := a.Pass; p != nil {
			took := fmt.Sprintf("%d ms", p.DurationMS)
			if p.DurationMS < 0 { // a clock was set meanwhile
				took = "for a time that is not known"
			}
			add("Last pass", fmt.Sprintf("%s, %s, %s", toldTime(p.StartedAt, now), took, prose.Counted(p.Rounds, "round")))
		}
	}
	return facts
}

func describeNGINX(n *checkin.NGINXInfo) string {
	if n == nil {
		return "not installed"
	}
	return n.Version + yesOrNo(n.Stream, "", ", without stream module") + yesOrNo(n.HTTP3, ", HTTP/3", "")
}

func describeDNSMasq(d *checkin.DNSMasqInfo) string {
	if d == nil {
		return "not installed"
	}
	return d.Version
}

func yesOrNo(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// size is a number of bytes as people say it.
func size(bytes int64) string {
	const unit = 1 << 10
	value, names := float64(max(0, bytes)), []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	for value >= unit-0.05 && len(names) > 1 { // which would be rounded to 1024.0
		value, names = value/unit, names[1:]
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + names[0]
}
