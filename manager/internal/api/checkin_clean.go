package api

import "opensource.internal/agent/checkin"

// maxDomain is the longest domain name (RFC 1035 section 2.3.4).
const maxDomain = 253

// cleanReport makes all the words of a report fit to be shown, on a terminal
// too: whatever an agent says may quote what others have written. Host name,
// address and service names are checked and need no cleaning.
func cleanReport(report *checkin.Request) {
	for name, service := range report.Services {
		cleanService(&service)
		report.Services[name] = service
	}
	if agent := report.Agent; agent != nil {
		clean(&agent.Version, maxShortText)
		clean(&agent.MachineID, maxShortText)
		for i := range agent.Templates {
			clean(&agent.Templates[i], maxShortText)
		}
	}
	cleanHost(report.Host)
	if report.Running != nil {
		clean(&report.Running.ETag, maxShortText)
	}
	cleanNamed(report.Certificates, func(c *checkin.Certificate) { clean(&c.State, maxShortText) })
	if guard := report.Guard; guard != nil {
		clean(&guard.Kind, maxShortText)
		clean(&guard.ETag, maxShortText)
	}
	cleanNamed(report.Probes, func(p *checkin.Probe) {
		clean(&p.Hop, maxShortText)
		clean(&p.Message, checkin.MaxProbeMessage)
	})
}

func cleanService(report *checkin.ServiceReport) {
	clean(&report.State, maxShortText)
	clean(&report.Outcome, maxShortText)
	clean(&report.ReceivedETag, maxShortText)
	clean(&report.RunningETag, maxShortText)
	clean(&report.Message, checkin.MaxMessage)
	for i := range report.Quarantined {
		clean(&report.Quarantined[i].Kind, maxShortText)
		clean(&report.Quarantined[i].Name, maxShortText)
		clean(&report.Quarantined[i].Reason, checkin.MaxMessage)
	}
	for i := range report.Drift {
		clean(&report.Drift[i].Path, checkin.MaxDiff)
		clean(&report.Drift[i].Diff, checkin.MaxDiff)
	}
	if report.Hold != nil {
		clean(&report.Hold.Reason, checkin.MaxMessage)
		clean(&report.Hold.By, maxShortText)
	}
}

func cleanHost(host *checkin.HostInfo) {
	if host == nil {
		return
	}
	clean(&host.OS, maxShortText)
	if host.NGINX != nil {
		clean(&host.NGINX.Version, maxShortText)
	}
	if host.DNSMasq != nil {
		clean(&host.DNSMasq.Version, maxShortText)
	}
}

// cleanNamed cleans what goes by the names of domains, and these names.
func cleanNamed[Value any](byName map[string]Value, cleanValue func(*Value)) {
	for domain, value := range byName {
		name := domain
		clean(&name, maxDomain)
		cleanValue(&value)
		if name != domain {
			delete(byName, domain)
		}
		byName[name] = value
	}
}

func clean[Text ~string](text *Text, limit int) {
	if !plain(string(*text), limit) {
		*text = Text(checkin.CleanMessage(string(*text), limit))
	}
}

// plain reports whether there is nothing to clean: nearly always, and check-ins
// are many.
func plain(text string, limit int) bool {
	if len(text) > limit {
		return false
	}
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c > '~' {
			return false
		}
	}
	return text == "" || text[0] > ' ' && text[len(text)-1] > ' '
}
