package revision_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/revision"
)

// lab is a site with one of everything.
func lab() checkin.Snapshot {
	return checkin.Snapshot{
		Site: &checkin.Site{
			ID: 1, Name: "lab", InternalDomain: "lab.internal",
			Nodes: []checkin.Node{{Name: "pve1", IPv4Address: "192.0.2.10", Containers: []checkin.Container{
				{Hostname: "web", IPv4Address: "192.0.2.101", MACAddress: "02:00:00:00:00:01"},
				{Hostname: "db", IPv4Address: "192.0.2.102"},
			}}},
			DNSRecords: []checkin.DNSRecord{{ID: 7, Type: "SRV", Name: "_sip._tcp", Target: "web", Port: 5060}},
			Volumes:    []checkin.Volume{{ID: 42, HostPath: "/mnt/v/1", Mode: "rw", UID: 100000, GID: 100000}},
		},
		NGINX: checkin.NGINX{
			HTTPServices: []checkin.HTTPService{{
				ID: 3, InternalPort: 8080, Container: checkin.Backend{IPv4Address: "192.0.2.101"}, ExternalHostname: "app",
				BackendProtocol: "http", ExternalDomain: checkin.HTTPServiceDomain{Name: "example.com"},
			}},
			StreamServices:  []checkin.StreamService{{ID: 4, InternalPort: 22, Container: checkin.Backend{IPv4Address: "192.0.2.101"}, ExternalPort: 2201, Protocol: "tcp"}},
			ExternalDomains: []checkin.ExternalDomain{{Name: "example.com"}},
		},
	}
}

type (
	change = revision.Change
	field  = revision.Field
)

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		edit    func(*checkin.Snapshot)
		want    []change
		summary string
	}{
		"nothing": {func(*checkin.Snapshot) {}, []change{}, "nothing differs"},
		"settings": {
			func(s *checkin.Snapshot) { s.Site.Gateway, s.Site.InternalDomain = "192.0.2.1", "" },
			[]change{{Action: "changed", Resource: "site", ID: 1, Name: "lab", Fields: []field{{"internalDomain", "lab.internal", nil}, {"gateway", nil, "192.0.2.1"}}}},
			"settings of the site changed",
		},
		"a service changes and another comes": {
			func(s *checkin.Snapshot) {
				s.NGINX.HTTPServices[0].InternalPort, s.NGINX.HTTPServices[0].AuthRequired = 9090, true
				s.NGINX.StreamServices = append(s.NGINX.StreamServices, checkin.StreamService{ID: 9, InternalPort: 53, Container: checkin.Backend{IPv4Address: "192.0.2.102"}, ExternalPort: 2300, Protocol: "udp"})
			},
			[]change{
				{Action: "changed", Resource: "httpService", ID: 3, Name: "app.example.com", Fields: []field{{"internalPort", 8080, 9090}, {"authRequired", false, true}}},
				{Action: "added", Resource: "transportService", ID: 9, Name: "udp port 2300", Fields: []field{{"protocol", nil, "udp"}, {"externalPort", nil, 2300}, {"container.ipv4Address", nil, "192.0.2.102"}, {"internalPort", nil, 53}}},
			},
			"1 HTTP service changed, 1 TCP/UDP service added",
		},
		"a service gets another name": {
			func(s *checkin.Snapshot) { s.NGINX.HTTPServices[0].ExternalHostname = "new" },
			[]change{{Action: "changed", Resource: "httpService", ID: 3, Name: "new.example.com", Former: "app.example.com", Fields: []field{{"host", "app.example.com", "new.example.com"}}}},
			"1 HTTP service changed",
		},
		"a new service has the name of a former one": {
			func(s *checkin.Snapshot) { s.NGINX.HTTPServices[0].ID = 8 },
			[]change{},
			"nothing differs",
		},
		"a container is renamed": {
			func(s *checkin.Snapshot) { s.Site.Nodes[0].Containers[0].Hostname = "front" },
			[]change{{Action: "changed", Resource: "container", Name: "front", Former: "web", Fields: []field{{"hostname", "web", "front"}}}},
			"1 container changed",
		},
		"two containers exchange their names": {
			func(s *checkin.Snapshot) {
				c := s.Site.Nodes[0].Containers
				c[0].Hostname, c[1].Hostname = "db", "web"
			},
			[]change{
				{Action: "changed", Resource: "container", Name: "db", Fields: []field{{"ipv4Address", "192.0.2.102", "192.0.2.101"}, {"macAddress", nil, "02:00:00:00:00:01"}}},
				{Action: "changed", Resource: "container", Name: "web", Fields: []field{{"ipv4Address", "192.0.2.101", "192.0.2.102"}, {"macAddress", "02:00:00:00:00:01", nil}}},
			},
			"2 containers changed",
		},
		"a container moves to a new node": {
			func(s *checkin.Snapshot) {
				moved := s.Site.Nodes[0].Containers[1:]
				s.Site.Nodes[0].Containers = s.Site.Nodes[0].Containers[:1]
				s.Site.Nodes = append(s.Site.Nodes, checkin.Node{Name: "pve2", Containers: moved})
			},
			[]change{
				{Action: "added", Resource: "node", Name: "pve2", Fields: []field{{"name", nil, "pve2"}}},
				{Action: "changed", Resource: "container", Name: "db", Fields: []field{{"node", "pve1", "pve2"}}},
			},
			"1 node added, 1 container changed",
		},
		"things go": {
			func(s *checkin.Snapshot) { s.Site.Volumes, s.Site.DNSRecords = nil, nil },
			[]change{
				{Action: "removed", Resource: "dnsRecord", ID: 7, Name: "_sip._tcp to web", Fields: []field{{"type", "SRV", nil}, {"name", "_sip._tcp", nil}, {"target", "web", nil}, {"port", 5060, nil}}},
				{Action: "removed", Resource: "volume", ID: 42, Name: "/mnt/v/1", Fields: []field{{"hostPath", "/mnt/v/1", nil}, {"mode", "rw", nil}, {"uid", int64(100000), nil}, {"gid", int64(100000), nil}}},
			},
			"1 SRV record removed, 1 volume removed",
		},
		"removals are confirmed": {
			func(s *checkin.Snapshot) { s.RemovalsConfirmed = true },
			[]change{{Action: "changed", Resource: "site", ID: 1, Name: "lab", Fields: []field{{"removalsConfirmed", false, true}}}},
			"settings of the site changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := lab()
			test.edit(&after)
			got := revision.Compare(lab(), after)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if words := revision.Summarise(got).String(); words != test.summary {
				t.Errorf("%q", words)
			}
		})
	}
}

// What comes against nothing goes against nothing: every record once.
func TestCompareWithNothing(t *testing.T) {
	for action, changes := range map[revision.Action][]change{
		revision.Added:   revision.Compare(checkin.Bootstrap(), lab()),
		revision.Removed: revision.Compare(lab(), checkin.Bootstrap()),
	} {
		total := 0
		for _, counts := range revision.Summarise(changes) {
			total += counts.Added + counts.Changed + counts.Removed
		}
		if len(changes) != 9 || total != 9 {
			t.Errorf("%s: %d changes", action, len(changes))
		}
		for _, c := range changes {
			if c.Action != action || len(c.Fields) == 0 {
				t.Errorf("%s: %+v", action, c)
			}
		}
	}
}

func TestSummaryIsKeptAsJSON(t *testing.T) {
	want := revision.Summarise(revision.Compare(checkin.Bootstrap(), lab()))
	encoded, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got revision.Summary
	if err := json.Unmarshal(encoded, &got); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%s: %v", encoded, err)
	}
}
