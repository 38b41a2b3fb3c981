//go:build e2e

package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
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

// managerAway takes the way to the manager away for three passes, in which the
// site is kept in order all the same.
func managerAway(t *testing.T, s *site) {
	route := func(what string) {
		if out, err := network.Output(s.Name, "ip", "route", what, "unreachable", s.manager.address); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	route("add")
	running := s.Read(t, "/etc/nginx/nginx.conf")
	s.Write(t, "/etc/nginx/nginx.conf", "nonsense;\n", 0o644)
	for range 3 {
		s.wantPass(t, 3)
		s.wantServed(t)
	}
	if s.Read(t, "/etc/nginx/nginx.conf") != running {
		t.Error("nginx.conf was not restored without the manager")
	}
	route("del")
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
