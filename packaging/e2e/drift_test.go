//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"html"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/e2e/internal/wait"
)

// editedFiles edits managed files by hand, while the manager has nothing new.
// One of them is a symbolic link to a place that somebody has chosen, both have
// an owner and a mode that somebody has chosen.
func editedFiles(t *testing.T, s *site) {
	const conf, chosen, hosts = "/etc/nginx/nginx.conf", "/srv/config/nginx.conf", "/var/lib/dnsmasq/hosts"
	s.Run(t, "install", "-D", "--mode=0640", "--group=adm", conf, chosen)
	s.Run(t, "ln", "--symbolic", "--force", "../../srv/config/nginx.conf", conf)
	s.Run(t, "chown", "daemon:adm", hosts)
	s.Run(t, "chmod", "0664", hosts)
	look := func() string { return s.Run(t, "stat", "--printf", `%N %U:%G %a\n`, conf, chosen, hosts) }
	looks, running, names, loads := look(), s.Read(t, chosen), s.Read(t, hosts), s.loads(t)
	s.wantPass(t, 0)
	if now := s.loads(t); now["nginx"] != loads["nginx"] || now["dnsmasq"] != loads["dnsmasq"] {
		t.Error("nginx or dnsmasq was reloaded for the place, the owner and the mode of a file")
	}

	for _, edit := range []struct {
		name                string
		conf, hosts         string
		confDiff, hostsDiff string
	}{
		{
			"lines more and other ones", running + "# by hand\n", strings.Replace(names, s.webAddress.String()+" web.", s.wires.Host(99).String()+" web.", 1),
			"+# by hand", "+" + s.wires.Host(99).String() + " web.lab.internal web",
		},
		{"emptied", "", "", "-user www-data;", "-" + s.webAddress.String() + " web.lab.internal web"},
	} {
		t.Run(edit.name, func(t *testing.T) {
			s.edit(t, chosen, edit.conf)
			s.edit(t, hosts, edit.hosts)
			s.wantPass(t, 0)
			if s.Read(t, chosen) != running || s.Read(t, hosts) != names {
				t.Error("they are not as they were")
			}
			if now := look(); now != looks {
				t.Errorf("owner, mode or place are\n%swere\n%s", now, looks)
			}
			s.wantServed(t)
			if err := s.dig("web.lab.internal", "A", s.webAddress.String()); err != nil {
				t.Error(err)
			}
			wait.For(t, reportTimeout, "the edits on the manager", func() error {
				agent, err := s.manager.agent(s.id)
				if err != nil {
					return err
				}
				return errors.Join(
					checkDrift(agent.Drift["nginx"].Files, conf, edit.confDiff),
					checkDrift(agent.Drift["dnsmasq"].Files, hosts, edit.hostsDiff),
				)
			})
			if page := html.UnescapeString(s.manager.agentPage(t, s.id)); !strings.Contains(page, edit.confDiff) || !strings.Contains(page, edit.hostsDiff) {
				t.Error("the agent's page does not show what was edited")
			}
		})
	}

	s.Run(t, "mv", chosen, conf)
	s.Run(t, "chown", "root:root", conf, hosts)
	s.Run(t, "chmod", "0644", conf, hosts)
	s.wantPass(t, 0)
}

// edit changes a file as an editor does that writes in place.
func (s *site) edit(t *testing.T, path, content string) {
	t.Helper()
	s.Write(t, "/root/edited", content, 0o600)
	s.Run(t, "dd", "if=/root/edited", "of="+path, "status=none")
}

// checkDrift wants a report of one edited file, with a line in its diff.
func checkDrift(files []checkin.Drift, path, line string) error {
	if len(files) != 1 || files[0].Path != path || !strings.Contains(files[0].Diff, "\n"+line) {
		return fmt.Errorf("reported is %+v, want %s with %q", files, path, line)
	}
	return nil
}
