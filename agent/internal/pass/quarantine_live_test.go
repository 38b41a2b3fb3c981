package pass

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/services/servicestest"
	"opensource.internal/templates"
)

func TestMain(m *testing.M) { servicestest.Main(m) }

// liveSite is a site whose nginx and dnsmasq run.
type liveSite struct {
	*site
	nginx, dnsmasq *servicestest.Machine
	steady         time.Duration // see apply.Service
	// Of the latest pass: how often nginx has tested something, and how long it
	// took until it had loaded the files.
	tests int
	live  time.Duration
}

func newLiveSite(t testing.TB) *liveSite {
	t.Helper()
	servicestest.Need(t, "nginx", "dnsmasq")
	s := newSite(t)
	s.byHand = true
	l := &liveSite{
		site:  s,
		nginx: servicestest.NGINX(t, filepath.Join(s.root, "etc/nginx/nginx.conf")), dnsmasq: servicestest.DNSMasq(t, filepath.Join(s.root, "etc/dnsmasq.conf")),
		steady: 100 * time.Millisecond,
	}
	l.fakeJournal()
	return l
}

// fakeJournal puts a journalctl before the real one that tells what dnsmasq has
// logged since it was asked last.
func (l *liveSite) fakeJournal() {
	bin := l.t.TempDir()
	script := strings.NewReplacer("LOG", l.dnsmasq.Log(), "TOLD", filepath.Join(bin, "told")).Replace(`#!/bin/sh
case "$*" in *dnsmasq*) ;; *) exit 0 ;; esac
told=$(cat TOLD 2>/dev/null || echo 0)
wc -c <LOG >TOLD
tail -c +$((told + 1)) LOG | sed 's/^dnsmasq[^:]*: //'
`)
	if err := os.WriteFile(filepath.Join(bin, "journalctl"), []byte(script), 0o755); err != nil {
		l.t.Fatal(err)
	}
	l.t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

// pass runs a pass with a real reload, and returns what it has told.
func (l *liveSite) pass(want Code) map[string]checkin.ServiceReport {
	l.t.Helper()
	return last(l.t, l.checkIns(want)).Services
}

// checkIns runs a pass with a real reload, and returns its check-ins.
func (l *liveSite) checkIns(want Code) []checkin.Request {
	l.t.Helper()
	l.take()
	p, unlock, err := begin(l.t.Context(), l.options())
	if err != nil {
		l.t.Fatal(err)
	}
	defer unlock()
	p.engine.Reload = true
	p.services = []services.Service{services.NGINX(l.nginx, p.paths), services.DNSMasq(l.dnsmasq)}
	for i := range p.services {
		p.services[i].Steady = l.steady
	}
	l.observe(&p.services[0].Service)
	p.look(l.t.Context())
	p.checkInUntilSettled(l.t.Context())
	p.save()
	if got := p.conclude(); got != want {
		l.t.Errorf("exit code %d, want %d", got, want)
	}
	requests, _ := l.take()
	return requests
}

// observe counts the tests of a service and takes its time.
func (l *liveSite) observe(service *apply.Service) {
	l.tests, l.live = 0, 0
	start, test, activate := time.Now(), service.Test, service.Activate
	service.Test = func(ctx context.Context, candidate, live string) error {
		l.tests++
		return test(ctx, candidate, live)
	}
	service.Activate = func(ctx context.Context, a apply.Activation) error {
		err := activate(ctx, a)
		l.live = time.Since(start)
		return err
	}
}

// override overrides a template by what replace makes of the embedded one.
func (l *liveSite) override(name string, replacements ...string) {
	l.t.Helper()
	text, err := fs.ReadFile(templates.FS, name)
	if err != nil {
		l.t.Fatal(err)
	}
	changed := strings.NewReplacer(replacements...).Replace(string(text))
	if changed == string(text) && len(replacements) > 0 {
		l.t.Fatalf("%s stays as it is", name)
	}
	l.write("etc/opensource-agent/templates/"+name, changed)
}

// wantsQuarantined checks a report of a service that is in force but for some
// records, and that the words of the program about them are told.
func wantsQuarantined(t *testing.T, got checkin.ServiceReport, outcome checkin.Outcome, want ...checkin.QuarantinedItem) {
	t.Helper()
	if got.Outcome != outcome || got.LastApply != checkin.ApplyFailure || len(got.Quarantined) != len(want) {
		t.Fatalf("%s, %s: %s %+v", got.Outcome, got.LastApply, got.Message, got.Quarantined)
	}
	for i, item := range got.Quarantined {
		if !strings.HasPrefix(item.Reason, want[i].Reason) {
			t.Errorf("the reason is %q, want %q", item.Reason, want[i].Reason)
		}
		want[i].Reason = item.Reason
	}
	if diff := cmp.Diff(want, got.Quarantined); diff != "" {
		t.Error(diff)
	}
}

func wantsAll(t testing.TB, reports map[string]checkin.ServiceReport) {
	t.Helper()
	for name, got := range reports {
		if got.LastApply != checkin.ApplySuccess || len(got.Quarantined) > 0 {
			t.Errorf("%s: %s %s %+v", name, got.Outcome, got.Message, got.Quarantined)
		}
	}
}

func TestRealNGINXRefusesALine(t *testing.T) {
	l := newLiveSite(t)
	l.override("nginx/http-service.tmpl", "server_name {{.Name}};", `server_name {{.Name}};{{if eq .Name "h7.example.com"}} no_such_directive on;{{end}}`)
	l.publish(hosts(20))
	report := l.pass(Rejected)["nginx"]
	wantsQuarantined(t, report, checkin.OutcomeApplied, checkin.QuarantinedItem{
		Kind: checkin.KindHTTP, ID: 8, Name: "h7.example.com",
		Reason: `nginx: [emerg] unknown directive "no_such_directive" (in its line: server_name h7.example.com; no_such_directive on;)`,
	})
	conf := l.read("etc/nginx/nginx.conf")
	if strings.Contains(conf, "h7.example.com") || strings.Count(conf, "proxy_pass http://192.0.2.101:80") != 19 {
		t.Error("the others are not served")
	}
	l.override("nginx/http-service.tmpl")
	wantsAll(t, l.pass(Settled))
	if !strings.Contains(l.read("etc/nginx/nginx.conf"), "h7.example.com") {
		t.Error("not healed")
	}
}

// nginx names no line for a certificate that is missing. The file comes later,
// and nothing else tells of it.
func TestRealNGINXRefusesARecordWithoutALine(t *testing.T) {
	l := newLiveSite(t)
	pem := filepath.Join(l.root, "h13.pem")
	l.override("nginx/http-service.tmpl", "server_name {{.Name}};", `server_name {{.Name}};{{if eq .Name "h13.example.com"}} ssl_trusted_certificate `+pem+`;{{end}}`)
	l.publish(hosts(20))
	report := l.pass(Rejected)["nginx"]
	wantsQuarantined(t, report, checkin.OutcomeApplied, checkin.QuarantinedItem{
		Kind: checkin.KindHTTP, ID: 14, Name: "h13.example.com", Reason: `nginx: [emerg] `,
	})
	if !strings.Contains(report.Quarantined[0].Reason, pem) {
		t.Errorf("the reason does not name the file: %s", report.Quarantined[0].Reason)
	}
	certificate, err := os.ReadFile("/etc/ssl/certs/ssl-cert-snakeoil.pem")
	if err != nil {
		t.Skip("NOT TESTED: ssl-cert is not installed")
	}
	if err := os.WriteFile(pem, certificate, 0o644); err != nil {
		t.Fatal(err)
	}
	wantsAll(t, l.pass(Settled))
}

func TestRealNGINXFindsAFaultInADropIn(t *testing.T) {
	l := newLiveSite(t)
	l.override("nginx/nginx.conf.tmpl", "include /etc/nginx/conf.d/*.conf;", "include "+l.root+"/conf.d/*.conf;")
	l.publish(hosts(20))
	wantsAll(t, l.pass(Settled))
	dropIn := filepath.Join(l.root, "conf.d/local.conf")
	l.write("conf.d/local.conf", "no_such_directive on;\n")
	l.publish(hosts(21))
	report := l.pass(Rejected)["nginx"]
	if report.Outcome != checkin.OutcomeRejected || len(report.Quarantined) > 0 || !strings.HasPrefix(report.Message, "the fault is in "+dropIn+", which is not managed") {
		t.Errorf("%s %+v: %s", report.Outcome, report.Quarantined, report.Message)
	}
	if err := os.Remove(dropIn); err != nil {
		t.Fatal(err)
	}
	wantsAll(t, l.pass(Settled))
}

// nginx tests a port that is taken with success, and keeps its old configuration
// when it is told to load the new one. Of TCP and UDP only the one is at fault
// that is taken.
func TestRealNGINXCannotBindAPort(t *testing.T) {
	l := newLiveSite(t)
	transport := func(s checkin.Snapshot, ports ...int) checkin.Snapshot {
		for i, port := range ports {
			protocol := "tcp"
			if port < 0 {
				port, protocol = -port, "udp"
			}
			s.NGINX.StreamServices = append(s.NGINX.StreamServices, checkin.StreamService{
				ID: int64(100 + i), InternalPort: 22, Container: checkin.Backend{IPv4Address: "192.0.2.101"}, ExternalPort: port, Protocol: protocol,
			})
		}
		return s
	}
	l.publish(transport(hosts(20), 2201))
	wantsAll(t, l.pass(Settled))
	pid := l.nginx.PID()
	holder, err := net.Listen("tcp4", "0.0.0.0:9443")
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()

	l.publish(transport(hosts(21), 2201, 9443, -9443, 2202))
	busy := checkin.QuarantinedItem{Kind: checkin.KindStream, ID: 101, Name: "tcp/9443", Reason: "bind() to 0.0.0.0:9443 failed (98: "}
	wantsQuarantined(t, l.pass(Rejected)["nginx"], checkin.OutcomeApplied, busy)
	conf := l.read("etc/nginx/nginx.conf")
	for _, want := range []string{"h20.example.com", "listen 2202;", "listen 9443 udp"} {
		if !strings.Contains(conf, want) {
			t.Errorf("%q is not in force", want)
		}
	}
	if l.nginx.PID() != pid || l.nginx.Restarts != 1 {
		t.Error("nginx was restarted")
	}
	// Moved to a port that is taken, a service keeps the one it has.
	l.publish(transport(hosts(21), 9443, -9443, 2202))
	wantsQuarantined(t, l.pass(Rejected)["nginx"], checkin.OutcomeUnchanged, checkin.QuarantinedItem{
		Kind: checkin.KindStream, ID: 100, Name: "tcp/9443", Reason: "bind() to 0.0.0.0:9443 failed (98: ", KeptPrevious: true,
	})
	if !strings.Contains(l.read("etc/nginx/nginx.conf"), "listen 2201;") {
		t.Error("the previous port is not kept")
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	wantsAll(t, l.pass(Settled))
}

// names is a site with so many containers, each with an SRV record.
func names(n int) checkin.Snapshot {
	s := hosts(1)
	s.Site.Nodes[0].Containers, s.Site.DNSRecords = []checkin.Container{}, []checkin.DNSRecord{}
	for i := range n {
		s.Site.Nodes[0].Containers = append(s.Site.Nodes[0].Containers, checkin.Container{
			Hostname: fmt.Sprintf("c%d", i), IPv4Address: fmt.Sprintf("192.0.2.%d", 101+i), MACAddress: checkin.Text(fmt.Sprintf("02:00:00:00:00:%02x", i)),
		})
		s.Site.DNSRecords = append(s.Site.DNSRecords, checkin.DNSRecord{ID: int64(i + 1), Type: "SRV", Name: "_sip._tcp", Target: fmt.Sprintf("c%d", i), Port: 5060})
	}
	return s
}

func TestRealDNSMasqRefusesAnSRVRecord(t *testing.T) {
	l := newLiveSite(t)
	l.override("dnsmasq/dnsmasq.conf.tmpl", "{{.Target}},{{.Port}}", `{{.Target}},{{if eq .Record.ID 4}}sip{{else}}{{.Port}}{{end}}`)
	l.publish(names(10))
	wantsQuarantined(t, l.pass(Rejected)["dnsmasq"], checkin.OutcomeApplied, checkin.QuarantinedItem{
		Kind: checkin.KindSRV, ID: 4, Name: "_sip._tcp", Reason: "dnsmasq: invalid port number (in its line: srv-host=_sip._tcp.lab.internal,c3.lab.internal,sip)",
	})
	if conf := l.read("etc/dnsmasq.conf"); strings.Count(conf, "srv-host=") != 9 {
		t.Error("the others are not served")
	}
	l.override("dnsmasq/dnsmasq.conf.tmpl")
	wantsAll(t, l.pass(Settled))
}

// dnsmasq reads its side files only when it loads them, and tells its log what
// it has not taken.
func TestRealDNSMasqRefusesLinesOfSideFiles(t *testing.T) {
	l := newLiveSite(t)
	l.publish(names(10))
	wantsAll(t, l.pass(Settled))
	pid := l.dnsmasq.PID()
	l.override("dnsmasq/dhcp-hosts.tmpl", "{{.MAC}}", `{{if eq .MAC "02:00:00:00:00:aa"}}02:zz{{else}}{{.MAC}}{{end}}`)
	l.override("dnsmasq/hosts.tmpl", "{{.Address}} {{.FullName}}", `{{if eq .Name "c10"}}192.0.2.777{{else}}{{.Address}}{{end}} {{.FullName}}`)
	changed := names(12)
	changed.Site.DNSRecords = changed.Site.DNSRecords[:10]
	changed.Site.Nodes[0].Containers[2].MACAddress = "02:00:00:00:00:aa"
	l.publish(changed)
	report := l.pass(Rejected)["dnsmasq"]
	wantsQuarantined(t, report, checkin.OutcomeApplied,
		checkin.QuarantinedItem{Kind: checkin.KindHost, Name: "c10", Reason: "bad address (in its line: 192.0.2.777 c10.lab.internal c10)"},
		checkin.QuarantinedItem{
			Kind: checkin.KindReservation, Name: "c2", KeptPrevious: true, Reason: "bad hex constant (in its line: 02:zz,192.0.2.103,c2.lab.internal)",
		})
	leases, dns := l.read("var/lib/dnsmasq/dhcp-hosts"), l.read("var/lib/dnsmasq/hosts")
	for _, want := range []string{"02:00:00:00:00:02,192.0.2.103,c2.lab.internal\n", "02:00:00:00:00:0b,192.0.2.112,c11.lab.internal\n"} {
		if !strings.Contains(leases, want) {
			t.Errorf("%q is not in\n%s", want, leases)
		}
	}
	if strings.Contains(dns, "c10.lab") || !strings.Contains(dns, "192.0.2.112 c11.lab.internal c11\n") {
		t.Errorf("names are\n%s", dns)
	}
	if l.dnsmasq.PID() != pid {
		t.Error("dnsmasq was restarted for its side files")
	}
	if err := errors.Join(
		os.Remove(filepath.Join(l.root, "etc/opensource-agent/templates/dnsmasq/dhcp-hosts.tmpl")),
		os.Remove(filepath.Join(l.root, "etc/opensource-agent/templates/dnsmasq/hosts.tmpl")),
	); err != nil {
		t.Fatal(err)
	}
	wantsAll(t, l.pass(Settled))
}
