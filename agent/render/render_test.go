package render

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"opensource.internal/agent/checkin"
)

// TestLines: a validator's line number leads to the record.
func TestLines(t *testing.T) {
	nginx, err := NGINX(labSnapshot(), bookworm(), LoadTemplates(nil))
	if err != nil {
		t.Fatal(err)
	}
	dnsmasq, err := DNSMasq(labSnapshot(), bookworm(), LoadTemplates(nil))
	if err != nil {
		t.Fatal(err)
	}
	app := Record{Kind: checkin.KindHTTP, ID: 3, Name: "app.example.com"}
	for _, test := range []struct {
		file File
		line string
		want Record
	}{
		{nginx.Files[0], "        server_name app.example.com;", app},
		{nginx.Files[0], "            proxy_pass http://192.0.2.101:8080;", app},
		{nginx.Files[0], "        server_name *.example.org example.org;", Record{Kind: checkin.KindDomain, Name: "example.org"}},
		{nginx.Files[0], "        listen 2201 udp reuseport;", Record{Kind: checkin.KindStream, ID: 6, Name: "udp/2201"}},
		{nginx.Files[0], "http {", Record{}},
		{nginx.Files[0], "stream {", Record{}},
		{dnsmasq.Files[0], "02:00:00:00:00:03,192.0.2.103,mail.lab.internal", Record{Kind: checkin.KindReservation, Name: "mail"}},
		{dnsmasq.Files[1], "192.0.2.10 pve1.lab.internal pve1", Record{Kind: checkin.KindHost, Name: "pve1"}},
		{dnsmasq.Files[4], "srv-host=_sip._tcp.lab.internal,web.lab.internal,5060", Record{Kind: checkin.KindSRV, ID: 7, Name: "_sip._tcp"}},
		{dnsmasq.Files[4], "domain=lab.internal", Record{}},
	} {
		number := 0
		for i, line := range strings.Split(string(test.file.Content), "\n") {
			if line == test.line {
				number = i + 1
			}
		}
		if number == 0 {
			t.Errorf("no line %q in %s", test.line, test.file.Path)
			continue
		}
		if diff := cmp.Diff(test.want, test.file.Lines[number]); diff != "" {
			t.Errorf("line %q:\n%s", test.line, diff)
		}
	}
}

// TestRevision: it moves with what is served, and with nothing else.
func TestRevision(t *testing.T) {
	revision := func(s checkin.Snapshot, f Facts) string {
		t.Helper()
		got, err := NGINX(s, f, LoadTemplates(nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Revision) != 64 || !strings.Contains(string(got.Files[0].Content), got.Revision) {
			t.Fatalf("revision %q", got.Revision)
		}
		return got.Revision
	}
	was := revision(labSnapshot(), bookworm())

	renewed := bookworm()
	renewed.Certificates["example.com"] = CertificateFact{Digest: strings.Repeat("cd", 32)}
	if revision(labSnapshot(), renewed) == was {
		t.Error("a renewed certificate does not move it")
	}
	unused := bookworm()
	unused.Certificates["unused.example"] = CertificateFact{Digest: "1"}
	if revision(labSnapshot(), unused) != was {
		t.Error("an unused certificate moves it")
	}
	dnsOnly := labSnapshot()
	dnsOnly.Site.InternalDomain = "other.internal"
	if revision(dnsOnly, bookworm()) != was {
		t.Error("a change of dnsmasq alone moves it")
	}
	changed := labSnapshot()
	changed.NGINX.HTTPServices[0].InternalPort++
	if revision(changed, bookworm()) == was {
		t.Error("a change does not move it")
	}
}

func TestOverrides(t *testing.T) {
	overrides := fstest.MapFS{
		"nginx/http-service.tmpl":     {Data: []byte("\n# ours: {{.Name}}")},
		"dnsmasq/dnsmasq.conf.tmpl":   {Data: []byte("{{.NoSuchField}}")},
		"dnsmasq/not-a-template.tmpl": {Data: []byte("{{")},
	}
	templates := LoadTemplates(overrides)
	if diff := cmp.Diff([]string{"dnsmasq/dnsmasq.conf.tmpl", "nginx/http-service.tmpl"}, templates.Overridden()); diff != "" {
		t.Error(diff)
	}
	nginx, err := NGINX(labSnapshot(), bookworm(), templates)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(nginx.Files[0].Content), "# ours: app.example.com\n") {
		t.Error("the override was not used")
	}
	if _, err = DNSMasq(labSnapshot(), bookworm(), templates); err == nil || !strings.Contains(err.Error(), "dnsmasq/dnsmasq.conf.tmpl") {
		t.Errorf("a template that does not execute: %v", err)
	}
	if templates.Digest() == LoadTemplates(nil).Digest() {
		t.Error("the digest does not tell an override")
	}
}

func TestBrokenOverrides(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		render           func(checkin.Snapshot, Facts, *Templates) (Result, error)
	}{
		{"nginx/nginx.conf.tmpl", "{{if}}", "nginx/nginx.conf.tmpl", NGINX},
		{"nginx/nginx.conf.tmpl", "events {}", ".Revision", NGINX},
		{"nginx/domain.tmpl", `{{template "nginx/none.tmpl"}}`, "nginx/none.tmpl", NGINX},
		{"dnsmasq/hosts.tmpl", "{{range}}", "dnsmasq/hosts.tmpl", DNSMasq},
		{"dnsmasq/hosts.tmpl", "127.0.0.1 x", ".Sentinel", DNSMasq},
	} {
		templates := LoadTemplates(fstest.MapFS{test.name: {Data: []byte(test.text)}})
		if _, err := test.render(labSnapshot(), bookworm(), templates); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %q: %v", test.name, test.text, err)
		}
	}
	unreadable := LoadTemplates(fstest.MapFS{"nginx/domain.tmpl": {Mode: os.ModeDir | 0o755}})
	if _, err := NGINX(labSnapshot(), bookworm(), unreadable); err == nil || !strings.Contains(err.Error(), "nginx/domain.tmpl") {
		t.Errorf("a template that is a folder: %v", err)
	}
}

// TestFactFaults: a wrong setting of the agent is named by its variable.
func TestFactFaults(t *testing.T) {
	for _, test := range []struct {
		spoil func(*Facts)
		want  string
	}{
		{func(f *Facts) { f.ManagerUpstream = "198.51.100.1:3000" }, "MANAGER_URL"},
		{func(f *Facts) { f.ManagerUpstream = "localhost:3000" }, "MANAGER_URL"},
		{func(f *Facts) { f.ManagerUpstream, f.ManagerHostname = "127.0.0.1:3000", "a b" }, "MANAGER_HOSTNAME"},
		{func(f *Facts) { f.Paths.NGINXPid = "run/nginx.pid" }, "pid file"},
		{func(f *Facts) { f.Paths.ErrorPages = "/srv/a b" }, "error pages"},
		{func(f *Facts) { f.Paths.ACMERoot = "/srv/$host" }, "ACME"},
		{func(f *Facts) { f.DocsRoot = "/srv;" }, "documentation"},
	} {
		facts := bookworm()
		test.spoil(&facts)
		if _, err := NGINX(labSnapshot(), facts, LoadTemplates(nil)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

func TestManagerCertificate(t *testing.T) {
	for _, test := range []struct {
		name string
		real bool
	}{
		{"manager.example.com", true},
		{"example.com", true},
		{"a.b.example.com", false},
		{"manager.example.org", false},
	} {
		facts := bookworm()
		facts.ManagerUpstream, facts.ManagerHostname = "127.0.0.1:3000", test.name
		v, _, err := newNGINXView(labSnapshot(), facts)
		if err != nil {
			t.Fatal(err)
		}
		if v.Manager.Certificate.Real != test.real {
			t.Errorf("%s: a real certificate: %t", test.name, v.Manager.Certificate.Real)
		}
	}
}

// TestManagerByDefault: as soon as there is a service, by no other name.
func TestManagerByDefault(t *testing.T) {
	facts := bookworm()
	facts.ManagerUpstream = "127.0.0.1:3000"
	empty := labSnapshot()
	empty.NGINX.HTTPServices = nil
	for name, test := range map[string]struct {
		snapshot checkin.Snapshot
		want     bool
	}{"bootstrap": {checkin.Bootstrap(), true}, "no service": {empty, true}, "services": {labSnapshot(), false}} {
		got, err := NGINX(test.snapshot, facts, LoadTemplates(nil))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(got.Files[0].Content), "proxy_pass http://127.0.0.1:3000;") != test.want {
			t.Errorf("%s: proxies the manager: %t", name, !test.want)
		}
	}
}

// hostile is text that tries to become more than a value.
func hostile() *rapid.Generator[string] {
	pieces := rapid.SampledFrom([]string{
		"\n", "\r\n", ";", "{", "}", "\"", "'", "#", "\\", "$host", " ", "\t", ",", "/", "..", "\x00", "\u2028", "é",
		"include /etc/passwd;", "dhcp-script=/x", "return 200 x;", "a", "9", "-", "_", ".", "example", "192.0.2.9", "02:00:00:00:00:07", "{{", "%", "*",
	})
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(pieces, 0, 4).Draw(t, "pieces"), "") })
}

// TestHostileValues: whatever the strings and numbers of a snapshot are, each
// line of each file has the shape of a line that good values make.
func TestHostileValues(t *testing.T) {
	templates := LoadTemplates(nil)
	facts := bookworm()
	shapes := goodShapes(t, facts, templates)
	rapid.Check(t, func(t *rapid.T) {
		s := authSnapshot()
		value := func(name, good string) string {
			if rapid.IntRange(0, 9).Draw(t, "spoil "+name) > 0 {
				return good
			}
			return hostile().Draw(t, name)
		}
		text := func(name string, at *checkin.Text) { *at = checkin.Text(value(name, string(*at))) }
		str := func(name string, at *string) { *at = value(name, *at) }
		number := func(name string, at *int) {
			if rapid.IntRange(0, 9).Draw(t, "spoil "+name) == 0 {
				*at = rapid.IntRange(-1, 70000).Draw(t, name)
			}
		}
		site := s.Site
		text("name", &site.Name)
		text("internalDomain", &site.InternalDomain)
		text("dhcpRange", &site.DHCPRange)
		text("subnetMask", &site.SubnetMask)
		text("gateway", &site.Gateway)
		text("dnsForwarders", &site.DNSForwarders)
		for i := range site.Nodes {
			str("node", &site.Nodes[i].Name)
			text("node address", &site.Nodes[i].IPv4Address)
			for j := range site.Nodes[i].Containers {
				c := &site.Nodes[i].Containers[j]
				str("hostname", &c.Hostname)
				str("address", &c.IPv4Address)
				text("mac", &c.MACAddress)
			}
		}
		for i := range site.DNSRecords {
			r := &site.DNSRecords[i]
			str("type", &r.Type)
			str("record", &r.Name)
			str("target", &r.Target)
			number("port", &r.Port)
		}
		for i := range s.NGINX.HTTPServices {
			h := &s.NGINX.HTTPServices[i]
			str("host", &h.ExternalHostname)
			str("domain", &h.ExternalDomain.Name)
			text("auth server", &h.ExternalDomain.AuthServer)
			str("backend protocol", &h.BackendProtocol)
			str("container", &h.Container.IPv4Address)
			number("internal port", &h.InternalPort)
		}
		for i := range s.NGINX.StreamServices {
			p := &s.NGINX.StreamServices[i]
			str("protocol", &p.Protocol)
			str("container", &p.Container.IPv4Address)
			number("external port", &p.ExternalPort)
		}
		for i := range s.NGINX.ExternalDomains {
			str("external domain", &s.NGINX.ExternalDomains[i].Name)
		}
		checkShapes(t, shapes, s, facts, templates)
	})
}

// shape is a line with its values masked: words of the characters that names,
// addresses and numbers have. What separates them and the directive stay.
func shape(line string) string {
	line = strings.ToLower(line)
	var out strings.Builder
	first, inWord := true, false
	for _, c := range line {
		word := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune(".-_:[]*", c)
		switch {
		case !word:
			first = first && (c == ' ' || c == '\t')
			out.WriteRune(c)
		case first:
			first = false
			out.WriteString("<")
			if line[0] >= 'a' && line[0] <= 'z' || line[0] == ' ' {
				directive, _, _ := strings.Cut(strings.TrimSpace(line), " ")
				directive, _, _ = strings.Cut(directive, "=")
				directive, _, _ = strings.Cut(directive, ",")
				out.WriteString(directive)
			}
			out.WriteString(">")
		case !inWord:
			out.WriteString("w")
		}
		inWord = word
	}
	return out.String()
}

func goodShapes(t *testing.T, facts Facts, templates *Templates) map[string]bool {
	t.Helper()
	shapes := map[string]bool{}
	nameless := labSnapshot()
	nameless.Site.Nodes[0].Containers[0].Hostname = "!"
	addresses := authSnapshot()
	addresses.NGINX.HTTPServices[0].ExternalDomain.AuthServer = "http://198.51.100.9:4180"
	for _, s := range []checkin.Snapshot{labSnapshot(), authSnapshot(), noAuthServerSnapshot(), nameless, addresses} {
		for _, render := range []func(checkin.Snapshot, Facts, *Templates) (Result, error){NGINX, DNSMasq} {
			result, err := render(s, facts, templates)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range result.Files {
				for line := range strings.SplitSeq(string(f.Content), "\n") {
					shapes[shape(line)] = true
				}
			}
		}
	}
	return shapes
}

func checkShapes(t *rapid.T, shapes map[string]bool, s checkin.Snapshot, facts Facts, templates *Templates) {
	nginx, err := NGINX(s, facts, templates)
	if err != nil {
		t.Fatalf("no value of a snapshot makes nginx fail as a whole: %v", err)
	}
	dnsmasq, err := DNSMasq(s, facts, templates)
	if err != nil && !strings.HasPrefix(err.Error(), "site.") {
		t.Fatalf("the error does not begin with its field: %v", err)
	}
	for _, f := range append(nginx.Files, dnsmasq.Files...) {
		for line := range strings.SplitSeq(string(f.Content), "\n") {
			if !shapes[shape(line)] {
				t.Fatalf("%s: no template makes the line %q (%s)", f.Path, line, shape(line))
			}
		}
	}
	for _, item := range append(nginx.LeftOut, dnsmasq.LeftOut...) {
		if item.Kind == "" || item.Reason == "" || checkin.CleanMessage(item.Name, 1024) != item.Name {
			t.Fatalf("left out: %+v", item)
		}
	}
}

// bigSnapshot has n HTTP services and n containers.
func bigSnapshot(n int) checkin.Snapshot {
	s := labSnapshot()
	s.Site.DHCPRange, s.Site.SubnetMask, s.Site.Gateway = "10.0.200.0,10.0.210.0", "255.255.0.0", "10.0.0.1"
	s.Site.DNSRecords = nil
	s.Site.Nodes = []checkin.Node{{Name: "pve1", Containers: make([]checkin.Container, 0, n)}}
	s.NGINX.HTTPServices = make([]checkin.HTTPService, 0, n)
	s.NGINX.StreamServices = nil
	for i := range n {
		address := netip.AddrFrom4([4]byte{10, 0, byte(1 + i/250), byte(1 + i%250)}).String()
		s.Site.Nodes[0].Containers = append(s.Site.Nodes[0].Containers, checkin.Container{
			Hostname: fmt.Sprintf("c%d", i), IPv4Address: address, MACAddress: checkin.Text(fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255)),
		})
		s.NGINX.HTTPServices = append(s.NGINX.HTTPServices, checkin.HTTPService{
			ID: int64(i + 1), InternalPort: 8080, Container: checkin.Backend{IPv4Address: address},
			ExternalHostname: fmt.Sprintf("c%d", i), BackendProtocol: "http", ExternalDomain: checkin.HTTPServiceDomain{Name: "example.com"},
		})
	}
	return s
}

// TestManyServices: nginx takes thousands of names, long ones among them,
// without an error or a warning.
func TestManyServices(t *testing.T) {
	installedNGINX(t)
	s := bigSnapshot(2000)
	s.NGINX.HTTPServices[0].ExternalHostname = longHost
	for i := range 300 {
		s.NGINX.HTTPServices[i+1].ExternalHostname = fmt.Sprintf("%s%03d", longHost[:len(longHost)-3], i)
	}
	facts := hostFacts(t)
	if result := testNGINX(t, s, facts); len(result.LeftOut) > 0 {
		t.Errorf("left out: %v", result.LeftOut[0])
	}
}

func BenchmarkNGINX(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		benchmark(b, n, NGINX)
	}
}

func BenchmarkDNSMasq(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		benchmark(b, n, DNSMasq)
	}
}

func benchmark(b *testing.B, n int, render func(checkin.Snapshot, Facts, *Templates) (Result, error)) {
	b.Run(fmt.Sprint(n), func(b *testing.B) {
		s, facts := bigSnapshot(n), bookworm()
		b.ReportAllocs()
		for b.Loop() {
			// An agent's process parses its templates once, and renders once.
			result, err := render(s, facts, LoadTemplates(nil))
			if err != nil || len(result.LeftOut) > 0 {
				b.Fatal(err, result.LeftOut)
			}
		}
	})
}

// BenchmarkLoadTemplates is what a pass with nothing to do pays for templates.
func BenchmarkLoadTemplates(b *testing.B) {
	overrides := os.DirFS(b.TempDir())
	b.ReportAllocs()
	for b.Loop() {
		LoadTemplates(overrides).Digest()
	}
}
