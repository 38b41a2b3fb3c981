package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"opensource.internal/agent/checkin"
)

// refusal is a snapshot of which one record is refused, by the host or, if it
// is changed so that it cannot be served, by its parser.
type refusal struct {
	record Record
	before func(*checkin.Snapshot) // from what runs to what ran before
	wanted func(*checkin.Snapshot) // from what runs to what is wanted
	change func(*Facts)
}

func contentOf(files []File) string {
	var all strings.Builder
	for _, f := range files {
		all.Write(f.Content)
	}
	return all.String()
}

var (
	app         = Record{checkin.KindHTTP, 3, "app.example.com"}
	ssh         = Record{checkin.KindStream, 4, "tcp/2201"}
	webHost     = Record{checkin.KindHost, 0, "web"}
	webLease    = Record{checkin.KindReservation, 0, "web"}
	sip         = Record{checkin.KindSRV, 7, "_sip._tcp"}
	nothing     = func(*checkin.Snapshot) {}
	noPrevious  = func(f *Facts) { f.Before = nil }
	otherWords  = func(f *Facts) { f.Refused = map[Record]Refusal{} }
	blamedTwice = func(f *Facts) {
		for r, refusal := range f.Refused {
			refusal.Previous = true
			f.Refused[r] = refusal
		}
	}
)

func withHTTP(i int, change func(*checkin.HTTPService)) func(*checkin.Snapshot) {
	return func(s *checkin.Snapshot) { change(&s.NGINX.HTTPServices[i]) }
}

func withStream(change func(*checkin.StreamService)) func(*checkin.Snapshot) {
	return func(s *checkin.Snapshot) { change(&s.NGINX.StreamServices[0]) }
}

func withWeb(change func(*checkin.Container)) func(*checkin.Snapshot) {
	return func(s *checkin.Snapshot) { change(&s.Site.Nodes[0].Containers[0]) }
}

func withSRV(change func(*checkin.DNSRecord)) func(*checkin.Snapshot) {
	return func(s *checkin.Snapshot) { change(&s.Site.DNSRecords[0]) }
}

func all(changes ...func(*checkin.Snapshot)) func(*checkin.Snapshot) {
	return func(s *checkin.Snapshot) {
		for _, change := range changes {
			change(s)
		}
	}
}

// render renders what is wanted with the record refused.
func (r refusal) render(t *testing.T) Result {
	t.Helper()
	ran, wanted, facts := labSnapshot(), labSnapshot(), bookworm()
	r.before(&ran)
	r.wanted(&wanted)
	facts.Before = &ran
	facts.Refused = map[Record]Refusal{r.record: {Reason: "unknown directive"}}
	if r.change != nil {
		r.change(&facts)
	}
	return renderKind(t, r.record.Kind, wanted, facts)
}

func renderKind(t interface{ Fatal(...any) }, kind string, s checkin.Snapshot, facts Facts) Result {
	service := DNSMasq
	if slices.Contains([]string{checkin.KindHTTP, checkin.KindStream, checkin.KindDomain}, kind) {
		service = NGINX
	}
	result, err := service(s, facts, LoadTemplates(nil))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestThePreviousVersionIsKept(t *testing.T) {
	upstream := withHTTP(0, func(h *checkin.HTTPService) { h.InternalPort = 9999 })
	for name, test := range map[string]struct {
		refusal
		line string // of the previous version
	}{
		"http": {refusal{app, upstream, nothing, nil}, "proxy_pass http://192.0.2.101:9999;"},
		"http without id": {refusal{
			Record{Kind: checkin.KindHTTP, Name: "app.example.com"},
			all(upstream, withHTTP(0, func(h *checkin.HTTPService) { h.ID, h.ExternalHostname = 0, "APP" })),
			withHTTP(0, func(h *checkin.HTTPService) { h.ID = 0 }), nil,
		}, "proxy_pass http://192.0.2.101:9999;"},
		"http under its previous name":  {refusal{app, withHTTP(0, func(h *checkin.HTTPService) { h.ExternalHostname = "old" }), nothing, nil}, "server_name old.example.com;"},
		"http that is better protected": {refusal{app, withHTTP(0, func(h *checkin.HTTPService) { h.AuthRequired = true }), nothing, nil}, "return 503;"},
		"http that cannot be parsed":    {refusal{app, nothing, withHTTP(0, func(h *checkin.HTTPService) { h.InternalPort = 0 }), otherWords}, "proxy_pass http://192.0.2.101:8080;"},
		"http whose new name is another's": {refusal{
			Record{checkin.KindHTTP, 3, "admin.db.example.org"},
			nothing,
			all(
				func(s *checkin.Snapshot) { slices.Reverse(s.NGINX.HTTPServices) },
				withHTTP(1, func(h *checkin.HTTPService) { h.ExternalHostname, h.ExternalDomain.Name = "admin.db", "example.org" }),
			), otherWords,
		}, "server_name app.example.com;"},
		"stream": {refusal{ssh, withStream(func(s *checkin.StreamService) { s.InternalPort = 9999 }), nothing, nil}, "proxy_pass 192.0.2.101:9999;"},
		"stream on its previous port": {refusal{
			Record{checkin.KindStream, 4, "tcp/9443"}, nothing, withStream(func(s *checkin.StreamService) { s.ExternalPort = 9443 }), nil,
		}, "listen 2201;"},
		"host without an address any more":        {refusal{webHost, nothing, withWeb(func(c *checkin.Container) { c.IPv4Address, c.MACAddress = "nonsense", "" }), otherWords}, "192.0.2.101 web.lab.internal web"},
		"reservation with a wrong card":           {refusal{webLease, nothing, withWeb(func(c *checkin.Container) { c.MACAddress = "nonsense" }), otherWords}, "02:00:00:00:00:01,192.0.2.101,web.lab.internal"},
		"reservation of a card that was replaced": {refusal{webLease, nothing, withWeb(func(c *checkin.Container) { c.MACAddress = "02:00:00:00:00:0a" }), nil}, "02:00:00:00:00:01,192.0.2.101,web.lab.internal"},
		"srv": {refusal{sip, withSRV(func(r *checkin.DNSRecord) { r.Port = 9999 }), nothing, nil}, "srv-host=_sip._tcp.lab.internal,web.lab.internal,9999"},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.render(t)
			if len(r.LeftOut) != 1 || !r.LeftOut[0].KeptPrevious || r.LeftOut[0].ID != test.record.ID || r.LeftOut[0].Name != test.record.Name || r.LeftOut[0].Reason == "" {
				t.Fatalf("left out: %+v", r.LeftOut)
			}
			if !slices.Contains(blockOf(r, test.record), test.line) {
				t.Errorf("no line of the record is %q: %q", test.line, blockOf(r, test.record))
			}
			// The next pass starts from what is in force now.
			again := test
			again.before = func(s *checkin.Snapshot) { *s = r.InForce }
			if diff := cmp.Diff(contentOf(r.Files), contentOf(again.render(t).Files)); diff != "" {
				t.Errorf("it does not stay as it is:\n%s", diff)
			}
		})
	}
}

// Nothing is to be loaded where all that changed is refused.
func TestThePreviousVersionStaysInItsPlace(t *testing.T) {
	for _, test := range []refusal{
		{app, nothing, withHTTP(0, func(h *checkin.HTTPService) { h.InternalPort = 9999 }), nil},
		{ssh, nothing, withStream(func(s *checkin.StreamService) { s.InternalPort = 9999 }), nil},
		{webHost, nothing, withWeb(func(c *checkin.Container) { c.IPv4Address = "none" }), otherWords},
		{webLease, nothing, withWeb(func(c *checkin.Container) { c.MACAddress = "02:00:00:00:00:0a" }), nil},
		{sip, nothing, withSRV(func(r *checkin.DNSRecord) { r.Port = 9999 }), nil},
	} {
		another := func(s *checkin.Snapshot) {
			s.Site.DNSRecords = append(s.Site.DNSRecords, checkin.DNSRecord{ID: 8, Type: "SRV", Name: "_sip._tcp", Target: "mail", Port: 5060})
		}
		test.before, test.wanted = another, all(another, test.wanted)
		ran := labSnapshot()
		another(&ran)
		before := renderKind(t, test.record.Kind, ran, bookworm())
		if diff := cmp.Diff(contentOf(before.Files), contentOf(test.render(t).Files)); diff != "" {
			t.Errorf("%v:\n%s", test.record, diff)
		}
	}
}

// A container whose address cannot be read keeps name and reservation.
func TestAContainerKeepsItsPreviousAddress(t *testing.T) {
	r := refusal{webHost, nothing, withWeb(func(c *checkin.Container) { c.IPv4Address = "192.0.2.1O1" }), otherWords}.render(t)
	if len(r.LeftOut) != 2 || !r.LeftOut[0].KeptPrevious || !r.LeftOut[1].KeptPrevious {
		t.Fatalf("left out: %+v", r.LeftOut)
	}
	for record, line := range map[Record]string{
		webHost: "192.0.2.101 web.lab.internal web", webLease: "02:00:00:00:00:01,192.0.2.101,web.lab.internal",
		sip: "srv-host=_sip._tcp.lab.internal,web.lab.internal,5060",
	} {
		if got := blockOf(r, record); !slices.Equal(got, []string{line}) {
			t.Errorf("%v: %q", record, got)
		}
	}
	if diff := cmp.Diff(labSnapshot().Site.Nodes[0].Containers[0], r.InForce.Site.Nodes[0].Containers[0]); diff != "" {
		t.Error(diff)
	}
}

func TestThePreviousVersionIsNotKept(t *testing.T) {
	upstream := withHTTP(0, func(h *checkin.HTTPService) { h.InternalPort = 9999 })
	oldName := withHTTP(0, func(h *checkin.HTTPService) { h.ExternalHostname = "old" })
	for name, test := range map[string]refusal{
		"none":              {app, upstream, nothing, noPrevious},
		"the same":          {app, nothing, nothing, nil},
		"refused too":       {app, upstream, nothing, blamedTwice},
		"of another record": {app, all(upstream, withHTTP(0, func(h *checkin.HTTPService) { h.ID = 33 })), nothing, nil},
		"without sign-in":   {app, upstream, withHTTP(0, func(h *checkin.HTTPService) { h.AuthRequired = true }), nil},
		"without sign-in, and the wanted one cannot be read": {
			app, upstream,
			withHTTP(0, func(h *checkin.HTTPService) { h.AuthRequired, h.ExternalDomain.AuthServer = true, "nonsense" }), otherWords,
		},
		"cannot be read": {app, withHTTP(0, func(h *checkin.HTTPService) { h.InternalPort = 70000 }), nothing, nil},
		"its name is another's now": {
			app, oldName,
			func(s *checkin.Snapshot) {
				other := s.NGINX.HTTPServices[0]
				other.ID, other.ExternalHostname = 99, "old"
				s.NGINX.HTTPServices = append(s.NGINX.HTTPServices, other)
			}, nil,
		},
		"its name is a domain's now": {
			app, withHTTP(0, func(h *checkin.HTTPService) { h.ExternalHostname, h.ExternalDomain.Name = "example", "com" }), nothing, nil,
		},
		"its port is another's now": {
			ssh, withStream(func(s *checkin.StreamService) { s.ExternalPort = 2300 }),
			func(s *checkin.Snapshot) {
				other := s.NGINX.StreamServices[0]
				other.ID, other.ExternalPort = 99, 2300
				s.NGINX.StreamServices = append(s.NGINX.StreamServices, other)
			}, nil,
		},
		"its port is reserved":         {ssh, withStream(func(s *checkin.StreamService) { s.ExternalPort = 443 }), nothing, nil},
		"its address is another's now": {app, upstream, nextHost, nil},
		"its address is another's now, and the wanted one cannot be read": {
			app, nothing, all(nextHost, withHTTP(0, func(h *checkin.HTTPService) { h.InternalPort = 0 })), otherWords,
		},
		"its container is gone": {
			app, upstream, all(withoutSRV, func(s *checkin.Snapshot) { s.Site.Nodes[0].Containers = []checkin.Container{} }), nil,
		},
		"its container has another address": {app, upstream, withWeb(func(c *checkin.Container) { c.IPv4Address = "192.0.2.177" }), nil},
		"a port to an address that is another's now": {
			ssh, withStream(func(s *checkin.StreamService) { s.InternalPort = 9999 }), nextHost, nil,
		},
		"nobody has looked at its certificate": {
			app, withHTTP(0, func(h *checkin.HTTPService) { h.ExternalDomain.Name = "example.net" }), nothing, nil,
		},
		"a name for an address that is another's now": {
			webHost, nothing, all(withoutSRV, nextHost, withWeb(func(c *checkin.Container) { c.IPv4Address, c.MACAddress = "none", "" })), otherWords,
		},
		"a domain": {Record{checkin.KindDomain, 0, "example.com"}, nothing, nothing, nil},
		"a name for an address that DHCP does not give": {
			webHost, withWeb(func(c *checkin.Container) { c.IPv4Address = "192.0.2.111" }),
			func(s *checkin.Snapshot) { s.Site.DNSRecords = []checkin.DNSRecord{} }, nil,
		},
		"a lease of an address that DNS does not tell": {
			webLease, withWeb(func(c *checkin.Container) { c.IPv4Address = "192.0.2.111" }), nothing, nil,
		},
		"its card is another's now": {
			webLease, nothing, func(s *checkin.Snapshot) {
				s.Site.Nodes[0].Containers[0].MACAddress = "02:00:00:00:00:0a"
				s.Site.Nodes[0].Containers[1].MACAddress = "02:00:00:00:00:01"
			}, nil,
		},
		"an SRV record that is there already": {
			sip, withSRV(func(r *checkin.DNSRecord) { r.Port = 9999 }), func(s *checkin.Snapshot) {
				s.Site.DNSRecords = append(s.Site.DNSRecords, checkin.DNSRecord{ID: 8, Type: "SRV", Name: "_sip._tcp", Target: "web", Port: 9999})
			}, nil,
		},
		"an SRV record to what is gone": {
			sip, withSRV(func(r *checkin.DNSRecord) { r.Target = "gone" }), nothing, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.render(t)
			if len(r.LeftOut) != 1 || r.LeftOut[0].KeptPrevious || r.LeftOut[0].Name != test.record.Name {
				t.Fatalf("left out: %+v", r.LeftOut)
			}
			if lines := blockOf(r, test.record); len(lines) > 0 {
				t.Errorf("rendered: %q", lines)
			}
			// All else is as without it.
			again := test
			again.before = func(s *checkin.Snapshot) { *s = r.InForce }
			if diff := cmp.Diff(contentOf(r.Files), contentOf(again.render(t).Files)); diff != "" {
				t.Errorf("it does not stay as it is:\n%s", diff)
			}
		})
	}
}

// nextHost gives the address of the container web to a new one.
func nextHost(s *checkin.Snapshot) {
	web := &s.Site.Nodes[0].Containers[0]
	s.Site.Nodes[1].Containers = append(s.Site.Nodes[1].Containers, checkin.Container{Hostname: "next", IPv4Address: web.IPv4Address})
	web.IPv4Address = "192.0.2.177"
}

func withoutSRV(s *checkin.Snapshot) { s.Site.DNSRecords = []checkin.DNSRecord{} }

func TestALeaseOfAnAddressThatIsAnothersIsNotKept(t *testing.T) {
	r := refusal{webLease, nothing, all(withoutSRV, nextHost, withWeb(func(c *checkin.Container) { c.IPv4Address = "none" })), otherWords}.render(t)
	if len(r.LeftOut) != 2 || r.LeftOut[0].KeptPrevious || r.LeftOut[1].KeptPrevious {
		t.Errorf("left out: %+v", r.LeftOut)
	}
}

// A container whose address cannot be read has it still, as far as anybody
// knows.
func TestAServiceOfAContainerWithoutAnAddressKeepsItsPreviousVersion(t *testing.T) {
	r := refusal{app, nothing, all(
		withWeb(func(c *checkin.Container) { c.IPv4Address = "none" }),
		withHTTP(0, func(h *checkin.HTTPService) { h.Container.IPv4Address = "none" }),
	), otherWords}.render(t)
	if !slices.Contains(blockOf(r, app), "proxy_pass http://192.0.2.101:8080;") {
		t.Errorf("left out: %+v", r.LeftOut)
	}
}

func TestAServiceOfARenamedContainerKeepsItsPreviousVersion(t *testing.T) {
	r := refusal{app, nothing, all(
		withoutSRV, withWeb(func(c *checkin.Container) { c.Hostname = "renamed" }), withHTTP(0, func(h *checkin.HTTPService) { h.InternalPort = 0 }),
	), otherWords}.render(t)
	if !slices.Contains(blockOf(r, app), "proxy_pass http://192.0.2.101:8080;") {
		t.Errorf("left out: %+v", r.LeftOut)
	}
}

// blockOf returns the lines that are told to be the record's, trimmed.
func blockOf(r Result, record Record) []string {
	var block []string
	for _, file := range r.Files {
		for i, line := range strings.Split(string(file.Content), "\n") {
			if file.Lines[i+1] == record {
				block = append(block, strings.TrimSpace(line))
			}
		}
	}
	return block
}

// What a refused record has claimed does not go to another: the manager's order
// decides who has a name, not the host.
func TestARefusedServiceKeepsItsName(t *testing.T) {
	twice := func(s *checkin.Snapshot) {
		other := s.NGINX.HTTPServices[0]
		other.ID, other.InternalPort = 99, 9999
		s.NGINX.HTTPServices = append(s.NGINX.HTTPServices, other)
	}
	r := refusal{app, nothing, twice, noPrevious}.render(t)
	if len(r.LeftOut) != 2 || strings.Contains(contentOf(r.Files), "server_name app.example.com;") {
		t.Errorf("left out: %+v", r.LeftOut)
	}
}

// A site that is full of leases must not be restarted for one that is refused.
func TestARefusedLeaseLeavesTheMainFileAlone(t *testing.T) {
	s, facts := bigSnapshot(1200), bookworm()
	whole := renderKind(t, checkin.KindReservation, s, facts)
	facts.Refused = map[Record]Refusal{{checkin.KindReservation, 0, "c7"}: {Reason: "bad"}}
	less := renderKind(t, checkin.KindReservation, s, facts)
	if diff := cmp.Diff(string(whole.Files[4].Content), string(less.Files[4].Content)); diff != "" || len(less.LeftOut) != 1 {
		t.Errorf("%+v\n%s", less.LeftOut, diff)
	}
}

func TestRefusalsAreNoFacts(t *testing.T) {
	with, without := bookworm(), bookworm()
	with.Refused = map[Record]Refusal{app: {Reason: "x"}}
	with.Before = &checkin.Snapshot{}
	a, _ := json.Marshal(with)
	b, _ := json.Marshal(without)
	if string(a) != string(b) {
		t.Error("the fingerprint of a site changes when a record is refused")
	}
}

// Whatever is refused and whatever was before: nothing is there twice, and the
// next pass makes the same of it.
func TestRefusalsSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, wanted := drawSite(t, "before"), drawSite(t, "wanted")
		facts := bookworm()
		facts.Before = &before
		facts.Refused = map[Record]Refusal{}
		for _, kind := range []string{checkin.KindHTTP, checkin.KindHost} {
			for _, record := range recordsIn(renderKind(t, kind, wanted, facts).Files) {
				switch rapid.IntRange(0, 5).Draw(t, fmt.Sprint(record)) {
				case 0:
					facts.Refused[record] = Refusal{Reason: "refused"}
				case 1:
					facts.Refused[record] = Refusal{Reason: "refused", Previous: true}
				}
			}
		}
		for _, kind := range []string{checkin.KindHTTP, checkin.KindHost} {
			first := renderKind(t, kind, wanted, facts)
			again := facts
			again.Before = &first.InForce
			if diff := cmp.Diff(contentOf(first.Files), contentOf(renderKind(t, kind, wanted, again).Files)); diff != "" {
				t.Fatalf("%s does not settle:\n%s", kind, diff)
			}
			seen := map[string]bool{}
			for line := range strings.Lines(contentOf(first.Files)) {
				line = strings.TrimSpace(line)
				once := strings.HasPrefix(line, "server_name ") && line != "server_name _;" || strings.HasPrefix(line, "listen 2") ||
					strings.HasPrefix(line, "02:") || strings.HasPrefix(line, "192.") || strings.HasPrefix(line, "srv-host=")
				if once && seen[line] {
					t.Fatalf("twice: %s", line)
				}
				seen[line] = true
			}
		}
	})
}

// recordsIn returns the records of files in their order.
func recordsIn(files []File) []Record {
	var records []Record
	for _, file := range files {
		for _, line := range slices.Sorted(maps.Keys(file.Lines)) {
			if record := file.Lines[line]; !slices.Contains(records, record) {
				records = append(records, record)
			}
		}
	}
	return records
}

// drawSite makes a small site of values that are often the same.
func drawSite(t *rapid.T, label string) checkin.Snapshot {
	s := labSnapshot()
	n := func(what string, max int) int { return rapid.IntRange(0, max).Draw(t, label+" "+what) }
	s.NGINX.HTTPServices, s.NGINX.StreamServices = nil, nil
	s.Site.DNSRecords, s.Site.Nodes[1].Containers = nil, nil
	for i := range n("services", 4) {
		s.NGINX.HTTPServices = append(s.NGINX.HTTPServices, checkin.HTTPService{
			ID: int64(i + 1), InternalPort: n("port", 2), Container: checkin.Backend{IPv4Address: "192.0.2.101"},
			ExternalHostname: string(rune('a' + n("name", 3))), AuthRequired: n("sign-in", 1) == 1,
			ExternalDomain: checkin.HTTPServiceDomain{Name: "example.com"},
		})
		s.NGINX.StreamServices = append(s.NGINX.StreamServices, checkin.StreamService{
			ID: int64(i + 1), InternalPort: n("port", 2), Container: checkin.Backend{IPv4Address: "192.0.2.101"},
			ExternalPort: 2200 + n("external", 3), Protocol: "tcp",
		})
		s.Site.Nodes[1].Containers = append(s.Site.Nodes[1].Containers, checkin.Container{
			Hostname:    string(rune('a' + n("host", 3))),
			IPv4Address: []string{"192.0.2.110", "192.0.2.111", "198.51.100.1", "none"}[n("address", 3)],
			MACAddress:  []checkin.Text{"", "02:00:00:00:00:01", "02:00:00:00:00:02", "none"}[n("card", 3)],
		})
		s.Site.DNSRecords = append(s.Site.DNSRecords, checkin.DNSRecord{
			ID: int64(i + 1), Type: "SRV", Name: "_sip._tcp", Target: string(rune('a' + n("target", 3))), Port: n("port", 2),
		})
	}
	if s.NGINX.HTTPServices == nil {
		s.NGINX.HTTPServices, s.NGINX.StreamServices = []checkin.HTTPService{}, []checkin.StreamService{}
	}
	return s
}
