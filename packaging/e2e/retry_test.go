//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
)

// firstPause is the pause after a first failure; each is twice the one before.
const firstPause = 30 * time.Second

// brokenDropIn breaks a file of nginx that is not the agent's, and lets twenty
// passes come by: ten minutes, in which nginx has little work and no reload.
func brokenDropIn(t *testing.T, s *site) {
	const dropIn = "/etc/nginx/conf.d/limits.conf"
	service := s.http(t, "late", s.domain, 8081)
	s.wantPass(t, 0)
	s.countTests(t)
	defer s.Run(t, "rm", "/usr/local/sbin/nginx")

	running, processes, loads := s.Read(t, "/etc/nginx/nginx.conf"), s.nginxProcesses(t), s.loads(t)
	s.Write(t, dropIn, "limit_everything on;\n", 0o644)
	s.manager.change(t, fmt.Sprintf("/services/%d", service), object{"internalPort": 8080})
	var tried []int
	for pass := 1; pass <= 20; pass++ {
		before := s.tests(t)
		s.wantPass(t, 4)
		for range s.tests(t) - before {
			tried = append(tried, pass)
		}
		s.letTimePass(t, 30*time.Second)
	}
	if want := []int{1, 2, 4, 8, 16}; !slices.Equal(tried, want) {
		t.Errorf("of the passes that come every 30 seconds, nginx was asked in number %v, want %v", tried, want)
	}

	t.Run("is blamed on no record", func(t *testing.T) {
		report := s.manager.waitForReport(t, s.id, "nginx", checkin.ApplyFailure)
		if report.Outcome != checkin.OutcomeRejected || len(report.Quarantined) > 0 || !strings.HasPrefix(report.Message, "the fault is in "+dropIn+",") ||
			!strings.Contains(report.Message, `unknown directive "limit_everything"`) {
			t.Errorf("reported as %+v", report)
		}
	})
	for _, trigger := range []struct {
		name string
		pass func(*testing.T)
	}{
		{"a person does not wait", func(t *testing.T) {
			if code, out := s.ExitCode(t, "opensource-agent"); code != 4 {
				t.Errorf("the pass by hand ended with %d:\n%s", code, out)
			}
		}},
		{"nor does another answer of the manager", func(t *testing.T) {
			s.manager.change(t, fmt.Sprintf("/services/%d", service), object{"internalPort": 8082})
			s.wantPass(t, 4)
		}},
		{"nor another template", func(t *testing.T) {
			s.override(t, "nginx/pages.tmpl", "internal;", "internal; # mine")
			s.wantPass(t, 4)
		}},
		{"nor another certificate", func(t *testing.T) {
			valid, until := lastMonthToNext()
			s.putCertificate(t, "example.test", s.authority.issue(t, "example.test", 1004, valid, until))
			s.wantPass(t, 4)
		}},
	} {
		t.Run(trigger.name, func(t *testing.T) {
			before := s.tests(t)
			trigger.pass(t)
			if now := s.tests(t); now != before+1 {
				t.Errorf("nginx was asked %d times, want once", now-before)
			}
			s.wantPass(t, 4)
			if now := s.tests(t); now != before+1 {
				t.Error("the next pass did not wait")
			}
		})
	}
	t.Run("nothing was touched", func(t *testing.T) {
		if now := s.Read(t, "/etc/nginx/nginx.conf"); now != running {
			t.Error("nginx.conf was changed")
		}
		if now := s.loads(t); now["nginx"] != loads["nginx"] {
			t.Errorf("nginx was reloaded %d times", now["nginx"]-loads["nginx"])
		}
		if now := s.nginxProcesses(t); now != processes {
			t.Errorf("the processes of nginx are %s, were %s", now, processes)
		}
		if err := s.serves(s.host("late")+".example.test", s.backend(8081)); err != nil {
			t.Error(err)
		}
		s.wantServed(t)
	})

	s.Run(t, "rm", "-r", dropIn, templateFolder+"nginx")
	s.manager.remove(t, fmt.Sprintf("/services/%d", service))
	s.wantPass(t, 0)
	s.wantServed(t)
}

// countTests has every call of nginx counted from now on.
func (s *site) countTests(t *testing.T) {
	t.Helper()
	s.Write(t, "/usr/local/sbin/nginx", "#!/bin/sh\necho \"$*\" >>/run/nginx-calls\nexec /usr/sbin/nginx \"$@\"\n", 0o755)
	s.Write(t, "/run/nginx-calls", "", 0o644)
}

// tests is how often a configuration was tested since.
func (s *site) tests(t *testing.T) int {
	t.Helper()
	return strings.Count("\n"+s.Read(t, "/run/nginx-calls"), "\n-t ")
}

// nginxProcesses are the ids of the master and of its workers, which every
// reload replaces.
func (s *site) nginxProcesses(t *testing.T) string {
	t.Helper()
	master := s.Property(t, "nginx.service", "MainPID")
	return strings.Join(append([]string{master}, strings.Fields(s.Run(t, "pgrep", "--parent", master))...), " ")
}

// letTimePass puts forward the next try of everything that waits for one, as if
// that much time had passed since the last pass.
func (s *site) letTimePass(t *testing.T, d time.Duration) {
	t.Helper()
	const file = "/var/lib/opensource-agent/state.json"
	var state map[string]any
	decoder := json.NewDecoder(strings.NewReader(s.Read(t, file)))
	decoder.UseNumber() // what is not meant here stays as it is
	if err := decoder.Decode(&state); err != nil {
		t.Fatalf("read the agent's state: %v", err)
	}
	for _, service := range state["services"].(map[string]any) {
		retry, waits := service.(map[string]any)["retry"].(map[string]any)
		if !waits {
			continue
		}
		after, err := time.Parse(time.RFC3339, retry["after"].(string))
		if err != nil {
			t.Fatalf("read the agent's state: %v", err)
		}
		retry["after"] = after.Add(-d)
	}
	changed, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	s.Write(t, file, string(changed), 0o600)
}
