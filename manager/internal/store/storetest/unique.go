package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

func testConflicts(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	container := func(change func(*inventory.Container)) error {
		c := inventory.Container{NodeID: w.Node.ID, Hostname: "other"}
		change(&c)
		_, err := s.CreateContainer(ctx, w.Site.ID, c)
		return err
	}
	service := func(wanted inventory.Service) error {
		_, err := s.CreateService(ctx, w.Container.ID, wanted)
		return err
	}
	volume := func(name, mount string) error {
		_, err := s.CreateVolume(ctx, w.Container.ID, inventory.Volume{Name: name, MountPath: mount, Mode: "ro"})
		return err
	}
	_, sameSite := s.CreateSite(ctx, inventory.Site{Name: "SITE1"})
	_, sameDomain := s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "EXAMPLE1.com."})
	tests := []struct {
		name, field, holder string
		err                 error
	}{
		{"site", "name", `site "site1"`, sameSite},
		{"domain", "name", `external domain "example1.com"`, sameDomain},
		{"hostname", "hostname", `container "web"`, container(func(c *inventory.Container) { c.Hostname = "Web" })},
		{"address", "ipv4Address", `container "web"`, container(func(c *inventory.Container) { c.IPv4Address = "192.0.2.101" })},
		{"node's address", "ipv4Address", `node "pve1"`, container(func(c *inventory.Container) { c.IPv4Address = "192.0.2.10" })},
		{"mac", "macAddress", `container "web"`, container(func(c *inventory.Container) { c.MACAddress = "02-00-00-00-00-01" })},
		{"http", "externalHostname", `container "web"`, service(inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: "APP", ExternalDomainID: &w.Domain.ID})},
		{"transport", "externalPort", `container "web"`, service(inventory.Service{Type: "transport", InternalPort: 1, Protocol: "tcp", ExternalPort: w.Transport.ExternalPort})},
		{"dns", "dnsName", `dns service "_sip._tcp"`, service(inventory.Service{Type: "dns", InternalPort: 5060, DNSName: "_SIP._tcp"})},
		{"volume name", "name", `volume "data"`, volume("Data", "/else")},
		{"mount path", "mountPath", `volume "data"`, volume("else", "/data")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conflict := wantConflict(t, test.err, test.field)
			if diff := cmp.Diff([]string{test.holder}, conflict.Holders); diff != "" {
				t.Error(diff)
			}
		})
	}
	// The same in another site, or with another protocol, is no conflict.
	NewWorld(t, s, 2)
	if err := service(inventory.Service{Type: "transport", InternalPort: 1, Protocol: "udp", ExternalPort: w.Transport.ExternalPort}); err != nil {
		t.Error(err)
	}
	// Deleting frees the name.
	if err := s.DeleteService(ctx, w.HTTP.ID); err != nil {
		t.Fatal(err)
	}
	if err := service(inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: "app", ExternalDomainID: &w.Domain.ID}); err != nil {
		t.Error(err)
	}
}

func testNameSpace(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	_, err := s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: "Web"})
	if conflict := wantConflict(t, err, "name"); conflict.Holders[0] != `container "web"` {
		t.Error(conflict.Holders)
	}
	_, err = s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: "pve1"})
	if conflict := wantConflict(t, err, "hostname"); conflict.Holders[0] != `node "pve1"` {
		t.Error(conflict.Holders)
	}
	rename := func(name string) error {
		_, err := s.UpdateNode(ctx, w.Node.ID, func(n *inventory.Node) error { n.Name = name; return nil })
		return err
	}
	wantConflict(t, rename("web"), "name")
	if err := rename("pve2"); err != nil {
		t.Fatal(err)
	}
	must(s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: "pve1"}))(t)
	wantConflict(t, rename("pve1"), "name")
}

func testFullNames(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	service := func(host string, domain int64) error {
		_, err := s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: host, ExternalDomainID: &domain})
		return err
	}
	inner := must(s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "lab.example1.com"}))(t)
	if err := service("a.lab", w.Domain.ID); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, service("a", inner.ID), "externalHostname")
	wantConflict(t, service("lab", w.Domain.ID), "externalHostname")
	_, err := s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "app.example1.com"})
	wantConflict(t, err, "name")

	if err := service("b", inner.ID); err != nil {
		t.Fatal(err)
	}
	rename := func(id int64, name string) error {
		_, err := s.UpdateExternalDomain(ctx, id, func(d *inventory.ExternalDomain) error { d.Name = name; return nil })
		return err
	}
	wantConflict(t, rename(inner.ID, "example1.com"), "name")
	if err := service("b.other", w.Domain.ID); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, rename(inner.ID, "other.example1.com"), "name") // b.other.example1.com
	if err := rename(inner.ID, "example.net"); err != nil {
		t.Fatal(err)
	}
	if err := service("b.lab", w.Domain.ID); err != nil {
		t.Errorf("a name that was freed: %v", err)
	}
	wantInvalid(t, rename(w.Domain.ID, strings.Repeat(strings.Repeat("x", 49)+".", 5)+"com"), "name")
	long := strings.Repeat(strings.Repeat("x", 49)+".", 4) + strings.Repeat("x", 45)
	wantInvalid(t, service(long, w.Domain.ID), "externalHostname")
}

// testInternalNames: names of the site's DNS, whose domain may change later.
func testInternalNames(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	domainOf := func(length int) string { // four labels
		return strings.Repeat(strings.Repeat("d", 59)+".", 3) + strings.Repeat("d", length-180)
	}
	set := func(domain string) error {
		_, err := s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.InternalDomain = domain; return nil })
		return err
	}
	if err := set(domainOf(243)); err != nil { // 253 with _sip._tcp and the dot
		t.Error(err)
	}
	_, err := s.UpdateService(ctx, w.DNS.ID, func(service *inventory.Service) error { service.DNSName = "_sips._tcp"; return nil })
	wantInvalid(t, err, "dnsName")
	if err := set(domainOf(240)); err != nil {
		t.Fatal(err)
	}
	fits, tooLong := strings.Repeat("x", 12), strings.Repeat("x", 13)
	must(s.UpdateNode(ctx, w.Node.ID, func(n *inventory.Node) error { n.Name = fits; return nil }))(t)
	_, err = s.UpdateNode(ctx, w.Node.ID, func(n *inventory.Node) error { n.Name = tooLong; return nil })
	wantInvalid(t, err, "name")
	_, err = s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: tooLong})
	wantInvalid(t, err, "name")
	_, err = s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: tooLong})
	wantInvalid(t, err, "hostname")
	_, err = s.UpdateContainer(ctx, w.Container.ID, func(c *inventory.Container) error { c.Hostname = tooLong; return nil })
	wantInvalid(t, err, "hostname")
	_, err = s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "dns", InternalPort: 1, DNSName: "_servic._tcp.a"})
	wantInvalid(t, err, "dnsName")
	wantInvalid(t, set(domainOf(241)), "internalDomain") // the node
	if err := set(""); err != nil {
		t.Fatal(err)
	}
	must(s.UpdateContainer(ctx, w.Container.ID, func(c *inventory.Container) error { c.Hostname = tooLong; return nil }))(t)
	wantInvalid(t, set(domainOf(240)), "internalDomain")
}

// testOwnAuthServer: a service that needs a sign-in cannot be where people sign
// in, whichever of the two is changed last.
func testOwnAuthServer(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	authServer := func(url string) error {
		_, err := s.UpdateExternalDomain(ctx, w.Domain.ID, func(d *inventory.ExternalDomain) error { d.AuthServer = url; return nil })
		return err
	}
	change := func(to func(*inventory.Service)) error {
		_, err := s.UpdateService(ctx, w.HTTP.ID, func(service *inventory.Service) error { to(service); return nil })
		return err
	}
	must(s.UpdateService(ctx, w.HTTP.ID, func(service *inventory.Service) error { service.AuthRequired = true; return nil }))(t)
	for _, url := range []string{"http://app.example1.com", "https://APP.example1.com/", "https://app.example1.com:443"} {
		wantInvalid(t, authServer(url), "authServer")
	}
	for _, url := range []string{"http://app.example1.com:4180", "https://192.0.2.5", "http://sso.example1.com"} {
		if err := authServer(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	wantInvalid(t, change(func(service *inventory.Service) { service.ExternalHostname = "sso" }), "authRequired")
	_, err := s.CreateService(ctx, w.Container.ID, inventory.Service{
		Type: "http", InternalPort: 4180, ExternalHostname: "sso", ExternalDomainID: &w.Domain.ID, AuthRequired: true,
	})
	wantInvalid(t, err, "authRequired")
	// Published without a sign-in, the auth server is a service like any other.
	if err := change(func(service *inventory.Service) { service.ExternalHostname, service.AuthRequired = "sso", false }); err != nil {
		t.Fatal(err)
	}
	wantInvalid(t, change(func(service *inventory.Service) { service.AuthRequired = true }), "authRequired")
}

func testParallelCreates(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	for round := range 50 {
		host := fmt.Sprintf("h%d", round)
		oneWinner(t, "externalHostname", func(int) error {
			_, err := s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: host, ExternalDomainID: &w.Domain.ID})
			return err
		})
		oneWinner(t, "ipv4Address", func(competitor int) error {
			_, err := s.CreateContainer(ctx, w.Site.ID, inventory.Container{
				NodeID: w.Node.ID, Hostname: fmt.Sprintf("c%d-%d", round, competitor), IPv4Address: fmt.Sprintf("198.51.100.%d", round+1),
			})
			return err
		})
	}
}

// oneWinner lets two competitors, 0 and 1, create what only one may have.
func oneWinner(t *testing.T, field string, create func(competitor int) error) {
	t.Helper()
	errs := make([]error, 2)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = create(i) })
	}
	group.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("not exactly one won: %v, %v", errs[0], errs[1])
	}
	wantConflict(t, errors.Join(errs...), field)
}

func testPorts(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	if w.Transport.ExternalPort != 2000 {
		t.Errorf("first port is %d", w.Transport.ExternalPort)
	}
	setRange := func(ports string) {
		t.Helper()
		must(s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.PortRange = ports; return nil }))(t)
	}
	create := func(protocol string, port int) (store.Service, error) {
		return s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "transport", InternalPort: 22, Protocol: protocol, ExternalPort: port})
	}
	setRange("2999-3003") // 3000 is reserved, 3001 is the manager's own
	var got []int
	for range 3 {
		got = append(got, must(create("tcp", 0))(t).ExternalPort)
	}
	if diff := cmp.Diff([]int{2999, 3002, 3003}, got); diff != "" {
		t.Error(diff)
	}
	_, err := create("tcp", 0)
	if conflict := wantConflict(t, err, "externalPort"); !strings.Contains(conflict.Message, "2999-3003") {
		t.Error(conflict.Message)
	}
	if udp := must(create("udp", 0))(t); udp.ExternalPort != 2999 {
		t.Errorf("udp got %d", udp.ExternalPort)
	}
	setRange("65535-65535")
	if last := must(create("tcp", 0))(t); last.ExternalPort != 65535 {
		t.Errorf("got %d", last.ExternalPort)
	}
	_, err = create("tcp", 0)
	wantConflict(t, err, "externalPort")
	for _, port := range []int{22, 53, 67, 68, 80, 443, 3000, 3001, 65536, -1} {
		for _, protocol := range []string{"tcp", "udp"} {
			_, err := create(protocol, port)
			wantInvalid(t, err, "externalPort")
		}
	}
	must(create("tcp", 8443))(t)
}

func testParallelPorts(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	ports := make([]int, 40)
	var group sync.WaitGroup
	for i := range ports {
		group.Go(func() {
			service, err := s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "transport", InternalPort: 22, Protocol: "tcp"})
			if err != nil {
				t.Error(err)
			}
			ports[i] = service.ExternalPort
		})
	}
	group.Wait()
	seen := map[int]bool{w.Transport.ExternalPort: true}
	for _, port := range ports {
		if seen[port] || port < 2000 || port > 2040 {
			t.Errorf("port %d is doubled or out of order", port)
		}
		seen[port] = true
	}
}
