package pass

import (
	"context"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
)

// A snapshot that was accepted by a pass that was told to stop before it could
// apply anything is applied by the next one, and is not reported as running.
func TestASnapshotThatAStoppedPassLeftIsApplied(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.take()

	changed := lab()
	changed.NGINX.HTTPServices[0].ExternalHostname = "later"
	changed.Site.Nodes[0].Containers[0].Hostname, changed.Site.DNSRecords[0].Target = "later", "later"
	s.publish(changed)
	p, unlock, err := begin(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	before := *p.state.Running
	if _, err := p.accept(checkin.Answer{ETag: s.etag, Data: s.data, Snapshot: changed}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	p.ensure(ctx)
	if *p.state.Running != before {
		t.Errorf("running = %+v although nothing was applied", p.state.Running)
	}
	p.close()
	unlock()

	s.pass(Settled)
	if !strings.Contains(s.read("etc/nginx/nginx.conf"), "later.example.com") || !strings.Contains(s.read("var/lib/dnsmasq/hosts"), "later.lab.internal") {
		t.Error("the snapshot was never applied")
	}
	requests, statuses := s.take()
	if statuses[0] != 304 || last(t, requests).Running.ETag != s.etag {
		t.Errorf("answers %v, running %+v", statuses, last(t, requests).Running)
	}
}
