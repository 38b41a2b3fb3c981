//go:build e2e

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/e2e/internal/machine"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/wait"
)

// passInterval is the longest an administrator waits for the timer.
const passInterval = 35 * time.Second

// site is a site with one node and one container, its agent's machine, and
// the ids of what the manager knows about it.
type site struct {
	*machine.Machine
	manager   *manager
	authority *authority
	wires     network.Switch
	whole     testing.TB // the test that the site lives as long as

	id, node, web int64
	domain        int64 // of example.test
	webAddress    netip.Addr
}

// step is one test on a site. Later ones build on what earlier ones set up.
type step struct {
	name string
	run  func(*testing.T, *site)
}

// TestSites installs the manager once and the agent on both releases of
// Debian. The first steps are the way of every site. Each of the others runs on
// one of the releases, unless it is about what differs between them.
func TestSites(t *testing.T) {
	t.Parallel()
	m := bootManager(t)
	m.create(t, "/external-domains", object{"name": "example.test"}) // of both sites
	first := []step{
		{"first check-in", firstCheckIn},
		{"first configuration", firstConfiguration},
	}
	t.Run("trixie", func(t *testing.T) {
		t.Parallel()
		s := bootSite(t, m, machine.Debian13, "198.51.100.0/25")
		s.runSteps(t, append(first, []step{
			{"records that are refused", quarantine},
			{"a port that somebody else holds", heldPort},
			{"a drop-in that is broken", brokenDropIn},
			{"files edited by hand", editedFiles},
			{"a service that somebody holds", heldService},
			{"a mass removal", massRemoval(confirmByAPI)},
			{"a clone", clone},
			{"another host name", renamed},
			{"a wrong clock", wrongClock},
			{"the manager away for three passes", managerAway},
			{"volumes", volumes},
			{"check", check},
			{"a support archive", supportArchive},
			{"killed at any point of an apply", killed},
		}...))
	})
	t.Run("bookworm", func(t *testing.T) {
		t.Parallel()
		s := bootSite(t, m, machine.Debian12, "198.51.100.128/25")
		s.runSteps(t, append(first, []step{
			{"records that are refused", quarantine},
			{"disks that are full or in the way", troubledDisks},
			{"a certificate that appears later", lateCertificate},
			{"a certificate that nginx refuses", weakCertificate},
			{"a certificate renewed in place", renewedCertificate},
			{"a certificate outside its time", certificateOutsideItsTime},
			{"dnsmasq is restarted only when it must be", dnsmasqReload},
			{"a mass removal that is confirmed in a browser", massRemoval(confirmInBrowser)},
			{"connections survive a reload", connectionsSurvive},
			{"volumes", volumes},
			{"killed at any point of an apply", killed},
		}...))
	})
}

// runSteps runs the steps in order and shows the agent's journal after one
// that failed. Without the first two nothing else makes sense.
func (s *site) runSteps(t *testing.T, steps []step) {
	for i, step := range steps {
		passed := t.Run(step.name, func(t *testing.T) {
			before := time.Now()
			defer func() {
				if t.Failed() {
					t.Logf("journal:\n%s", s.journalSince(before))
				}
			}()
			step.run(t, s)
		})
		if !passed && i < 2 {
			t.Fatal("the site did not get this far")
		}
	}
}

func (s *site) journalSince(start time.Time) string {
	out, _ := s.Try("journalctl", "--no-pager", "--output=short-precise", "--since=@"+strconv.FormatInt(start.Unix(), 10))
	return out
}

// bootSite describes a site to the manager and boots the machine of its agent.
func bootSite(t *testing.T, m *manager, suite machine.Suite, subnet string) *site {
	name := "edge-" + string(suite[:4])
	wires := network.NewSwitch(t, string(suite[:4]), subnet)
	wires.Plug(t, name, wires.Host(2), "")
	s := &site{
		manager: m, authority: newAuthority(t), wires: wires, whole: t, webAddress: wires.Host(20),
		Machine: machine.Boot(t, name, machine.Options{Suite: suite, Namespace: name}),
	}
	s.id = m.create(t, "/sites", object{
		"name": string(suite), "internalDomain": "lab.internal",
		"dhcpRange":  wires.Host(10).String() + "," + wires.Host(60).String(),
		"subnetMask": "255.255.255.128", "gateway": wires.Gateway.String(), "dnsForwarders": wires.Gateway.String(),
	})
	return s
}

// firstCheckIn installs the package, gives it three settings and waits for the
// real timer.
func firstCheckIn(t *testing.T, s *site) {
	s.Install(t, deb(t, "opensource-agent"))
	key := strings.TrimSpace(s.manager.Run(t, "opensource-manager", "apikey", "create", "--role", "agent", "--site", strconv.FormatInt(s.id, 10)))
	s.Write(t, "/etc/opensource-agent/agent.env",
		fmt.Sprintf("SITE_ID=%d\nMANAGER_URL=%s\nAPI_KEY=%s\n", s.id, s.manager.URL, key), 0o640)

	wait.For(t, 60*time.Second, "the first check-in", func() error {
		_, err := s.manager.agent(s.id)
		return err
	})
	agent, _ := s.manager.agent(s.id)
	if agent.Hostname != s.Name || agent.Status != "online" {
		t.Errorf("the agent is %s, %s", agent.Hostname, agent.Status)
	}
	if page := s.manager.page(t); !strings.Contains(page, s.Name) {
		t.Errorf("/agents does not show %s:\n%s", s.Name, page)
	}
	if listed, _ := s.Try("ps", "-eo", "args"); strings.Contains(listed, key) {
		t.Error("the key is visible to every user of the machine")
	}
	if strings.Contains(s.Journal("opensource-agent.service"), key) {
		t.Error("the key is in the journal")
	}
}

// firstConfiguration describes a container with every kind of service and
// uses each of them as its users would.
func firstConfiguration(t *testing.T, s *site) {
	const mac = "02:00:00:00:00:14"
	valid, until := lastMonthToNext()
	s.putCertificate(t, "example.test", s.authority.issue(t, "example.test", 1001, valid, until))

	s.node = s.manager.create(t, fmt.Sprintf("/sites/%d/nodes", s.id), object{"name": "pve1", "ipv4Address": s.wires.Host(3).String()})
	s.web = s.manager.create(t, fmt.Sprintf("/sites/%d/containers", s.id), object{
		"nodeId": s.node, "hostname": "web", "owner": "alice", "ipv4Address": s.webAddress.String(), "macAddress": mac,
	})
	s.domain = s.domainID(t, "example.test")
	s.http(t, "app", s.domain, 8080)
	app := s.host("app") + ".example.test"
	s.transport(t, "tcp", 22, 2201)
	s.transport(t, "udp", 5060, 2202)
	s.service(t, object{"type": "dns", "recordType": "SRV", "dnsName": "_sip._tcp", "internalPort": 5060})

	// A container that starts before its reservation is there gets another
	// address, as anywhere.
	wait.For(t, passInterval, "the name of the container", func() error { return s.dig("web.lab.internal", "A", s.webAddress.String()) })
	s.plugContainer(t, mac)
	s.serveContainer()

	t.Run("HTTPS with curl", func(t *testing.T) {
		wait.For(t, passInterval, "the first page", func() error { return s.serves(app, s.backend(8080)) })
		body, err := s.curl(app, "/")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"host=" + app, "proto=https", "for=" + s.wires.Gateway.String()} {
			if !strings.Contains(body, want) {
				t.Errorf("the backend was not told %s: %s", want, body)
			}
		}
	})
	t.Run("TCP", func(t *testing.T) {
		wait.For(t, passInterval, "an echo", func() error { return sayOnce("tcp", s.edge(2201), "hello") })
	})
	t.Run("UDP", func(t *testing.T) {
		wait.For(t, passInterval, "an echo", func() error { return sayOnce("udp", s.edge(2202), "hello") })
	})
	t.Run("DNS with dig", func(t *testing.T) {
		for _, query := range []struct{ name, kind, want string }{
			{"web.lab.internal", "A", s.webAddress.String()},
			{"pve1.lab.internal", "A", s.wires.Host(3).String()},
			{"_sip._tcp.lab.internal", "SRV", "0 0 5060 web.lab.internal."},
			{"localhost", "A", "127.0.0.1"},
		} {
			wait.For(t, passInterval, query.name, func() error { return s.dig(query.name, query.kind, query.want) })
		}
	})
	t.Run("what the manager shows", func(t *testing.T) {
		for _, service := range []string{"nginx", "dnsmasq"} {
			report := s.manager.waitForReport(t, s.id, service, checkin.ApplySuccess)
			if report.State != "active" {
				t.Errorf("%s is %s", service, report.State)
			}
		}
		if agent, _ := s.manager.agent(s.id); agent.Running == nil || agent.Running.ETag == "" {
			t.Errorf("the agent does not say what runs: %+v", agent.Running)
		}
	})
	t.Run("a pass with nothing to do", func(t *testing.T) {
		s.stopTimer(t)
		s.wantPass(t, 0)
		lines := func() int {
			return strings.Count(s.Journal("nginx.service")+s.Journal("dnsmasq.service"), "\n")
		}
		before := lines()
		s.wantPass(t, 0)
		if after := lines(); after != before {
			t.Errorf("nginx and dnsmasq logged %d lines: they were reloaded", after-before)
		}
	})
}

// plugContainer makes the container's network and lets it ask for its address.
func (s *site) plugContainer(t testing.TB, mac string) {
	t.Helper()
	s.wires.Plug(s.whole, s.container(), netip.Addr{}, mac)
	var lease string
	wait.For(t, passInterval, "a lease", func() (err error) {
		lease, err = takeLease(t, s.container())
		return err
	})
	for _, want := range []string{"address=" + s.webAddress.String() + " ", "router=" + s.wires.Gateway.String() + " ", "domain=lab.internal "} {
		if !strings.Contains(lease, want) {
			t.Errorf("the lease lacks %s: %s", want, lease)
		}
	}
}

// serveContainer opens what runs in the container.
func (s *site) serveContainer() {
	for _, port := range []int{8080, 8081} {
		serveHTTP(s.whole, s.container(), net.JoinHostPort(s.webAddress.String(), strconv.Itoa(port)))
	}
	serveTCP(s.whole, s.container(), s.webAddress.String()+":22")
	serveUDP(s.whole, s.container(), s.webAddress.String()+":5060")
}

// container is the network namespace of the site's container.
func (s *site) container() string { return "web-" + strings.TrimPrefix(s.Name, "edge-") }

// edge is a port of the agent's machine, as the world sees it.
func (s *site) edge(port int) string {
	return net.JoinHostPort(s.wires.Host(2).String(), strconv.Itoa(port))
}

// domainID returns the id of an external domain, made if it is not there yet:
// sites share them.
func (s *site) domainID(t testing.TB, name string) int64 {
	t.Helper()
	var all []struct {
		ID   int64
		Name string
	}
	if err := s.manager.call("GET", "/external-domains", nil, &all); err != nil {
		t.Fatal(err)
	}
	for _, domain := range all {
		if domain.Name == name {
			return domain.ID
		}
	}
	return s.manager.create(t, "/external-domains", object{"name": name})
}

// service gives the container a service.
func (s *site) service(t testing.TB, body object) int64 {
	t.Helper()
	return s.manager.create(t, fmt.Sprintf("/containers/%d/services", s.web), body)
}

func (s *site) http(t testing.TB, hostname string, domain int64, port int) int64 {
	t.Helper()
	return s.service(t, object{
		"type": "http", "internalPort": port, "externalHostname": s.host(hostname), "externalDomainId": domain, "backendProtocol": "http",
	})
}

func (s *site) transport(t testing.TB, protocol string, internal, external int) int64 {
	t.Helper()
	return s.service(t, object{"type": "transport", "protocol": protocol, "internalPort": internal, "externalPort": external})
}

// host makes a name unique among sites, which share domains.
func (s *site) host(name string) string { return name + "-" + strings.TrimPrefix(s.Name, "edge-") }

// putCertificate installs a pair where the agent looks for a domain's.
func (s *site) putCertificate(t testing.TB, domain string, p pair) {
	t.Helper()
	s.Write(t, "/etc/ssl/private/"+domain+".key", p.key, 0o600)
	s.Write(t, "/etc/ssl/certs/"+domain+".crt", p.certificate, 0o644)
}

// curl gets a page of a name of this site through the agent's nginx.
func (s *site) curl(name, path string) (string, error) {
	out, err := exec.Command("curl", "--silent", "--show-error", "--fail", "--max-time", "5", "--cacert", s.authority.file,
		"--resolve", name+":443:"+s.wires.Host(2).String(), "https://"+name+path).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("curl %s: %w: %s", name, err, out)
	}
	return string(out), nil
}

// serves wants the page of a name to contain something.
func (s *site) serves(name, want string) error {
	body, err := s.curl(name, "/")
	if err == nil && !strings.Contains(body, want) {
		err = fmt.Errorf("%s serves %q, want %q", name, body, want)
	}
	return err
}

// backend is what the container's server on a port says first.
func (s *site) backend(port int) string { return fmt.Sprintf("backend %s:%d ", s.webAddress, port) }

// certificate returns what nginx shows for a name, without judging it.
func (s *site) certificate(name string) (*x509.Certificate, error) {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	conn, err := tls.DialWithDialer(dialer, "tcp", s.edge(443), &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// dig asks the agent's dnsmasq, as a client of the site does.
func (s *site) dig(name, kind, want string) error {
	out, err := exec.Command("dig", "+short", "+time=2", "+tries=1", "@"+s.wires.Host(2).String(), name, kind).CombinedOutput()
	if err != nil {
		return fmt.Errorf("dig %s: %w: %s", name, err, out)
	}
	if got := strings.TrimSpace(string(out)); got != want {
		return fmt.Errorf("%s %s is %q, want %q", name, kind, got, want)
	}
	return nil
}

// stopTimer leaves passes to the test.
func (s *site) stopTimer(t testing.TB) {
	t.Helper()
	s.Run(t, "systemctl", "stop", "opensource-agent.timer")
	wait.For(t, passInterval, "the last pass of the timer to end", func() error {
		if state := s.Property(t, "opensource-agent.service", "ActiveState"); state == "activating" {
			return errors.New(state)
		}
		return nil
	})
}

// pass runs one pass as the timer does and returns its exit code.
func (s *site) pass(t testing.TB) int {
	t.Helper()
	_, _ = s.Try("systemctl", "start", "opensource-agent.service")
	code, err := strconv.Atoi(s.Property(t, "opensource-agent.service", "ExecMainStatus"))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// wantPass runs one pass and wants it to end with a code.
func (s *site) wantPass(t testing.TB, want int) {
	t.Helper()
	if got := s.pass(t); got != want {
		t.Errorf("the pass ended with %d, want %d", got, want)
	}
}
