//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
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
	defer func() {
		// Programs that look for the journal need the right name of its folder.
		s.Write(t, "/etc/machine-id", original, 0o444)
		s.wantPass(t, 0) // it begins anew once more
	}()

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

// renamed gives the machine another host name: to the manager it is another
// agent then, and the old one stays until somebody deletes it.
func renamed(t *testing.T, s *site) {
	loads := s.loads(t)
	s.Run(t, "hostname", s.Name+"-2")
	said, err := s.Try("opensource-agent")
	if err != nil || !strings.Contains(said, "checking in under a new name: the manager lists the old one as an agent of its own old="+s.Name+" new="+s.Name+"-2") {
		t.Errorf("%v:\n%s", err, said)
	}
	all, err := s.manager.agents(s.id)
	if err != nil || len(all) != 2 || all[1].Hostname != s.Name+"-2" || all[1].Services["nginx"].LastApply != checkin.ApplySuccess {
		t.Errorf("the agents of the site are %+v, %v", all, err)
	}
	s.wantServed(t)
	if now := s.loads(t); now["nginx"] != loads["nginx"] || now["dnsmasq"] != loads["dnsmasq"] {
		t.Error("nginx or dnsmasq was reloaded for another name of the host")
	}

	s.Run(t, "hostname", s.Name)
	s.wantPass(t, 0)
	for _, a := range all {
		if a.Hostname != s.Name {
			s.manager.remove(t, fmt.Sprintf("/agents/%d", a.ID))
		}
	}
}
