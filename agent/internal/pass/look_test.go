package pass

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/render"
)

func TestOnlyTheServedPairOfTheDashboardIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		usable, snapshot, want []string
	}{
		"none":                    {nil, nil, []string{"m.example.com"}},
		"the parent's":            {[]string{"example.com"}, nil, []string{"example.com"}},
		"both":                    {[]string{"example.com", "m.example.com"}, nil, []string{"m.example.com"}},
		"its own":                 {[]string{"m.example.com"}, nil, []string{"m.example.com"}},
		"its own, parent in use":  {[]string{"m.example.com"}, []string{"example.com"}, []string{"example.com", "m.example.com"}},
		"none, parent in use":     {nil, []string{"example.com"}, []string{"example.com", "m.example.com"}},
		"parent's, parent in use": {[]string{"example.com"}, []string{"example.com"}, []string{"example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := pass{Options: Options{ManagerHostname: "m.example.com"}, facts: host.Facts{
				Certificates: map[string]checkin.Certificate{"example.com": {}, "m.example.com": {}},
				Usable:       map[string]render.CertificateFact{},
			}}
			for _, domain := range test.usable {
				p.facts.Usable[domain] = render.CertificateFact{}
			}
			for _, domain := range test.snapshot {
				p.accepted = state.Accepted{Snapshot: checkin.Snapshot{NGINX: checkin.NGINX{ExternalDomains: []checkin.ExternalDomain{{Name: domain}}}}}
			}
			p.forgetUnusedPairs(p.facts)
			if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(p.facts.Certificates))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutAManagerOnThisHostItsNameNeedsNoCertificate(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	for upstream, want := range map[string][]string{"": {"example.com"}, "127.0.0.1:3000": {"example.com", "manager.example.org"}} {
		options := s.options()
		options.ManagerUpstream, options.ManagerHostname = upstream, "manager.example.org"
		if code := Run(t.Context(), options); code != Settled {
			t.Errorf("exit code %d", code)
		}
		requests, _ := s.take()
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(last(t, requests).Certificates))); diff != "" {
			t.Errorf("upstream %q (-want +got):\n%s", upstream, diff)
		}
	}
}
