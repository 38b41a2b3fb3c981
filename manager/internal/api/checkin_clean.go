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
	cleanCertificates(report.Certificates)
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

func cleanCertificates(certificates map[string]checkin.Certificate) {
	for domain, certificate := range certificates {
		name := domain
		clean(&name, maxDomain)
		clean(&certificate.State, maxShortText)
		if name != domain {
			delete(certificates, domain)
		}
		certificates[name] = certificate
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
