//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// clone gives the machine another identity, as a clone of it has one: its state
// is that of another host.
func clone(t *testing.T, s *site) {
	original := s.Read(t, "/etc/machine-id")
	processes := func() string {
		return s.Property(t, "nginx.service", "MainPID") + " " + s.Property(t, "dnsmasq.service", "MainPID")
	}
	running, before := s.Read(t, "/etc/nginx/nginx.conf"), processes()
	s.Write(t, "/etc/machine-id", "fedcba9876543210fedcba9876543210\n", 0o444)
	// Programs that look for the journal need the right name of its folder.
	defer s.Write(t, "/etc/machine-id", original, 0o444)

	told, err := s.Try("opensource-agent", "run")
	if err != nil || !strings.Contains(told, "seems to be a clone") {
		t.Errorf("%v:\n%s", err, told)
	}
	told, err = s.Try("opensource-agent", "run")
	if err != nil || strings.Contains(told, "clone") {
		t.Errorf("%v:\n%s", err, told)
	}
	if s.Read(t, "/etc/nginx/nginx.conf") != running || processes() != before {
		t.Error("a clone changed what runs although nothing differs")
	}
	s.wantServed(t)
}
