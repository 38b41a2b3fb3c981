//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/e2e/internal/wait"
)

// heldService holds nginx while somebody works on its configuration by hand.
func heldService(t *testing.T, s *site) {
	running := s.Read(t, "/etc/nginx/nginx.conf")
	said := s.Run(t, "env", "SUDO_USER=alice", "opensource-agent", "hold", "nginx", "--for", "2h", "--reason", "moving certificates")
	if !strings.HasPrefix(said, "nginx is held until ") || !strings.Contains(said, "by alice: moving certificates") {
		t.Errorf("hold says %q", said)
	}
	byHand := running + "# by hand\n"
	s.Write(t, "/etc/nginx/nginx.conf", byHand, 0o644)
	service := s.http(t, "later", s.domain, 8081)
	container := s.manager.create(t, fmt.Sprintf("/sites/%d/containers", s.id), object{
		"nodeId": s.node, "hostname": "later", "ipv4Address": s.wires.Host(23).String(), "macAddress": "02:00:00:00:01:23",
	})
	s.wantPass(t, 0)
	s.wantPass(t, 0)
	if s.Read(t, "/etc/nginx/nginx.conf") != byHand {
		t.Error("nginx.conf was written although nginx is held")
	}
	s.wantServed(t)
	if err := s.dig("later.lab.internal", "A", s.wires.Host(23).String()); err != nil {
		t.Errorf("dnsmasq is not held: %v", err)
	}
	agent, err := s.manager.agent(s.id)
	if err != nil {
		t.Fatal(err)
	}
	report := agent.Services["nginx"]
	if report.Outcome != checkin.OutcomeHeld || report.LastApply != checkin.ApplySuccess || report.Hold == nil || report.Hold.By != "alice" || time.Until(report.Hold.Until) < time.Hour {
		t.Errorf("nginx is reported as %+v", report)
	}
	if page := s.manager.page(t); !strings.Contains(page, "moving certificates") {
		t.Error("/agents does not show why nginx is held")
	}

	if said := s.Run(t, "opensource-agent", "release", "nginx"); !strings.Contains(said, "nginx is released") {
		t.Errorf("release says %q", said)
	}
	s.wantPass(t, 0)
	if err := s.serves(s.host("later")+".example.test", s.backend(8081)); err != nil {
		t.Errorf("what was due after the hold: %v", err)
	}

	// A hold ends by itself.
	s.Run(t, "opensource-agent", "hold", "nginx", "--for", "2s")
	s.manager.remove(t, fmt.Sprintf("/services/%d", service))
	s.manager.remove(t, fmt.Sprintf("/containers/%d", container))
	wait.For(t, 20*time.Second, "the end of the hold", func() error {
		s.wantPass(t, 0)
		if s.Read(t, "/etc/nginx/nginx.conf") != running {
			return fmt.Errorf("the hold goes on: %s", s.Run(t, "opensource-agent", "hold"))
		}
		return nil
	})
	s.manager.waitForReport(t, s.id, "nginx", checkin.ApplySuccess)
}
