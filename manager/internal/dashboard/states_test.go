package dashboard_test

import (
	"fmt"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/servertest"
)

// everyState is a manager with one agent for each thing that can be the matter
// with a service.
func everyState(t *testing.T) (s *servertest.Server, cookie string) {
	t.Helper()
	s = servertest.Start(t, servertest.Options{})
	now := time.Now().UTC()
	const newer, older = `"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"`, `"fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"`
	good := checkin.ServiceReport{
		State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeUnchanged, ReceivedETag: newer, RunningETag: newer, AppliedAt: &now,
	}
	failed := func(outcome checkin.Outcome, message string) checkin.ServiceReport {
		report := good
		report.LastApply, report.Outcome, report.RunningETag, report.Message = checkin.ApplyFailure, outcome, older, message
		return report
	}
	held, leftOut := good, good
	held.Outcome, held.Message = checkin.OutcomeHeld, "held until then by root: upgrade of nginx"
	held.Hold = &checkin.Hold{Until: now.Add(119*time.Minute + 30*time.Second), By: "root", Reason: "upgrade of nginx"}
	leftOut.LastApply, leftOut.Outcome, leftOut.Message = checkin.ApplyFailure, checkin.OutcomeApplied, "left out: http app.example.com"
	leftOut.Quarantined = []checkin.QuarantinedItem{
		{Kind: checkin.KindHTTP, ID: 3, Name: "app.example.com", Reason: `[emerg] host not found in upstream "sso.gone.invalid" in /etc/nginx/nginx.conf:214`, KeptPrevious: true},
		{Kind: checkin.KindStream, ID: 9, Name: "tcp 2201", Reason: "the port is used twice"},
	}
	edited := good
	edited.Drift = []checkin.Drift{{Path: "/etc/nginx/nginx.conf", Diff: "--- managed\n+++ found\n@@ -12,3 +12,3 @@\n http {\n-    server_tokens off;\n+    server_tokens on;\n"}}
	stillEdited := failed(checkin.OutcomeRejected, "the fault is in /etc/nginx/conf.d/ours.conf, which is not managed by opensource-agent")
	stillEdited.Drift = edited.Drift
	agents := []struct {
		name   string
		nginx  checkin.ServiceReport
		change func(*checkin.Request)
	}{
		{"01-well", good, func(r *checkin.Request) {
			r.Probes = map[string]checkin.Probe{"app.example.com": {}, "wiki.example.com": {}}
		}},
		{"02-rejected", failed(checkin.OutcomeRejected, "nginx: [emerg] unknown directive \"prxy_pass\" in /etc/nginx/.nginx.conf.candidate:31"), nil},
		{"03-rolled-back", failed(checkin.OutcomeRolledBack, "nginx: [emerg] still could not bind()"), nil},
		{"04-stuck", failed(checkin.OutcomeStuck, "nginx: [emerg] still could not bind()\nrestore: write /etc/nginx/nginx.conf: read-only file system"), nil},
		{"05-held", held, nil},
		{"06-left-out", leftOut, nil},
		{"07-edited", edited, nil},
		{"07-edited-still", stillEdited, nil},
		{"08-probes", good, func(r *checkin.Request) {
			r.Probes = map[string]checkin.Probe{
				"app.example.com":       {Hop: checkin.HopBackend, Message: "dial tcp 192.0.2.101:8080: connect: connection refused"},
				"wiki.example.com":      {Hop: checkin.HopDNS, Message: "wiki.example.com: no such host"},
				"shop.example.com":      {Hop: checkin.HopCertificate, Message: "x509: certificate is valid for localhost, not shop.example.com"},
				"xn--bcher-kva.example": {Hop: checkin.HopListener}, "good.example.com": {},
			}
		}},
		{"09-held-back", good, func(r *checkin.Request) {
			r.Guard = &checkin.Guard{Removed: 6, Total: 8, Kind: checkin.GuardServices}
		}},
	}
	for i, agent := range agents {
		site := s.Create(t, "/sites", object{"name": fmt.Sprintf("site %02d", i+1)})
		request := checkin.Request{
			SiteID: site, Hostname: agent.name, CurrentTime: now.Unix(), IPv4Address: "192.0.2.5",
			Services: map[string]checkin.ServiceReport{"nginx": agent.nginx, "dnsmasq": good},
			Agent: &checkin.AgentInfo{
				Version: "2026.12.0", MachineID: "6f0b3a52d6b2a3f0", Templates: []string{"nginx/nginx.conf.tmpl"},
				Pass: &checkin.PassInfo{StartedAt: now, DurationMS: 12, Rounds: 1},
			},
			Host: &checkin.HostInfo{
				OS: "Debian GNU/Linux 13 (trixie)", NGINX: &checkin.NGINXInfo{Version: "1.26.3", Stream: true, HTTP3: true},
				DNSMasq: &checkin.DNSMasqInfo{Version: "2.91"}, IPv6: true, UserNamespace: true, DiskFreeBytes: 8589934592,
			},
			Running: &checkin.Running{ETag: agent.nginx.RunningETag, Since: now.Add(-time.Hour)},
		}
		if agent.change != nil {
			agent.change(&request)
		}
		checkIn(t, s, request)
		if len(agent.nginx.Drift) > 0 { // which is told once
			request.Services["nginx"] = good
			checkIn(t, s, request)
		}
	}
	return s, signIn(t, s)
}

func TestEveryStateIsTold(t *testing.T) {
	s, cookie := everyState(t)
	wantOn(t, string(get(t, s, "/agents", cookie).Body), []string{
		"4 of 5 not reached", "rejected", "rolled back", "stuck", "nginx on hold", "On hold for 1 h 59 min more, until", "by root: upgrade of nginx",
		"1 left out, 1 kept as before", "edited on the host", "removes 6 of 8 services", "Look and confirm", "3 failing",
	}, []string{"held until then", "all reached"})
}
