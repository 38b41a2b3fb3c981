package dashboard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

// agentSite is a site with one record of each kind, and an agent that reports
// what a test says.
type agentSite struct {
	*servertest.Server
	cookie                                       string
	site, domain, container, http, tcp, srv, vol int64
}

func newAgentSite(t *testing.T) *agentSite {
	t.Helper()
	s := servertest.Start(t, servertest.Options{})
	a := &agentSite{Server: s, cookie: signIn(t, s)}
	a.site = s.Create(t, "/sites", object{
		"name": "lab", "internalDomain": "lab.internal", "dhcpRange": "192.0.2.100,192.0.2.200", "subnetMask": "255.255.255.0",
		"gateway": "192.0.2.1", "dnsForwarders": "9.9.9.9",
	})
	a.domain = s.Create(t, "/external-domains", object{"name": "example.com", "defaultSiteId": a.site})
	node := s.Create(t, fmt.Sprintf("/sites/%d/nodes", a.site), object{"name": "pve1"})
	a.container = s.Create(t, fmt.Sprintf("/sites/%d/containers", a.site), object{"nodeId": node, "hostname": "web", "ipv4Address": "192.0.2.101", "macAddress": "02:00:00:00:00:01"})
	services := fmt.Sprintf("/containers/%d/services", a.container)
	s.Create(t, services, object{"type": "http", "internalPort": 3000, "externalHostname": "wiki", "externalDomainId": a.domain, "backendProtocol": "http"})
	a.http = s.Create(t, services, object{"type": "http", "internalPort": 8080, "externalHostname": "app", "externalDomainId": a.domain, "backendProtocol": "http"})
	a.tcp = s.Create(t, services, object{"type": "transport", "internalPort": 22, "protocol": "tcp", "externalPort": 2201})
	a.srv = s.Create(t, services, object{"type": "dns", "recordType": "SRV", "dnsName": "_sip._tcp", "internalPort": 5060})
	a.vol = s.Create(t, fmt.Sprintf("/containers/%d/volumes", a.container), object{"name": "data", "mountPath": "/data", "mode": "rw"})
	return a
}

// report is a healthy one of Debian 13, of what the site is given now.
func (a *agentSite) report(t *testing.T) checkin.Request {
	t.Helper()
	etag := a.Do(t, "GET", fmt.Sprintf("/api/v1/sites/%d/snapshot", a.site), nil, http.Header{"X-Api-Key": {a.AdminKey}}).Header.Get("Etag")
	now := time.Now().UTC()
	well := checkin.ServiceReport{State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeApplied, ReceivedETag: etag, RunningETag: etag, AppliedAt: &now}
	return checkin.Request{
		SiteID: a.site, Hostname: "gate", CurrentTime: now.Unix(), IPv4Address: "192.0.2.5",
		Services:     map[string]checkin.ServiceReport{"nginx": well, "dnsmasq": well},
		Volumes:      map[string]checkin.VolumeReport{fmt.Sprint(a.vol): {Applied: true}},
		Agent:        &checkin.AgentInfo{Version: "test"}, // as this manager
		Host:         &checkin.HostInfo{OS: "Debian GNU/Linux 13 (trixie)", NGINX: &checkin.NGINXInfo{Version: "1.26.3", Stream: true, HTTP3: true}, DNSMasq: &checkin.DNSMasqInfo{Version: "2.91"}, IPv6: true, DiskFreeBytes: 8 << 30},
		Running:      &checkin.Running{ETag: etag, Since: now},
		Certificates: map[string]checkin.Certificate{"example.com": {State: checkin.CertificateOK, NotAfter: later(90 * 24 * time.Hour)}},
	}
}

func later(d time.Duration) *time.Time {
	at := time.Now().Add(d).UTC()
	return &at
}

// change alters what is said of a service.
func change(r checkin.Request, service string, how func(*checkin.ServiceReport)) checkin.Request {
	report := r.Services[service]
	how(&report)
	r.Services[service] = report
	return r
}

// tell checks in and returns the address of the agent's page.
func (a *agentSite) tell(t *testing.T, r checkin.Request) string {
	t.Helper()
	checkIn(t, a.Server, r)
	agent, err := a.Store.FindAgent(t.Context(), r.SiteID, r.Hostname)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/agents/%d", agent.ID)
}

// text is a page as people read it: without tags.
func text(answer servertest.Answer) string {
	plain := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(answer.Body), " ")
	return strings.Join(strings.Fields(html.UnescapeString(plain)), " ")
}

// rendered is a file as the manager's preview has it, by lines.
func (a *agentSite) rendered(t *testing.T, path string) []string {
	t.Helper()
	answer := a.Do(t, "GET", fmt.Sprintf("/api/v1/sites/%d/preview", a.site), nil, http.Header{"X-Api-Key": {a.AdminKey}})
	var preview struct {
		Data struct {
			Services []struct {
				Files []struct{ Path, Content string }
			}
		}
	}
	if err := json.Unmarshal(answer.Body, &preview); err != nil {
		t.Fatal(err)
	}
	for _, service := range preview.Data.Services {
		for _, file := range service.Files {
			if file.Path == path {
				return strings.Split(file.Content, "\n")
			}
		}
	}
	t.Fatalf("%s is not rendered: %s", path, answer.Body)
	return nil
}

// failed is a service that refused what it was given, and what it says.
func failed(outcome checkin.Outcome, message string) func(*checkin.ServiceReport) {
	return func(r *checkin.ServiceReport) {
		r.LastApply, r.Outcome, r.Message, r.RunningETag = checkin.ApplyFailure, outcome, message, `"before"`
	}
}

// TestAMessagePointsAtItsLine: what a validator says stands beside the very line
// it speaks of, with a link to the record that the line was made of.
func TestAMessagePointsAtItsLine(t *testing.T) {
	a := newAgentSite(t)
	a.tell(t, a.report(t))
	const conf, hosts, leases, dns = "/etc/nginx/nginx.conf", "/var/lib/dnsmasq/hosts", "/var/lib/dnsmasq/dhcp-hosts", "/etc/dnsmasq.conf"
	for name, test := range map[string]struct {
		service, path string
		line          string // that is pointed at
		says          string
		link          string
	}{
		"HTTP service":       {"nginx", conf, "server_name app.example.com;", "nginx: [emerg] invalid server name or wildcard \"app.example.com\" in FILE:LINE", fmt.Sprintf("/services/%d", a.http)},
		"domain":             {"nginx", conf, "server_name *.example.com example.com;", "nginx: [emerg] conflicting \"*.example.com\" in FILE:LINE\nnginx: configuration file FILE test failed", fmt.Sprintf("/domains/%d", a.domain)},
		"port":               {"nginx", conf, "listen 2201;", "nginx: [emerg] duplicate \"2201\" address and port pair in FILE:LINE", fmt.Sprintf("/services/%d", a.tcp)},
		"port that is taken": {"nginx", conf, "listen 2201;", "2026/12/01 10:00:00 [emerg] 7#7: bind() to 0.0.0.0:2201 failed (98: Address already in use)", fmt.Sprintf("/services/%d", a.tcp)},
		"SRV record":         {"dnsmasq", dns, "srv-host=_sip._tcp.lab.internal,web.lab.internal,5060", "dnsmasq: bad SRV record at line LINE of FILE", fmt.Sprintf("/services/%d", a.srv)},
		"reservation":        {"dnsmasq", leases, "02:00:00:00:00:01,192.0.2.101,web.lab.internal", "duplicate dhcp-host IP address 192.0.2.101 at line LINE of FILE", fmt.Sprintf("/containers/%d", a.container)},
		"name":               {"dnsmasq", hosts, "192.0.2.101 web.lab.internal web", "bad address at FILE line LINE", fmt.Sprintf("/containers/%d", a.container)},
		"of no record":       {"nginx", conf, "worker_processes auto;", "nginx: [emerg] \"worker_processes\" directive is duplicate in FILE:LINE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			lines := a.rendered(t, test.path)
			at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) == test.line }) + 1
			if at == 0 {
				t.Fatalf("%q is not in\n%s", test.line, strings.Join(lines, "\n"))
			}
			message := strings.NewReplacer("FILE", test.path, "LINE", fmt.Sprint(at)).Replace(test.says)
			page := get(t, a.Server, a.tell(t, change(a.report(t), test.service, failed(checkin.OutcomeRejected, message))), a.cookie)
			marked := regexp.MustCompile(`<li value="(\d+)" class="faulty[^"]*"><mark><code>([^<]*)</code></mark>`).FindAllStringSubmatch(string(page.Body), -1)
			if len(marked) == 0 || marked[0][1] != fmt.Sprint(at) || html.UnescapeString(strings.TrimSpace(marked[0][2])) != test.line {
				t.Errorf("marked %q, want line %d: %s", marked, at, test.line)
			}
			caption := regexp.MustCompile(`(?s)<figcaption.*?</figcaption>`).FindString(string(page.Body))
			switch {
			case test.link == "" && !strings.Contains(caption, "made of no single record"):
				t.Errorf("the caption is %s", caption)
			case test.link != "" && (!strings.Contains(caption, `href="`+test.link+`"`) || strings.Count(caption, "href=") != 1):
				t.Errorf("no link to %s in %s", test.link, caption)
			}
			if strings.Contains(string(page.Body), "differs from this one") {
				t.Error("the page doubts a line that is right")
			}
			if got := text(page); !strings.Contains(got, strings.Join(strings.Fields(message), " ")) {
				t.Error("the message is not beside it")
			}
		})
	}
}

// TestALineThatCannotBeRight is told as such, and one that there is not is not
// made up.
func TestALineThatCannotBeRight(t *testing.T) {
	a := newAgentSite(t)
	a.tell(t, a.report(t))
	page := func(message string) string {
		return text(get(t, a.Server, a.tell(t, change(a.report(t), "nginx", failed(checkin.OutcomeRejected, message))), a.cookie))
	}
	if got := page(`nginx: [emerg] unknown directive "prxy_pass" in /etc/nginx/nginx.conf:12`); !strings.Contains(got, `speaks of "prxy_pass", which is not in this line`) {
		t.Error(got)
	}
	for _, message := range []string{
		"nginx: [emerg] x in /etc/nginx/nginx.conf:99999", "nginx: [emerg] x in /etc/nginx/nginx.conf:0", "x in /etc/nginx/nginx.conf:99999999999999999999",
		"nginx: [emerg] x in /etc/nginx/conf.d/own.conf:3", "nginx: [warn] x in /etc/nginx/nginx.conf:3",
	} {
		if got := page(message); strings.Contains(got, "← here") {
			t.Errorf("%s: a line is marked: %s", message, got)
		}
	}
	unknown := change(a.report(t), "nginx", func(r *checkin.ServiceReport) {
		failed(checkin.OutcomeRejected, "nginx: [emerg] x in /etc/nginx/nginx.conf:3")(r)
		r.ReceivedETag = `"of another manager"`
	})
	got := text(get(t, a.Server, a.tell(t, unknown), a.cookie))
	wantOn(t, got, []string{"a configuration that this manager has not kept (of another m)"}, []string{"← here"})
}

// TestTheLineOfACandidateWithoutWhatWasLeftOut: what a test complained of last had
// no lines of the records that were left out before.
func TestTheLineOfACandidateWithoutWhatWasLeftOut(t *testing.T) {
	a := newAgentSite(t)
	a.tell(t, a.report(t))
	lines := a.rendered(t, "/etc/nginx/nginx.conf")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "listen 2201;" }) + 1
	size := len(blockOf(lines, "server_name wiki.example.com;")) + 1 // and the empty line before it
	message := fmt.Sprintf("nginx: [emerg] duplicate \"2201\" in /etc/nginx/nginx.conf:%d", at-size)
	report := change(a.report(t), "nginx", failed(checkin.OutcomeRejected, message))
	report = change(report, "nginx", func(r *checkin.ServiceReport) {
		r.Quarantined = []checkin.QuarantinedItem{{Kind: checkin.KindHTTP, ID: a.http - 1, Name: "wiki.example.com", Reason: "nginx: [emerg] bad"}}
	})
	body := string(get(t, a.Server, a.tell(t, report), a.cookie).Body)
	if !strings.Contains(body, fmt.Sprintf(`<li value="%d" class="faulty`, at-size)) || !regexp.MustCompile(`<mark><code> *listen 2201;</code></mark>`).MatchString(body) {
		t.Errorf("line %d is not marked as listen 2201:\n%s", at-size, body)
	}
	wantOn(t, body, []string{fmt.Sprintf(`href="/services/%d"`, a.http-1), "server_name wiki.example.com;", "What was made of it in /etc/nginx/nginx.conf"}, nil)
}

// blockOf are the lines of the server in which a line stands.
func blockOf(lines []string, inner string) []string {
	at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) == inner })
	first, last := at, at
	for lines[first] != "    server {" {
		first--
	}
	for lines[last] != "    }" {
		last++
	}
	return lines[first : last+1]
}

// TestEveryFailureIsExplained, through a real check-in, to who has never seen the
// product: what it is, what it means, what to type.
func TestEveryFailureIsExplained(t *testing.T) {
	a := newAgentSite(t)
	const conf = "/etc/nginx/nginx.conf"
	nginx := func(how func(*checkin.ServiceReport)) func(*checkin.Request) {
		return func(r *checkin.Request) { change(*r, "nginx", how) }
	}
	a.tell(t, a.report(t))
	docs := readDocs(t)
	for name, test := range map[string]struct {
		change func(*checkin.Request)
		want   []string
		never  []string
	}{
		"all is well": {
			func(*checkin.Request) {},
			[]string{"Nothing: all that it reports is in order.", "revision 1", "In force", "1 ready", "this certificate"},
			[]string{"sudo"},
		},
		"rejected": {
			nginx(failed(checkin.OutcomeRejected, "nginx: [emerg] bad in /etc/nginx/conf.d/own.conf:3\nthe fault is in /etc/nginx/conf.d/own.conf, which is not managed")),
			[]string{"nginx refused the change", "nothing is down", "Refused before anything was changed", "in a file of yours", "sudo opensource-agent"},
			nil,
		},
		"rolled back": {
			nginx(failed(checkin.OutcomeRolledBack, "bind() to 0.0.0.0:2201 failed (98: Address already in use)")),
			[]string{"nginx took the change back", "Another process on the host holds the port", "sudo ss -lntup", "port tcp/2201"},
			nil,
		},
		"stuck": {
			nginx(failed(checkin.OutcomeStuck, "restore: write /etc/nginx/nginx.conf: read-only file system")),
			[]string{"a change failed, and so did going back", "systemctl status nginx dnsmasq", "look at the host now"},
			nil,
		},
		"held": {
			nginx(func(r *checkin.ServiceReport) {
				r.Outcome, r.Hold = checkin.OutcomeHeld, &checkin.Hold{Until: *later(2 * time.Hour), By: "root", Reason: "upgrade"}
			}),
			[]string{"nginx is on hold", "by root: upgrade", "sudo opensource-agent release nginx"},
			nil,
		},
		"left out, and kept": {
			nginx(func(r *checkin.ServiceReport) {
				r.LastApply = checkin.ApplyFailure
				r.Quarantined = []checkin.QuarantinedItem{
					{Kind: checkin.KindHTTP, ID: a.http, Name: "app.example.com", Reason: "nginx: [emerg] host not found in upstream", KeptPrevious: true},
					{Kind: checkin.KindStream, ID: a.tcp, Name: "tcp/2201", Reason: "bind() to 0.0.0.0:2201 failed (98: Address already in use)"},
					{Kind: checkin.KindReservation, Name: "gone", Reason: "deleted meanwhile"},
				}
			}),
			[]string{
				"nginx: 2 left out, 1 kept as before", "All other records are in force.", "HTTP service app.example.com kept as before Changed last by test admin (key) , with revision 1", "port tcp/2201 left out",
				"What was made of it in " + conf, "server_name app.example.com;", "listen 2201; ← here", "DHCP reservation of gone left out", "sudo ss -lntup",
			},
			nil,
		},
		"one of its lines": {
			nginx(func(r *checkin.ServiceReport) {
				r.LastApply = checkin.ApplyFailure
				r.Quarantined = []checkin.QuarantinedItem{{Kind: checkin.KindHTTP, ID: a.http, Name: "app.example.com", Reason: "nginx: [emerg] no (in its line: server_name app.example.com;)"}}
			}),
			[]string{"Correct it as its reason below says. It comes back by itself when the cause is gone: HTTP service app.example.com", "server_name app.example.com; ← here"},
			[]string{"template of the host's own"},
		},
		"a record that is gone": {
			nginx(func(r *checkin.ServiceReport) {
				r.LastApply = checkin.ApplyFailure
				r.Quarantined = []checkin.QuarantinedItem{{Kind: checkin.KindReservation, Name: "gone", Reason: "macAddress: is used twice"}}
			}),
			[]string{"DHCP reservation of gone is not in the inventory any more; the next configuration is without it."},
			[]string{"Correct it as its reason below says"},
		},
		"a change that failed somehow": {
			nginx(func(r *checkin.ServiceReport) { r.LastApply, r.Outcome = checkin.ApplyFailure, "" }),
			[]string{"nginx: its last change failed", "It tells that it runs revision 1."},
			[]string{"nothing is down", "refused the change"},
		},
		"rejected, and down": {
			nginx(func(r *checkin.ServiceReport) {
				r.LastApply, r.Outcome, r.State = checkin.ApplyFailure, checkin.OutcomeRejected, "failed"
			}),
			[]string{"nginx does not run", "What ran before goes on. Changes do not arrive"},
			[]string{"nothing is down"},
		},
		"a line of a template on the host": {
			nginx(func(r *checkin.ServiceReport) {
				r.LastApply = checkin.ApplyFailure
				r.Quarantined = []checkin.QuarantinedItem{{Kind: checkin.KindHTTP, ID: a.http, Name: "app.example.com", Reason: "nginx: [emerg] no (in its line: include app.conf;)"}}
			}),
			[]string{"made by a template of the host's own", "ls -R /etc/opensource-agent/templates"},
			[]string{"← here"},
		},
		"nothing for dnsmasq": {
			func(r *checkin.Request) {
				change(*r, "dnsmasq", func(r *checkin.ServiceReport) { r.Outcome, r.Message = checkin.OutcomeSkipped, checkin.NoNetwork })
			},
			[]string{"dnsmasq is not managed", "DNS and DHCP are not set up for this site", "Not managed"},
			[]string{"What dnsmasq says"},
		},
		"edited": {
			nginx(func(r *checkin.ServiceReport) {
				r.Drift = []checkin.Drift{{Path: conf, Diff: "--- managed\n+++ found\n@@ -1 +1 @@\n-server_tokens off;\n+server_tokens on;\n"}}
			}),
			[]string{"Files of nginx were edited on the host and restored", "+server_tokens on;", "sudo opensource-agent hold nginx --for 2h"},
			nil,
		},
		"a volume": {
			func(r *checkin.Request) {
				r.Volumes = map[string]checkin.VolumeReport{fmt.Sprint(a.vol): {Message: "mkdir /mnt/volumes: permission denied"}}
			},
			[]string{"1 of the site's volumes could not be provided", "chown 100000:100000 /mnt/volumes", "mkdir /mnt/volumes: permission denied", "1 failed", "Changed last by test admin (key) , with revision 1"},
			nil,
		},
		"expired certificate": {
			func(r *checkin.Request) {
				r.Certificates = map[string]checkin.Certificate{"example.com": {State: checkin.CertificateExpired, NotAfter: later(-48 * time.Hour)}}
			},
			[]string{"The certificate of example.com has expired", "Browsers warn of it.", "ended 2 days ago", "openssl x509 -noout -subject -dates -in /etc/ssl/certs/example.com.crt", "Renew it"},
			nil,
		},
		"certificate of tomorrow": {
			func(r *checkin.Request) {
				r.Certificates = map[string]checkin.Certificate{"example.com": {State: checkin.CertificateExpired, NotAfter: later(48 * time.Hour)}}
			},
			[]string{"The certificate of example.com is not valid yet", "openssl x509 -noout -subject -dates -in /etc/ssl/certs/example.com.crt", "timedatectl"},
			[]string{"has expired", "Renew"},
		},
		"certificate and another key": {
			func(r *checkin.Request) {
				r.Certificates = map[string]checkin.Certificate{"example.com": {State: checkin.CertificateMismatch, Fallback: true}}
			},
			[]string{"do not belong together", "openssl x509 -noout -pubkey -in /etc/ssl/certs/example.com.crt", "sudo openssl pkey -pubout -in /etc/ssl/private/example.com.key"},
			[]string{"Renew"},
		},
		"certificate that is damaged": {
			func(r *checkin.Request) {
				r.Certificates = map[string]checkin.Certificate{"example.com": {State: checkin.CertificateUnreadable, Fallback: true}}
			},
			[]string{"cannot be read", "sudo opensource-agent status"},
			[]string{"Renew"},
		},
		"no certificate": {
			func(r *checkin.Request) {
				r.Certificates = map[string]checkin.Certificate{"example.com": {State: checkin.CertificateMissing, Fallback: true}}
			},
			[]string{"There is no certificate for example.com", "a self-signed certificate, of which browsers warn", "sudo ls -l /etc/ssl/certs/example.com.crt /etc/ssl/private/example.com.key"},
			[]string{"Renew", "openssl x509"},
		},
		"guard": {
			func(r *checkin.Request) { r.Guard = &checkin.Guard{Removed: 6, Total: 8, Kind: checkin.GuardServices} },
			[]string{"removes 6 of 8 services", "no other change arrives here", "sudo opensource-manager audit --action delete --since 1d", "Look and confirm…"},
			nil,
		},
		"probes": {
			func(r *checkin.Request) {
				r.Probes = map[string]checkin.Probe{"app.example.com": {Hop: checkin.HopBackend, Message: "connection refused"}, "wiki.example.com": {}}
			},
			[]string{"1 of 2 not reached", "container does not answer", "connection refused", "listens on the service's port"},
			nil,
		},
		"the service is down": {
			nginx(func(r *checkin.ServiceReport) { r.State = "failed" }),
			[]string{"nginx does not run", "What it serves is down", "systemctl status nginx dnsmasq"},
			nil,
		},
		"the service was stopped": {
			nginx(func(r *checkin.ServiceReport) { r.State = "inactive" }),
			[]string{"nginx does not run", "What it serves is down", "systemctl status nginx dnsmasq"},
			nil,
		},
		"the service is starting": {
			nginx(func(r *checkin.ServiceReport) { r.State = "activating" }),
			[]string{"nginx is activating", "systemctl status nginx dnsmasq"},
			[]string{"does not run"},
		},
		"systemd was not asked": {
			nginx(func(r *checkin.ServiceReport) { r.State = checkin.StateUnknown }),
			[]string{"Whether nginx runs is not known"},
			[]string{"does not run"},
		},
		"no room": {
			func(r *checkin.Request) { r.Host.DiskFreeBytes = 3 << 20 },
			[]string{"The disk of the host is nearly full: 3 MiB free", "df -h"},
			nil,
		},
		"the earlier generation": {
			func(r *checkin.Request) {
				r.Agent, r.Host, r.Running, r.Certificates = nil, nil, nil, nil
				r.Services = map[string]checkin.ServiceReport{"nginx": {State: "active", LastApply: checkin.ApplyFailure}}
			},
			[]string{"nginx: its last change failed", "It has not told what runs.", "It tells no reason here", "journalctl -t opensource-agent -n 20", "It is an agent of the earlier generation", "sudo apt install ./opensource-agent_*.deb"},
			[]string{"nothing is down"},
		},
		"not managed": {
			func(r *checkin.Request) {
				change(*r, "dnsmasq", func(r *checkin.ServiceReport) {
					r.Outcome, r.Message = checkin.OutcomeSkipped, "the site has no gateway"
				})
			},
			[]string{"dnsmasq is not managed", "the site has no gateway", "Not managed"},
			nil,
		},
		"a wrong clock": {
			func(r *checkin.Request) { r.CurrentTime -= 3 * 3600 },
			[]string{"Its clock is 3 hours behind the manager's", "timedatectl"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := a.report(t)
			report.Hostname = strings.NewReplacer(" ", "-", ",", "").Replace(name)
			test.change(&report)
			page := get(t, a.Server, a.tell(t, report), a.cookie)
			wantOn(t, text(page), test.want, append(test.never, "quarantine", "etag", "ETag"))
			for _, command := range commandsOn(page) {
				if !strings.Contains(docs, command) {
					t.Errorf("%q is not in the documentation", command)
				}
			}
		})
	}
}

// commandsOn are the commands of a page that can be copied, as far as they are the
// same everywhere.
func commandsOn(page servertest.Answer) []string {
	var commands []string
	for _, found := range regexp.MustCompile(`<code id="problem-\d+-command-\d+">([^<]*)</code>`).FindAllStringSubmatch(string(page.Body), -1) {
		command := html.UnescapeString(found[1])
		command = regexp.MustCompile(` (\d+\b|--reason|FOLDER|CT\b).*`).ReplaceAllString(command, "")
		commands = append(commands, strings.TrimPrefix(command, "sudo "))
	}
	return commands
}

// readDocs is all that the documentation tells users.
func readDocs(t *testing.T) string {
	t.Helper()
	pages, err := filepath.Glob("../../../docs/usage/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no documentation: %v", err)
	}
	var all strings.Builder
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}

// TestTheWayBack: a failed change leads to the revision that runs, and every link
// of the page to a page.
func TestTheWayBack(t *testing.T) {
	a := newAgentSite(t)
	before := a.report(t)
	a.tell(t, before)
	a.Call(t, "PATCH", fmt.Sprintf("/services/%d", a.http), object{"internalPort": 9090})
	report := change(a.report(t), "nginx", failed(checkin.OutcomeRolledBack, "bind() to 0.0.0.0:2201 failed (98: Address already in use)"))
	report = change(report, "nginx", func(r *checkin.ServiceReport) { r.RunningETag = before.Running.ETag })
	report = change(report, "dnsmasq", func(r *checkin.ServiceReport) {
		r.Quarantined = []checkin.QuarantinedItem{
			{Kind: checkin.KindSRV, ID: a.srv, Name: "_sip._tcp", Reason: "x"},
			{Kind: checkin.KindReservation, Name: "web", Reason: "x"},
			{Kind: checkin.KindHost, Name: "pve1", Reason: "x"},
			{Kind: checkin.KindDomain, Name: "example.com", Reason: "x"},
			{Kind: checkin.KindHTTP, ID: a.http, Name: "app.example.com", Reason: "x"},
		}
	})
	report.Running.ETag = before.Running.ETag
	page := get(t, a.Server, a.tell(t, report), a.cookie)
	wantOn(t, text(page), []string{"Published for the site revision 2", "In force as a whole revision 1", "sudo opensource-manager pin 1 1", "Pin to revision 1…"}, nil)
	links := regexp.MustCompile(`href="(/[^"#]+)"`).FindAllStringSubmatch(string(page.Body), -1)
	seen := map[string]bool{}
	for _, link := range links {
		path := html.UnescapeString(link[1])
		if answer := get(t, a.Server, path, a.cookie); !seen[path] && path != "/" && answer.Status != 200 {
			t.Errorf("%s: %d", path, answer.Status)
		}
		seen[path] = true
	}
	for _, want := range []string{
		fmt.Sprintf("/services/%d", a.srv), fmt.Sprintf("/services/%d", a.tcp), fmt.Sprintf("/containers/%d", a.container), fmt.Sprintf("/domains/%d", a.domain),
		"/nodes/1", fmt.Sprintf("/volumes/%d", a.vol), "/sites/1/revisions/1", "/sites/1/pin?revision=1",
	} {
		if !seen[want] {
			t.Errorf("no link to %s among %v", want, seen)
		}
	}
	if _, err := a.Store.GetNode(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	a.Call(t, "POST", "/sites/1/pin", object{"revision": 1, "reason": "9090 does not answer"})
	wantOn(t, text(get(t, a.Server, a.tell(t, report), a.cookie)), []string{"Changes of the site do not reach it", "9090 does not answer", "sudo opensource-manager unpin 1", "What waits"}, nil)
}

// TestASilentAgent: nothing is said to be so that was only so.
func TestASilentAgent(t *testing.T) {
	a := newAgentSite(t)
	path := a.tell(t, a.report(t))
	agent, err := a.Store.FindAgent(t.Context(), a.site, "gate")
	if err != nil {
		t.Fatal(err)
	}
	age(t, a.Server, agent, 6*time.Minute)
	wantOn(t, text(get(t, a.Server, path, a.cookie)), []string{
		"offline", "It has not checked in for 6 minutes", "what it told last", "systemctl list-timers opensource-agent.timer",
		fmt.Sprintf("sudo opensource-manager enroll %d", a.site), "sudo opensource-manager apikey list",
	}, nil)
}

// age makes an agent one that was seen some time ago.
func age(t *testing.T, s *servertest.Server, agent store.Agent, ago time.Duration) {
	t.Helper()
	agent, err := s.Store.RecordCheckIn(t.Context(), store.CheckIn{
		SiteID: agent.SiteID, Hostname: agent.Hostname, At: time.Now().UTC().Add(-ago), Report: agent.Report.Request, ClockSkewMS: agent.ClockSkewMS,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnAgentOfAnEarlierGeneration tells little, and the page says so.
func TestAnAgentOfAnEarlierGeneration(t *testing.T) {
	a := newAgentSite(t)
	path := a.tell(t, checkin.Request{SiteID: a.site, Hostname: "old", CurrentTime: time.Now().Unix(), Services: map[string]checkin.ServiceReport{
		"nginx": {State: "active", LastApply: checkin.ApplyFailure, Message: "bad option at line 12 of /etc/nginx/nginx.conf"}, "dnsmasq": {State: "active", LastApply: checkin.ApplySuccess},
	}})
	wantOn(t, text(get(t, a.Server, path, a.cookie)), []string{"not told", "Failed", "In force", "nginx: its last change failed", "unknown"}, []string{"← here"})
}

// hostile tells what must neither break out nor break the layout.
func (a *agentSite) hostile(t *testing.T) string {
	t.Helper()
	const break_ = `"><img src=x onerror="document.title='owned'"><script>document.title="owned"</script>`
	long, rtl := strings.Repeat("x", 3000), "\u202egnol\u202c"
	r := a.report(t)
	r.Hostname = strings.Repeat("a-long-label-of-a-name.", 11)[:253]
	r.Agent = &checkin.AgentInfo{Version: break_, Templates: []string{break_, long}}
	r.Services = map[string]checkin.ServiceReport{
		strings.Repeat("long@._-", 8): {State: break_, LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRejected, Message: break_ + long + rtl, ReceivedETag: r.Running.ETag},
		"nginx": {
			State: "failed", Outcome: checkin.OutcomeRejected, ReceivedETag: r.Running.ETag, RunningETag: break_,
			Message: "x in /etc/nginx/nginx.conf:20\n" + break_ + "\nbind() to 0.0.0.0:2201 failed",
			Quarantined: []checkin.QuarantinedItem{
				{Kind: break_, Name: break_, Reason: break_ + long}, {Kind: checkin.KindHTTP, ID: 99999, Name: strings.Repeat("h.", 126) + "x", Reason: rtl},
			},
			Drift: []checkin.Drift{{Path: break_, Diff: "+" + break_ + long}},
			Hold:  &checkin.Hold{Until: *later(time.Hour), By: break_, Reason: long},
		},
	}
	r.Certificates = map[string]checkin.Certificate{"x; rm -rf /": {State: checkin.CertificateExpired}, break_: {State: checkin.CertificateState(break_)}, long[:253]: {State: checkin.CertificateMissing}}
	r.Probes = map[string]checkin.Probe{break_: {Hop: checkin.ProbeHop(break_), Message: long}}
	r.Guard = &checkin.Guard{Removed: 5, Total: 6, Kind: checkin.GuardKind(break_)}
	return a.tell(t, r)
}

func TestHostileAgent(t *testing.T) {
	a := newAgentSite(t)
	a.tell(t, a.report(t))
	path := a.hostile(t)
	body := string(get(t, a.Server, path, a.cookie).Body)
	wantOn(t, body, []string{"&lt;img src=x"}, []string{"<img", "<script>", "etc/ssl/certs/x;"})
	b := browse(t, a.Server, a.cookie)
	b.open(t, path)
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	if n := eval[int](t, b, `document.querySelectorAll("main img, main script").length`); n != 0 {
		t.Errorf("%d elements of an agent became part of the page", n)
	}
	looked(t, b, "agent-hostile")
}

func TestTheAgentsPageInABrowser(t *testing.T) {
	a := newAgentSite(t)
	path := a.tell(t, a.report(t))
	b := browse(t, a.Server, a.cookie)
	b.open(t, path)
	b.reads(t, "Nothing: all that it reports is in order.")
	looked(t, b, "agent-well")
	b.until(t, `document.getElementById("live").textContent === "Live"`)

	// It follows, without a reload.
	lines := a.rendered(t, "/etc/nginx/nginx.conf")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "server_name app.example.com;" }) + 1
	verbose := strings.Repeat("nginx: [warn] protocol options redefined for 0.0.0.0:443 in /etc/nginx/conf.d/old.conf:3\n", 40)
	report := change(a.report(t), "nginx", failed(checkin.OutcomeRejected, fmt.Sprintf("%snginx: [emerg] conflicting server name \"app.example.com\" in /etc/nginx/nginx.conf:%d\n%snginx: configuration file /etc/nginx/nginx.conf test failed", verbose, at, verbose)))
	report = change(report, "dnsmasq", func(r *checkin.ServiceReport) {
		r.Quarantined = []checkin.QuarantinedItem{{Kind: checkin.KindReservation, Name: "web", Reason: "macAddress: is used twice", KeptPrevious: true}}
		r.Drift = []checkin.Drift{{Path: "/etc/dnsmasq.conf", Diff: "--- managed\n+++ found\n@@ -12,3 +12,3 @@\n no-hosts\n-domain-needed\n+resolv-file=/tmp/x\n bogus-priv\n"}}
	})
	report.Volumes = map[string]checkin.VolumeReport{fmt.Sprint(a.vol): {Message: "mkdir /mnt/volumes/site-1: permission denied"}}
	report.Certificates = map[string]checkin.Certificate{
		"example.com": {State: checkin.CertificateExpired, NotAfter: later(-48 * time.Hour)}, "example.org": {State: checkin.CertificateMissing, Fallback: true},
	}
	report.Probes = map[string]checkin.Probe{"app.example.com": {Hop: checkin.HopBackend, Message: "dial tcp 192.0.2.101:8080: connect: connection refused"}, "wiki.example.com": {}}
	report.Guard = &checkin.Guard{Removed: 6, Total: 8, Kind: checkin.GuardServices}
	a.tell(t, report)
	if err := a.Store.NoteSilence(t.Context(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.reads(t, "nginx refused the change")
	b.reads(t, "seen, with a failed change in 1")
	b.reads(t, "← here")
	looked(t, b, "agent-failed")

	// Of a long message one reads what matters, and all of it a click away.
	shown := `document.querySelector("#service-2 > pre.message").textContent`
	if n := eval[int](t, b, shown+`.split("\n").length`); n > 2*8 || !strings.Contains(eval[string](t, b, shown), "conflicting server name") {
		t.Errorf("%d lines: %s", n, eval[string](t, b, shown))
	}
	eval[bool](t, b, `(document.querySelector("#service-2-message summary").click(), true)`)
	b.until(t, `document.querySelector("#service-2-message pre").checkVisibility() && document.querySelector("#service-2-message pre").textContent.split("\n").length === 82`)

	// By keyboard from a problem to what is told of it.
	eval[bool](t, b, `(document.querySelector(".problem a[href^='#service-']").focus(), true)`)
	b.do(t, chromedp.KeyEvent(kb.Enter))
	b.until(t, `document.activeElement.id === document.querySelector(".problem a[href^='#service-']").hash.slice(1)`)

	// And away with it.
	b.press(t, "Remove the agent…")
	b.reads(t, "As long as it checks in, it appears here again.")
	looked(t, b, "agent-remove")
	b.press(t, "Delete")
	b.reads(t, "The agent gate was removed.")
	if answer := get(t, a.Server, path, a.cookie); answer.Status != 404 {
		t.Errorf("after that: %d", answer.Status)
	}
}

// TestAViewerOfAnAgent sees all of it, and gets no button that is not theirs.
func TestAViewerOfAnAgent(t *testing.T) {
	a := newAgentSite(t)
	report := a.report(t)
	report.Guard = &checkin.Guard{Removed: 6, Total: 8, Kind: checkin.GuardServices}
	path := a.tell(t, report)
	var taken *store.ConflictError
	if _, err := auth.CreateUser(t.Context(), a.Store, "vic", auth.RoleViewer, password); err != nil && !errors.As(err, &taken) {
		t.Fatal(err)
	}
	viewer := sessionOf(t, a.Do(t, "POST", "/sign-in", url.Values{"name": {"vic"}, "password": {password}}.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}))
	wantOn(t, text(get(t, a.Server, path, viewer)), []string{"removes 6 of 8 services", "an administrator has to confirm it"}, []string{"Remove the agent", "Look and confirm"})
	for _, method := range []string{"GET", "POST"} {
		if answer := a.Do(t, method, path+"/delete", nil, http.Header{"Cookie": {viewer}}); answer.Status != 403 {
			t.Errorf("%s: %d", method, answer.Status)
		}
	}
	for _, wrong := range []string{"/agents/99", "/agents/x", "/agents/99/events", "/agents/99/delete"} {
		if answer := get(t, a.Server, wrong, a.cookie); answer.Status != 404 {
			t.Errorf("%s: %d", wrong, answer.Status)
		}
	}
}

// TestAllEventsOfAnAgent are there, page by page.
func TestAllEventsOfAnAgent(t *testing.T) {
	a := newAgentSite(t)
	a.tell(t, a.report(t))
	path := ""
	for i := range 60 {
		report := a.report(t)
		report.Agent.Version = fmt.Sprintf("2026.12.%d", i+1)
		path = a.tell(t, report)
	}
	_, total, err := a.Store.ListEvents(t.Context(), store.EventFilter{}, store.ListOptions{})
	if err != nil || total < 60 {
		t.Fatal(total, err)
	}
	wantOn(t, text(get(t, a.Server, path, a.cookie)), []string{"2026.12.60", fmt.Sprintf("All events (%d older)", total-15)}, []string{"2026.12.30"})
	first := text(get(t, a.Server, path+"/events", a.cookie))
	wantOn(t, first, []string{fmt.Sprintf("1 to 50 of %d events", total), "2026.12.60", "Older"}, []string{"first time", "Newer"})
	last := text(get(t, a.Server, path+"/events?from=50", a.cookie))
	wantOn(t, last, []string{fmt.Sprintf("51 to %d of %[1]d events", total), "first time", "Newer"}, []string{"2026.12.60", "Older"})
	b := browse(t, a.Server, a.cookie)
	b.open(t, path+"/events")
	looked(t, b, "agent-events")
}

// TestWhatIsHeldBackIsNotInForce: the services run what was before, and each line
// says so.
func TestWhatIsHeldBackIsNotInForce(t *testing.T) {
	h := newHeldBackSite(t, nil)
	before := checkin.ServiceReport{State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeUnchanged, ReceivedETag: h.etag, RunningETag: `"before"`}
	refused := before
	refused.Outcome, refused.LastApply = checkin.OutcomeRejected, checkin.ApplyFailure
	page := func(dnsmasq checkin.ServiceReport, etag string) string {
		t.Helper()
		checkIn(t, h.Server, checkin.Request{
			SiteID: h.site, Hostname: "gateway", CurrentTime: time.Now().Unix(), Guard: &checkin.Guard{Removed: 6, Total: 8, Kind: checkin.GuardServices, ETag: etag},
			Services: map[string]checkin.ServiceReport{"nginx": before, "dnsmasq": dnsmasq},
		})
		return string(get(t, h.Server, fmt.Sprintf("/agents/%d", h.agent), signIn(t, h.Server)).Body)
	}
	const held = `<span class="badge warn">Held back</span>`
	if got := strings.Count(page(before, h.etag), held); got != 2 {
		t.Errorf("%d services are held back, want 2", got)
	}
	wantOn(t, page(refused, h.etag), []string{held, "Refused before anything was changed"}, []string{">In force<"})
	wantOn(t, page(before, `"another"`), []string{">In force<"}, []string{held})
}

// TestWhatIsHeldBackComesAfterWhatIsDown: a certificate can wait, and each step leads
// somewhere.
func TestWhatIsHeldBackComesAfterWhatIsDown(t *testing.T) {
	h := newHeldBackSite(t, nil)
	down := checkin.ServiceReport{State: "failed", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeUnchanged}
	checkIn(t, h.Server, checkin.Request{
		SiteID: h.site, Hostname: "gateway", CurrentTime: time.Now().Unix(), Guard: &checkin.Guard{Removed: 6, Total: 8, Kind: checkin.GuardServices, ETag: h.etag},
		Services:     map[string]checkin.ServiceReport{"nginx": down},
		Certificates: map[string]checkin.Certificate{"example.com": {State: checkin.CertificateMissing, Fallback: true}},
	})
	page, deletions, revisions := fmt.Sprintf("/agents/%d", h.agent), fmt.Sprintf(`href="/audit?action=delete&amp;site=%d"`, h.site), fmt.Sprintf(`href="/sites/%d/revisions"`, h.site)
	body := string(get(t, h.Server, page, signIn(t, h.Server)).Body)
	if got := regexp.MustCompile(`(nginx does not run|Held back: the new|There is no certificate)`).FindAllString(body, -1); !slices.Equal(got, []string{"nginx does not run", "Held back: the new", "There is no certificate"}) {
		t.Errorf("the order is %q", got)
	}
	wantOn(t, body, []string{deletions, revisions}, nil)
	wantOn(t, string(get(t, h.Server, h.removals, signIn(t, h.Server)).Body), []string{deletions, revisions}, nil)
	wantOn(t, string(get(t, h.Server, page, signInViewer(t, h.Server)).Body), []string{revisions}, []string{deletions})
}

// TestVolumesThatFailAreNamed, the first of them.
func TestVolumesThatFailAreNamed(t *testing.T) {
	a := newAgentSite(t)
	report := a.report(t)
	for i := range 5 {
		id := a.Create(t, fmt.Sprintf("/containers/%d/volumes", a.container), object{"name": fmt.Sprintf("more%d", i), "mountPath": fmt.Sprintf("/more%d", i), "mode": "rw"})
		report.Volumes[fmt.Sprint(id)] = checkin.VolumeReport{Message: "it is not a directory"}
	}
	_, told, _ := strings.Cut(string(get(t, a.Server, a.tell(t, report), a.cookie).Body), `<h2 id="problems">`)
	told, _, _ = strings.Cut(told, "</section>")
	wantOn(t, told, []string{`<a href="/volumes/2">/`, `<a href="/volumes/3">/`, `<a href="/volumes/4">/`, " and 2 more"}, []string{`href="/volumes/1"`, `href="/volumes/5"`})
}

// TestAHoldNeedsNoCard: what to do says all of it.
func TestAHoldNeedsNoCard(t *testing.T) {
	a := newAgentSite(t)
	path := a.tell(t, change(a.report(t), "dnsmasq", func(r *checkin.ServiceReport) {
		r.Outcome, r.Message, r.Hold = checkin.OutcomeHeld, "on hold", &checkin.Hold{Until: *later(time.Hour), By: "root", Reason: "upgrade"}
	}))
	wantOn(t, string(get(t, a.Server, path, a.cookie).Body), []string{"dnsmasq is on hold", "by root: upgrade"}, []string{`<h2 id="service-1-name">`, `href="#service-1"`})
}

// TestFailingIsSaidEverywhere: each page that says when an agent was heard says that
// it fails, too.
func TestFailingIsSaidEverywhere(t *testing.T) {
	a := newAgentSite(t)
	site := fmt.Sprintf("/sites/%d", a.site)
	pages := []string{"/agents", a.tell(t, a.report(t)), "/sites", site, site + "/enroll"}
	const failing = `<span class="badge bad">failing</span>`
	check := func(break_ func(*checkin.Request), want bool) {
		t.Helper()
		report := a.report(t)
		break_(&report)
		a.tell(t, report)
		for _, path := range pages {
			if got := strings.Contains(string(get(t, a.Server, path, a.cookie).Body), failing); got != want {
				t.Errorf("%s: failing is said: %v, want %v", path, got, want)
			}
		}
	}
	check(func(*checkin.Request) {}, false)
	check(func(r *checkin.Request) {
		change(*r, "nginx", failed(checkin.OutcomeRejected, "[emerg] unknown directive"))
	}, true)
	check(func(r *checkin.Request) { r.Volumes[fmt.Sprint(a.vol)] = checkin.VolumeReport{Message: "it is gone"} }, true)
}

// TestABadgeDoesNotBreakInside: beside a long message there is still room for the
// word of the state.
func TestABadgeDoesNotBreakInside(t *testing.T) {
	a := newAgentSite(t)
	report := a.report(t)
	report.Volumes[fmt.Sprint(a.vol)] = checkin.VolumeReport{Message: strings.Repeat("\"/mnt/volumes/data\" is not a directory ", 20)}
	path := a.tell(t, report)
	b := browse(t, a.Server, a.cookie)
	b.do(t, chromedp.EmulateViewport(1280, 900))
	b.open(t, path)
	if high := eval[float64](t, b, `document.querySelector("#volumes ~ table .badge").offsetHeight`); high > 30 {
		t.Errorf("the badge is %v px high", high)
	}
}
