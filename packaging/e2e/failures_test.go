//go:build e2e

package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/wait"
)

// app is the site's first HTTP service.
func (s *site) app() string { return s.host("app") + ".example.test" }

// wantServed wants the first HTTP service to be served as ever.
func (s *site) wantServed(t testing.TB) {
	t.Helper()
	if err := s.serves(s.app(), s.backend(8080)); err != nil {
		t.Errorf("the site is not served any more: %v", err)
	}
}

// nginxRefuses publishes a service that makes a directive of the
// administrator's own template come out wrong, then mends the template. The
// others go on being served and changed.
func nginxRefuses(t *testing.T, s *site) {
	const override = "/etc/opensource-agent/templates/nginx/http-service.tmpl"
	name, other := s.host("shop")+".example.test", s.host("news")+".example.test"
	original := s.Read(t, "/usr/share/opensource-agent/templates/nginx/http-service.tmpl")
	s.Write(t, override, strings.Replace(original, "server_name {{.Name}};",
		"server_name {{.Name}};\n{{if eq .Name `"+name+"`}}proxy_read_timeout soon;{{end}}", 1), 0o644)
	s.wantPass(t, 0)

	shop := s.http(t, "shop", s.domain, 8081)
	news := s.http(t, "news", s.domain, 8081)
	s.wantPass(t, 4)
	s.wantServed(t)
	if err := s.serves(other, s.backend(8081)); err != nil {
		t.Errorf("the service that came with the refused one: %v", err)
	}
	const words = "\"proxy_read_timeout\" directive invalid value"
	s.wantQuarantined(t, "nginx", checkin.QuarantinedItem{Kind: checkin.KindHTTP, ID: shop, Name: name, Reason: words})
	searches := func() int {
		return strings.Count(s.Run(t, "journalctl", "-t", "opensource-agent"), "looked for refused records")
	}
	before := searches()
	s.wantPass(t, 4)
	if now := searches(); before == 0 || now != before {
		t.Errorf("nginx was asked about the same configuration again: %d times instead of %d", now, before)
	}
	if page := s.manager.page(t); !strings.Contains(html.UnescapeString(page), words) {
		t.Error("/agents does not show nginx's own words")
	}

	s.Run(t, "rm", override)
	s.wantPass(t, 0)
	if err := s.serves(name, s.backend(8081)); err != nil {
		t.Errorf("the service with the mended template: %v", err)
	}
	s.manager.waitForReport(t, s.id, "nginx", checkin.ApplySuccess)
	s.manager.remove(t, fmt.Sprintf("/services/%d", shop))
	s.manager.remove(t, fmt.Sprintf("/services/%d", news))
	s.wantPass(t, 0)
}

// wantQuarantined wants a service to be in force but for one record, for a
// reason that contains the given one.
func (s *site) wantQuarantined(t *testing.T, service string, want checkin.QuarantinedItem) {
	t.Helper()
	report := s.manager.waitForReport(t, s.id, service, checkin.ApplyFailure)
	if report.Outcome != checkin.OutcomeApplied && report.Outcome != checkin.OutcomeUnchanged || len(report.Quarantined) != 1 {
		t.Fatalf("reported as %s with %+v: %s", report.Outcome, report.Quarantined, report.Message)
	}
	got := report.Quarantined[0]
	if !strings.Contains(got.Reason, want.Reason) || !strings.Contains(report.Message, want.Reason) {
		t.Errorf("the reason is %q, want the program's own words; the message: %s", got.Reason, report.Message)
	}
	if want.Reason = got.Reason; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// dnsmasqRefuses changes a container so that the administrator's own template
// makes something wrong of its reservation: dnsmasq finds that when it loads the
// file, and the card keeps its address.
func dnsmasqRefuses(t *testing.T, s *site) {
	const override = "/etc/opensource-agent/templates/dnsmasq/dhcp-hosts.tmpl"
	original := s.Read(t, "/usr/share/opensource-agent/templates/dnsmasq/dhcp-hosts.tmpl")
	s.Write(t, override, strings.Replace(original, "{{.MAC}},", `{{if eq .MAC "02:00:00:00:02:aa"}}nonsense:{{end}}{{.MAC}},`, 1), 0o644)
	container := func(name string, host int) int64 {
		return s.manager.create(t, fmt.Sprintf("/sites/%d/containers", s.id), object{
			"nodeId": s.node, "hostname": name, "ipv4Address": s.wires.Host(host).String(), "macAddress": fmt.Sprintf("02:00:00:00:02:%02x", host),
		})
	}
	first := container("first", 21)
	s.wantPass(t, 0)
	process := s.Property(t, "dnsmasq.service", "MainPID")

	s.manager.change(t, fmt.Sprintf("/containers/%d", first), object{"macAddress": "02:00:00:00:02:aa"})
	second := container("second", 22)
	s.wantPass(t, 4)
	if err := s.dig("second.lab.internal", "A", s.wires.Host(22).String()); err != nil {
		t.Error(err)
	}
	leases := s.Read(t, "/var/lib/dnsmasq/dhcp-hosts")
	for _, card := range []string{"\n02:00:00:00:02:15,", "\n02:00:00:00:02:16,"} {
		if !strings.Contains(leases, card) {
			t.Errorf("there is no reservation of %q in\n%s", card, leases)
		}
	}
	s.wantQuarantined(t, "dnsmasq", checkin.QuarantinedItem{Kind: checkin.KindReservation, Name: "first", Reason: "bad hex constant", KeptPrevious: true})
	if s.Property(t, "dnsmasq.service", "MainPID") != process {
		t.Error("dnsmasq was restarted for its side files")
	}

	s.Run(t, "rm", override)
	s.wantPass(t, 0)
	for _, id := range []int64{first, second} {
		s.manager.remove(t, fmt.Sprintf("/containers/%d", id))
	}
	s.wantPass(t, 0)
}

// heldPort publishes a port that another process holds: the reload itself
// "succeeds". What was published with it goes live all the same.
func heldPort(t *testing.T, s *site) {
	listener := network.Listen(t, s.Name, ":2250")
	held := s.transport(t, "tcp", 22, 2250)
	free := s.transport(t, "tcp", 22, 2251)

	s.wantPass(t, 4)
	s.wantServed(t)
	if err := sayOnce("tcp", s.edge(2251), "in spite of all"); err != nil {
		t.Errorf("the port that came with the held one: %v", err)
	}
	if strings.Contains(s.Read(t, "/etc/nginx/nginx.conf"), "listen 2250;") {
		t.Error("what is on disk is not what runs")
	}
	s.wantQuarantined(t, "nginx", checkin.QuarantinedItem{Kind: checkin.KindStream, ID: held, Name: "tcp/2250", Reason: "Address already in use"})

	listener.Close()
	// It is tried again after a pause, without any change at the manager.
	wait.For(t, 40*time.Second, "the next try", func() error {
		if code := s.pass(t); code != 0 {
			return fmt.Errorf("the pass ended with %d", code)
		}
		return nil
	})
	if err := sayOnce("tcp", s.edge(2250), "after all"); err != nil {
		t.Errorf("once the port is free: %v", err)
	}
	s.manager.waitForReport(t, s.id, "nginx", checkin.ApplySuccess)
	s.manager.remove(t, fmt.Sprintf("/services/%d", held))
	s.manager.remove(t, fmt.Sprintf("/services/%d", free))
	s.wantPass(t, 0)
}

// lateCertificate publishes a service whose certificate is not there yet.
func lateCertificate(t *testing.T, s *site) {
	valid, until := lastMonthToNext()
	service := s.http(t, "docs", s.domainID(t, "late.test"), 8081)
	name := s.host("docs") + ".late.test"

	s.wantPass(t, 0)
	s.wantServed(t)
	shown, err := s.certificate(name)
	if err != nil || shown.Issuer.CommonName == s.authority.certificate.Subject.CommonName {
		t.Errorf("without a certificate of its own the domain shows %v, %v", shown, err)
	}
	wait.For(t, 5*time.Second, "the report of the missing certificate", func() error {
		return s.reportsCertificate("late.test", checkin.CertificateMissing, true)
	})

	s.putCertificate(t, "late.test", s.authority.issue(t, "late.test", 1003, valid, until))
	s.wantPass(t, 0)
	if err := s.serves(name, s.backend(8081)); err != nil {
		t.Errorf("with its certificate: %v", err)
	}
	wait.For(t, 5*time.Second, "the report of the certificate", func() error {
		return s.reportsCertificate("late.test", checkin.CertificateOK, false)
	})
	s.manager.remove(t, fmt.Sprintf("/services/%d", service))
	s.wantPass(t, 0)
}

// weakCertificate installs a pair that fits together and that nginx refuses
// all the same, which must not cost the other domains anything.
func weakCertificate(t *testing.T, s *site) {
	s.putCertificate(t, "weak.test", s.authority.issueWeak(t, "weak.test"))
	service := s.http(t, "weak", s.domainID(t, "weak.test"), 8081)
	s.wantPass(t, 0)
	s.wantServed(t)
	if err := s.reportsCertificate("weak.test", checkin.CertificateUnreadable, true); err != nil {
		t.Error(err)
	}
	s.manager.remove(t, fmt.Sprintf("/services/%d", service))
	s.wantPass(t, 0)
}

func (s *site) reportsCertificate(domain string, state checkin.CertificateState, fallback bool) error {
	agent, err := s.manager.agent(s.id)
	if err != nil {
		return err
	}
	if got := agent.Certificates[domain]; got.State != state || got.Fallback != fallback {
		return fmt.Errorf("it is reported as %+v", got)
	}
	return nil
}

// renewedCertificate renews in place, as ACME clients do: the manager knows
// nothing of it.
func renewedCertificate(t *testing.T, s *site) {
	valid, until := lastMonthToNext()
	s.putCertificate(t, "example.test", s.authority.issue(t, "example.test", 2002, valid, until))
	s.wantPass(t, 0)
	s.wantPass(t, 0)
	shown, err := s.certificate(s.app())
	if err != nil || shown.SerialNumber.Int64() != 2002 {
		t.Errorf("two passes after the renewal %v is shown, %v", shown.SerialNumber, err)
	}
}

// certificateOutsideItsTime: an agent whose clock is wrong takes good
// certificates for expired or not yet valid. It must not swap them.
func certificateOutsideItsTime(t *testing.T, s *site) {
	day := 24 * time.Hour
	now := time.Now()
	for serial, c := range map[int64]struct {
		name       string
		from, till time.Time
	}{
		3001: {"expired", now.Add(-60 * day), now.Add(-day)},
		3002: {"not yet valid", now.Add(day), now.Add(60 * day)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.putCertificate(t, "example.test", s.authority.issue(t, "example.test", serial, c.from, c.till))
			s.wantPass(t, 0)
			shown, err := s.certificate(s.app())
			if err != nil || shown.SerialNumber.Int64() != serial {
				t.Errorf("%v is shown, want %d; %v", shown.SerialNumber, serial, err)
			}
		})
	}
	valid, until := lastMonthToNext()
	s.putCertificate(t, "example.test", s.authority.issue(t, "example.test", 2003, valid, until))
	s.wantPass(t, 0)
	s.wantServed(t)
}

// dnsmasqReload: a new name is told to the running dnsmasq, a new range needs a
// restart, both at once need one.
func dnsmasqReload(t *testing.T, s *site) {
	process := func() string { return s.Property(t, "dnsmasq.service", "MainPID") }
	starts := func() int { return strings.Count(s.Journal("dnsmasq.service"), "Started dnsmasq.service") }
	container := func(name string, host int) int64 {
		return s.manager.create(t, fmt.Sprintf("/sites/%d/containers", s.id), object{
			"nodeId": s.node, "hostname": name, "ipv4Address": s.wires.Host(host).String(), "macAddress": fmt.Sprintf("02:00:00:00:01:%02x", host),
		})
	}
	before := process()
	first := container("first", 21)
	s.wantPass(t, 0)
	if process() != before {
		t.Error("a new container restarted dnsmasq")
	}
	if err := s.dig("first.lab.internal", "A", s.wires.Host(21).String()); err != nil {
		t.Error(err)
	}

	started := starts()
	second := container("second", 22)
	s.manager.change(t, fmt.Sprintf("/sites/%d", s.id), object{"dhcpRange": s.wires.Host(10).String() + "," + s.wires.Host(58).String()})
	s.wantPass(t, 0)
	if got := starts() - started; got != 1 {
		t.Errorf("a new container and a new range started dnsmasq %d times, want once", got)
	}
	if err := s.dig("second.lab.internal", "A", s.wires.Host(22).String()); err != nil {
		t.Error(err)
	}
	s.manager.change(t, fmt.Sprintf("/sites/%d", s.id), object{"dhcpRange": s.wires.Host(10).String() + "," + s.wires.Host(60).String()})
	for _, id := range []int64{first, second} {
		s.manager.remove(t, fmt.Sprintf("/containers/%d", id))
	}
	s.wantPass(t, 0)
}

// editedFile edits nginx.conf while the manager has nothing new.
func editedFile(t *testing.T, s *site) {
	running := s.Read(t, "/etc/nginx/nginx.conf")
	for name, edited := range map[string]string{
		"a line more": running + "# a line more\n",
		"broken":      "nonsense;\n",
		"emptied":     "",
	} {
		t.Run(name, func(t *testing.T) {
			s.Write(t, "/etc/nginx/nginx.conf", edited, 0o644)
			s.wantPass(t, 0)
			if s.Read(t, "/etc/nginx/nginx.conf") != running {
				t.Error("it was not restored")
			}
			s.wantServed(t)
		})
	}
}

// managerAway stops the manager for three passes, in which the site is kept in
// order all the same.
func managerAway(t *testing.T, s *site) {
	s.manager.Run(t, "systemctl", "stop", "opensource-manager.service")
	running := s.Read(t, "/etc/nginx/nginx.conf")
	s.Write(t, "/etc/nginx/nginx.conf", "nonsense;\n", 0o644)
	for range 3 {
		s.wantPass(t, 3)
		s.wantServed(t)
	}
	if s.Read(t, "/etc/nginx/nginx.conf") != running {
		t.Error("nginx.conf was not restored without the manager")
	}
	s.manager.Run(t, "systemctl", "start", "opensource-manager.service")
	back := time.Now()
	s.wantPass(t, 0)
	wait.For(t, 5*time.Second, "the agent to be seen again", func() error {
		var all []struct {
			SiteID     int64
			LastSeenAt time.Time
		}
		if err := s.manager.call("GET", "/agents", nil, &all); err != nil {
			return err
		}
		for _, a := range all {
			if a.SiteID == s.id && a.LastSeenAt.Before(back.Add(-time.Second)) {
				return fmt.Errorf("last seen at %v", a.LastSeenAt)
			}
		}
		return nil
	})
}

// connectionsSurvive keeps a TCP connection and a WebSocket open over the
// reload for another service.
func connectionsSurvive(t *testing.T, s *site) {
	tcp := s.dialTCP(t)
	socket := s.dialWebSocket(t)
	for i := range 3 {
		service := s.http(t, fmt.Sprintf("other%d", i), s.domain, 8081)
		s.wantPass(t, 0)
		if err := s.serves(fmt.Sprintf("%s.example.test", s.host(fmt.Sprintf("other%d", i))), s.backend(8081)); err != nil {
			t.Errorf("the new service: %v", err)
		}
		for name, open := range map[string]line{"TCP": tcp, "WebSocket": socket} {
			if err := open.say(fmt.Sprintf("after reload %d", i)); err != nil {
				t.Errorf("the %s connection did not survive: %v", name, err)
			}
		}
		s.manager.remove(t, fmt.Sprintf("/services/%d", service))
	}
	s.wantPass(t, 0)
}

func (s *site) dialTCP(t testing.TB) line {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.edge(2201), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	l := line{conn, bufio.NewReader(conn)}
	if err := l.say("hello"); err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *site) dialWebSocket(t testing.TB) line {
	t.Helper()
	config := &tls.Config{ServerName: s.app(), RootCAs: s.authority.pool, NextProtos: []string{"http/1.1"}}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", s.edge(443), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: "+s.app()+"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	l := line{conn, bufio.NewReader(conn)}
	response, err := http.ReadResponse(l.reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %v, %v", response, err)
	}
	if err := l.say("hello"); err != nil {
		t.Fatal(err)
	}
	return l
}
