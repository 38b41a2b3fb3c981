//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
)

// troubledDisks puts nginx.conf onto a disk without any room, and then makes it
// a mount of its own, which no rename can replace.
func troubledDisks(t *testing.T, s *site) {
	const folder, conf, filler = "/etc/nginx", "/etc/nginx/nginx.conf", "/etc/nginx/filler"
	service, name := s.http(t, "disk", s.domain, 8080), s.host("disk")+".example.test"
	s.wantPass(t, 0)
	s.Run(t, "mkdir", "/srv/nginx")
	s.Run(t, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/srv/nginx")
	s.Run(t, "cp", "-a", folder+"/.", "/srv/nginx/")
	s.Run(t, "mount", "--bind", "/srv/nginx", folder)
	s.Run(t, "umount", "/srv/nginx")

	old := 8080
	for _, trouble := range []struct {
		name, words string
		port, node  int // what is to be in force then
		make, end   func()
	}{
		{
			"full", "no space left on device", 8081, 4,
			func() { _, _ = s.Try("dd", "if=/dev/zero", "of="+filler) },
			func() { s.Run(t, "rm", filler) },
		},
		{
			"a mount", "device or resource busy", 8080, 3,
			func() { s.Run(t, "mount", "--bind", conf, conf) },
			func() { s.Run(t, "umount", conf) },
		},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			node := s.wires.Host(trouble.node).String()
			running := s.Read(t, conf)
			s.manager.change(t, fmt.Sprintf("/services/%d", service), object{"internalPort": trouble.port})
			s.manager.change(t, fmt.Sprintf("/nodes/%d", s.node), object{"ipv4Address": node})
			trouble.make()
			s.wantPass(t, 4)
			if now := s.Read(t, conf); now != running {
				t.Errorf("nginx.conf is\n%s", now)
			}
			if err := s.serves(name, s.backend(old)); err != nil {
				t.Error(err)
			}
			if err := s.dig("pve1.lab.internal", "A", node); err != nil {
				t.Errorf("dnsmasq has room: %v", err)
			}
			s.wantNoLeftovers(t)
			report := s.manager.waitForReport(t, s.id, "nginx", checkin.ApplyFailure)
			if report.Outcome != checkin.OutcomeRejected || !strings.Contains(report.Message, trouble.words) || !strings.Contains(report.Message, conf) {
				t.Errorf("reported as %+v", report)
			}
			trouble.end()
			s.letTimePass(t, firstPause)
			s.wantPass(t, 0)
			if err := s.serves(name, s.backend(trouble.port)); err != nil {
				t.Error(err)
			}
			old = trouble.port
		})
	}

	s.Run(t, "umount", folder)
	s.manager.remove(t, fmt.Sprintf("/services/%d", service))
	s.wantPass(t, 0)
}
