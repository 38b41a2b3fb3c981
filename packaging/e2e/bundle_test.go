//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// supportArchive makes an archive and renders from it what the host runs.
func supportArchive(t *testing.T, s *site) {
	s.wantPass(t, 0)
	code, out := s.ExitCode(t, "sh", "-c", "cd /root && opensource-agent bundle")
	t.Logf("opensource-agent bundle:\n%s", out)
	lines := strings.Fields(out)
	if code != 0 {
		t.Fatalf("ended with %d", code)
	}
	archive := "/root/" + lines[len(lines)-1]
	if mode := s.Run(t, "stat", "--format=%a %U", archive); mode != "600 root\n" {
		t.Errorf("the archive has mode and owner %q", mode)
	}
	if code, _ := s.ExitCode(t, "opensource-agent", "bundle", "--out", archive); code != 2 {
		t.Errorf("over the archive that is there it ended with %d", code)
	}
	s.Run(t, "tar", "-xzf", archive, "-C", "/root", "--one-top-level=site", "--strip-components=1")
	t.Logf("what is in it:\n%s", s.Run(t, "sh", "-c", "cd /root/site && find . -type f -printf '%P %s\n' | sort"))
	t.Logf("README.txt:\n%s", s.Read(t, "/root/site/README.txt"))

	key := regexp.MustCompile(`osk_\w+`).FindString(s.Read(t, "/etc/opensource-agent/agent.env"))
	for _, secret := range []string{key, "PRIVATE KEY"} {
		if found, err := s.Try("grep", "-rl", "--", secret, "/root/site"); err == nil {
			t.Errorf("%.8s… is in %s", secret, found)
		}
	}
	for name, want := range map[string]string{
		"check.txt": "OK    manager: ", "status.txt": "nginx: active", "settings.txt": "SITE_ID is ", "units.txt": "nginx.service: loaded, active, enabled",
		"versions.txt": "nginx version: nginx/", "nginx-test.txt": "accepted", "dnsmasq-test.txt": "accepted", "agent.log": "opensource-agent",
		"dnsmasq.log": "dnsmasq", "state/state.json": "fingerprint", "system/proc/self/mountinfo": " / ",
	} {
		if content := s.Read(t, "/root/site/"+name); !strings.Contains(content, want) {
			t.Errorf("%q is not in %s:\n%s", want, name, content)
		}
	}

	s.Run(t, "opensource-agent", "render", "--snapshot", "/root/site/snapshot.json", "--facts", "/root/site/facts.json",
		"--templates", "/root/site/templates", "--out", "/root/replay")
	s.Run(t, "diff", "-r", "/root/site/rendered", "/root/replay")
	for _, live := range []string{"/etc/nginx/nginx.conf", "/etc/dnsmasq.conf", "/var/lib/dnsmasq/hosts"} {
		s.Run(t, "cmp", live, "/root/replay"+live)
	}
	s.Run(t, "rm", "-r", "/root/site", archive, "/root/replay")
}
