//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"html"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/wait"
)

// The causes of the faults below lie outside of what the agent looks at: nothing
// tells it when they are gone.
const (
	wikiOptions     = "/etc/nginx/wiki.conf"        // a file that is not there yet
	clientAuthority = "/etc/ssl/clients.pem"        // the same
	ldapOptions     = "/etc/dnsmasq.ldap.conf"      // the same
	printerDropIn   = "/etc/dnsmasq.d/printer.conf" // an address that is reserved by hand
)

const templateFolder = "/etc/opensource-agent/templates/"

// reportTimeout is how long the manager may take to show what it was told.
const reportTimeout = 5 * time.Second

// badRecord is a record that nginx or dnsmasq refuses.
type badRecord struct {
	service    string // whose program it is
	kind, name string // as the manager shows it
	words      string // of the program
	kept       bool   // what it was before stays in force
	// inForce returns an error unless it is served as it is wanted.
	inForce func() error
}

// quarantine publishes records of every kind that the real nginx and dnsmasq
// refuse, with good ones beside them.
func quarantine(t *testing.T, s *site) {
	public := func(name string) string { return s.host(name) + ".example.test" }
	s.refuseSome(t, public)
	shop, blog := s.http(t, "shop", s.domain, 8080), s.http(t, "blog", s.domain, 8080)
	radio := s.addContainer(t, "radio", 29, true)
	s.wantPass(t, 0)

	s.manager.change(t, fmt.Sprintf("/services/%d", shop), object{"internalPort": 8081})
	s.manager.change(t, fmt.Sprintf("/containers/%d", radio), object{"macAddress": mac(0xbb)})
	wiki, news := s.http(t, "wiki", s.domain, 8080), s.http(t, "news", s.domain, 8080)
	ldap, imap := s.srv(t, "_ldap._tcp", 389), s.srv(t, "_imap._tcp", 143)
	containers := []int64{radio, s.addContainer(t, "printer", 26, true), s.addContainer(t, "fridge", 27, true), s.addContainer(t, "scanner", 28, false)}
	nodes := []int64{s.addNode(t, "pve2", 4), s.addNode(t, "pve3", 5), s.addNode(t, "pve4", 6)}
	lasting := []badRecord{
		{
			service: "nginx", kind: checkin.KindHTTP, name: public("wiki"), words: "open() \"" + wikiOptions + "\" failed",
			inForce: func() error { return s.serves(public("wiki"), s.backend(8080)) },
		},
		{ // of this one nginx names no line
			service: "nginx", kind: checkin.KindHTTP, name: public("shop"), words: clientAuthority, kept: true,
			inForce: func() error { return s.serves(public("shop"), s.backend(8081)) },
		},
		{
			service: "dnsmasq", kind: checkin.KindReservation, name: "printer", words: "duplicate dhcp-host IP address " + s.wires.Host(26).String(),
			inForce: func() error { return s.reserves(mac(26), 26) },
		},
		{ // of this one dnsmasq names no line
			service: "dnsmasq", kind: checkin.KindSRV, name: "_ldap._tcp", words: "cannot read " + ldapOptions,
			inForce: func() error { return s.dig("_ldap._tcp.lab.internal", "SRV", "0 0 389 web.lab.internal.") },
		},
	}
	all := append(lasting,
		badRecord{
			service: "dnsmasq", kind: checkin.KindHost, name: "scanner", words: "bad address",
			inForce: func() error { return s.dig("scanner.lab.internal", "A", s.wires.Host(28).String()) },
		},
		badRecord{
			service: "dnsmasq", kind: checkin.KindReservation, name: "radio", words: "bad hex constant", kept: true,
			inForce: func() error { return s.reserves(mac(0xbb), 29) },
		})
	wantGood := func(newsPort int) {
		t.Helper()
		s.wantServed(t)
		for _, err := range []error{
			s.serves(public("blog"), s.backend(8080)),
			s.serves(public("news"), s.backend(newsPort)),
			s.dig("web.lab.internal", "A", s.webAddress.String()),
			s.dig("fridge.lab.internal", "A", s.wires.Host(27).String()),
			s.dig("_sip._tcp.lab.internal", "SRV", "0 0 5060 web.lab.internal."),
			s.dig("_imap._tcp.lab.internal", "SRV", "0 0 143 web.lab.internal."),
			s.reserves(mac(27), 27),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	}

	t.Run("the others go live", func(t *testing.T) {
		s.wantPass(t, 4)
		wantGood(8080)
		s.wantLeftOut(t, all)
		if err := errors.Join(s.serves(public("shop"), s.backend(8080)), s.reserves(mac(29), 29)); err != nil {
			t.Errorf("what was there before: %v", err)
		}
		if err := s.leases(t, "fridge", 27); err != nil {
			t.Error(err)
		}
	})
	t.Run("and are changed further", func(t *testing.T) {
		s.manager.change(t, fmt.Sprintf("/services/%d", news), object{"internalPort": 8081})
		s.wantPass(t, 4)
		wantGood(8081)
		s.wantLeftOut(t, all)
	})
	t.Run("mended templates are tried at once", func(t *testing.T) {
		s.Run(t, "rm", templateFolder+"dnsmasq/hosts.tmpl", templateFolder+"dnsmasq/dhcp-hosts.tmpl")
		s.wantPass(t, 4)
		wantGood(8081)
		s.wantLeftOut(t, lasting)
	})
	t.Run("the rest heals by itself", func(t *testing.T) {
		before := s.loads(t)
		s.Run(t, "cp", "/etc/ssl/certs/ssl-cert-snakeoil.pem", clientAuthority)
		s.Write(t, wikiOptions, "# none\n", 0o644)
		s.Write(t, ldapOptions, "# none\n", 0o644)
		s.Run(t, "rm", printerDropIn)
		s.Run(t, "systemctl", "restart", "dnsmasq.service")
		wait.For(t, passInterval, "a pass in which nothing is refused", func() error {
			if code := s.pass(t); code != 0 {
				return fmt.Errorf("the pass ended with %d", code)
			}
			return nil
		})
		wantGood(8081)
		s.wantLeftOut(t, nil)
		for _, record := range all {
			if err := record.inForce(); err != nil {
				t.Errorf("%s %s: %v", record.kind, record.name, err)
			}
		}
		if err := s.leases(t, "printer", 26); err != nil {
			t.Error(err)
		}
		if after := s.loads(t); after["nginx"] != before["nginx"]+1 || after["dnsmasq"] != before["dnsmasq"]+2 {
			t.Errorf("loads were %v, are %v: want one more of nginx, and of dnsmasq one besides the restart by hand", before, after)
		}
	})

	s.Run(t, "rm", "-r", templateFolder+"nginx", templateFolder+"dnsmasq", wikiOptions, clientAuthority, ldapOptions)
	for _, id := range []int64{shop, blog, wiki, news, ldap, imap} {
		s.manager.remove(t, fmt.Sprintf("/services/%d", id))
	}
	for _, id := range containers {
		s.manager.remove(t, fmt.Sprintf("/containers/%d", id))
	}
	for _, id := range nodes {
		s.manager.remove(t, fmt.Sprintf("/nodes/%d", id))
	}
	s.wantPass(t, 0)
}

// refuseSome makes nginx and dnsmasq refuse some records that come later. An
// administrator gets it wrong in every way there is: templates that ask for
// files that are not there, templates that are wrong, and a reservation by hand
// of an address that the manager gives away too.
func (s *site) refuseSome(t *testing.T, public func(string) string) {
	t.Helper()
	s.override(t, "nginx/http-service.tmpl", "server_name {{.Name}};", `server_name {{.Name}};
{{- if eq .Name "`+public("wiki")+`"}}
        include `+wikiOptions+`;
{{- end}}
{{- if and (eq .Name "`+public("shop")+`") (eq .Upstream "http://`+s.webAddress.String()+`:8081")}}
        ssl_client_certificate `+clientAuthority+`;
        ssl_verify_client optional;
{{- end}}`)
	s.override(t, "dnsmasq/dnsmasq.conf.tmpl", "{{.Target}},{{.Port}}", `{{.Target}},{{.Port}}
{{- if eq .Name "_ldap._tcp.lab.internal"}}
conf-file=`+ldapOptions+`
{{- end}}`)
	s.override(t, "dnsmasq/hosts.tmpl", "{{.Address}}", `{{.Address}}{{if eq .Name "scanner"}}.1{{end}}`)
	s.override(t, "dnsmasq/dhcp-hosts.tmpl", "{{.MAC}}", `{{if eq .MAC "`+mac(0xbb)+`"}}nonsense:{{end}}{{.MAC}}`)
	// It is looked for in a log that is full of other things.
	s.Write(t, printerDropIn, "log-queries=extra\ndhcp-host=02:00:00:00:02:01,"+s.wires.Host(26).String()+"\n", 0o644)
	s.Run(t, "systemctl", "restart", "dnsmasq.service")
}

// override takes a template into the administrator's own hands, with something
// in it replaced.
func (s *site) override(t *testing.T, name, before, after string) {
	t.Helper()
	original := s.Read(t, "/usr/share/opensource-agent/templates/"+name)
	changed := strings.Replace(original, before, after, 1)
	if changed == original {
		t.Fatalf("%q is not in %s", before, name)
	}
	s.Write(t, templateFolder+name, changed, 0o644)
}

func (s *site) addNode(t *testing.T, name string, host int) int64 {
	t.Helper()
	return s.manager.create(t, fmt.Sprintf("/sites/%d/nodes", s.id), object{"name": name, "ipv4Address": s.wires.Host(host).String()})
}

// addContainer adds a container with an address and, if it is reserved, a
// network card.
func (s *site) addContainer(t *testing.T, name string, host int, reserved bool) int64 {
	t.Helper()
	container := object{"nodeId": s.node, "hostname": name, "ipv4Address": s.wires.Host(host).String()}
	if reserved {
		container["macAddress"] = mac(host)
	}
	return s.manager.create(t, fmt.Sprintf("/sites/%d/containers", s.id), container)
}

func mac(host int) string { return fmt.Sprintf("02:00:00:00:01:%02x", host) }

func (s *site) srv(t *testing.T, name string, port int) int64 {
	t.Helper()
	return s.service(t, object{"type": "dns", "recordType": "SRV", "dnsName": name, "internalPort": port})
}

// leases returns an error unless the container of that name, started now, gets
// its address.
func (s *site) leases(t *testing.T, name string, host int) error {
	t.Helper()
	namespace := name + "-" + strings.TrimPrefix(s.Name, "edge-")
	s.wires.Plug(t, namespace, netip.Addr{}, mac(host))
	lease, err := takeLease(t, namespace)
	if want := "address=" + s.wires.Host(host).String() + " "; err == nil && !strings.Contains(lease, want) {
		err = fmt.Errorf("%s got the lease %q, want %s", name, lease, want)
	}
	return err
}

// reserves returns an error unless a card has an address in the file that
// dnsmasq reads.
func (s *site) reserves(mac string, host int) error {
	content, err := os.ReadFile(s.Path("/var/lib/dnsmasq/dhcp-hosts"))
	if line := "\n" + mac + "," + s.wires.Host(host).String() + ","; err == nil && !strings.Contains(string(content), line) {
		err = fmt.Errorf("no reservation of %q in\n%s", line, content)
	}
	return err
}

// loads counts how often nginx and dnsmasq were told to load their files.
func (s *site) loads(t *testing.T) map[string]int {
	t.Helper()
	nginx, dnsmasq := s.Journal("nginx.service"), s.Journal("dnsmasq.service")
	return map[string]int{
		"nginx":   strings.Count(nginx, "Reloaded nginx.service") + strings.Count(nginx, "Started nginx.service"),
		"dnsmasq": strings.Count(dnsmasq, "Started dnsmasq.service"),
	}
}

// wantLeftOut wants the manager to show just these records as left out, with
// the words of the program that refuses them.
func (s *site) wantLeftOut(t *testing.T, bad []badRecord) {
	t.Helper()
	wait.For(t, reportTimeout, "what is left out", func() error {
		agent, err := s.manager.agent(s.id)
		if err != nil {
			return err
		}
		return errors.Join(checkLeftOut("nginx", agent.Services["nginx"], bad), checkLeftOut("dnsmasq", agent.Services["dnsmasq"], bad))
	})
	page := html.UnescapeString(s.manager.agentPage(t, s.id))
	for _, record := range bad {
		if !strings.Contains(page, record.name) || !strings.Contains(page, record.words) {
			t.Errorf("the agent's page does not say %s of %s", record.words, record.name)
		}
		if record.inForce() == nil {
			t.Errorf("%s %s is in force", record.kind, record.name)
		}
	}
}

// checkLeftOut compares a report with what is to be left out of a service.
func checkLeftOut(service string, report checkin.ServiceReport, bad []badRecord) error {
	want := map[string]badRecord{}
	for _, record := range bad {
		if record.service == service {
			want[record.kind+" "+record.name] = record
		}
	}
	lastApply := checkin.ApplySuccess
	if len(want) > 0 {
		lastApply = checkin.ApplyFailure
	}
	if report.LastApply != lastApply || len(report.Quarantined) != len(want) {
		return fmt.Errorf("%s is reported as %+v, want %s with %d records left out", service, report, lastApply, len(want))
	}
	for _, item := range report.Quarantined {
		record, bad := want[item.Kind+" "+item.Name]
		if !bad || item.KeptPrevious != record.kept || !strings.Contains(item.Reason, record.words) {
			return fmt.Errorf("%s is reported with %+v, want %+v", service, item, record)
		}
	}
	return nil
}

// heldPort publishes a port that another process holds: nginx finds nothing
// wrong with it in its test, and the reload itself "succeeds".
func heldPort(t *testing.T, s *site) {
	listener := network.Listen(t, s.Name, ":2250")
	go hangUp(listener)
	held, other := s.transport(t, "tcp", 22, 2250), s.transport(t, "tcp", 22, 2251)
	busy := badRecord{
		service: "nginx", kind: checkin.KindStream, name: "tcp/2250", words: "bind() to 0.0.0.0:2250 failed (98: Address already in use)",
		inForce: func() error { return sayOnce("tcp", s.edge(2250), "at last") },
	}

	s.wantPass(t, 4)
	s.wantServed(t)
	for _, port := range []int{2201, 2251} {
		if err := sayOnce("tcp", s.edge(port), "hello"); err != nil {
			t.Error(err)
		}
	}
	s.wantLeftOut(t, []badRecord{busy})

	listener.Close()
	s.letTimePass(t, firstPause)
	s.wantPass(t, 0)
	if err := busy.inForce(); err != nil {
		t.Errorf("once the port is free: %v", err)
	}
	s.wantLeftOut(t, nil)

	// As after a boot, the other process has it before nginx, which does not start
	// then.
	s.Run(t, "systemctl", "stop", "nginx.service")
	listener = network.Listen(t, s.Name, ":2250")
	go hangUp(listener)
	s.wantPass(t, 4)
	s.wantServed(t)
	s.wantLeftOut(t, []badRecord{busy})

	listener.Close()
	s.manager.remove(t, fmt.Sprintf("/services/%d", held))
	s.manager.remove(t, fmt.Sprintf("/services/%d", other))
	s.wantPass(t, 0)
}

// hangUp takes connections and ends them at once.
func hangUp(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		conn.Close()
	}
}
