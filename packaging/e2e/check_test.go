//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"opensource.internal/e2e/internal/wait"
)

// check breaks one thing after the other that a pass depends on, and wants each
// to be found and named.
func check(t *testing.T, s *site) {
	s.Run(t, "systemctl", "start", "opensource-agent.timer")
	s.wantPass(t, 0)

	t.Run("all is well", func(t *testing.T) {
		started := time.Now()
		code, out := s.ExitCode(t, "opensource-agent", "check")
		t.Logf("after %v:\n%s", time.Since(started).Round(time.Millisecond), out)
		if code != 0 || strings.Contains("\n"+out, "\nWARN") || strings.Contains("\n"+out, "\nFAIL") {
			t.Errorf("ended with %d", code)
		}
		for _, line := range []string{
			"OK    settings: API_KEY is set, from /etc/opensource-agent/agent.env", "OK    systemd: version ", "OK    timer: ",
			"OK    last pass: it ended at ", "OK    manager: " + s.manager.URL + " answers", "OK    clock: within ", "of the agent of site ",
			"OK    port 80/tcp: nginx listens", "OK    port 53/udp: dnsmasq listens", "OK    port 67/udp: dnsmasq listens", "OK    nginx configuration: nginx accepts",
		} {
			if !strings.Contains(out, line) {
				t.Errorf("%q is missing", line)
			}
		}
	})
	t.Run("the stub of a resolver is not in the way", func(t *testing.T) {
		s.listen(t, "stub", "--datagram", "127.0.0.53:53")
		s.wantFound(t, 0, "OK    port 53/udp: dnsmasq listens")
	})
	t.Run("a wrong key", func(t *testing.T) {
		s.wantFoundWith(t, 4, "API_KEY=osk_0123456789abcdef_"+strings.Repeat("0", 64),
			"WARN  settings: API_KEY is set here, from the environment; the timer's passes have another one, from /etc/opensource-agent/agent.env",
			"FAIL  API key: the manager does not know it", "opensource-manager enroll ")
	})
	t.Run("nobody where the manager should be", func(t *testing.T) {
		s.wantFoundWith(t, 4, "MANAGER_URL="+strings.Replace(s.manager.URL, ":3000", ":3999", 1), "FAIL  manager: no connection to ", "connection refused")
	})
	t.Run("a clock that is wrong", func(t *testing.T) {
		s.wantFoundWith(t, 0, "MANAGER_URL="+s.managerOfTheDayBefore(t), "WARN  clock: it is 2", "h", " ahead of the manager's. To do: timedatectl set-ntp true")
	})
	t.Run("a mistake in the settings", func(t *testing.T) {
		s.wantFoundWith(t, 2, "SITE_ID=one", `FAIL  settings: SITE_ID: "one" is not a site number`, "OK    nginx.service: active and enabled", "OK    leftovers: none")
	})
	t.Run("a key that everybody can read", func(t *testing.T) {
		s.Run(t, "chmod", "0644", "/etc/opensource-agent/agent.env")
		defer s.Run(t, "chmod", "0640", "/etc/opensource-agent/agent.env")
		s.wantFound(t, 0, "WARN  key file: every user of this host may read the key in /etc/opensource-agent/agent.env (mode 0644). To do: chmod 640 ")
	})
	t.Run("a template older than its original", func(t *testing.T) {
		const override = "/etc/opensource-agent/templates/nginx/pages.tmpl"
		s.Run(t, "install", "-D", "/usr/share/opensource-agent/templates/nginx/pages.tmpl", override)
		s.Run(t, "touch", "--date=2020-01-01", override)
		defer s.Run(t, "rm", override)
		s.wantFound(t, 0, "WARN  templates: "+override+" is older than the original of this version")
	})
	t.Run("not root", func(t *testing.T) {
		code, out := s.ExitCode(t, "runuser", "-u", "nobody", "--", "opensource-agent", "check")
		if code != 2 || !strings.Contains(out, "WARN  user: you are not root") || !strings.Contains(out, "OK    leftovers: none") {
			t.Errorf("ended with %d:\n%s", code, out)
		}
	})

	s.stopTimer(t) // it would put right what follows
	t.Run("no timer", func(t *testing.T) {
		s.wantFound(t, 4, "FAIL  timer: opensource-agent.timer is inactive: no pass is started")
	})
	t.Run("port 80 in other hands", func(t *testing.T) {
		s.Run(t, "systemctl", "stop", "nginx") // which has failed then if it took more than five seconds
		pid := s.listen(t, "old-website", "80")
		s.wantFound(t, 4, "FAIL  nginx.service: it is ", ". To do: journalctl -u nginx",
			"FAIL  port 80/tcp: process "+pid+" (systemd-socket- of old-website.service) has ", "To do: systemctl disable --now old-website.service")
	})
	s.wantPass(t, 0)
	t.Run("a resolver in the way", func(t *testing.T) {
		s.Run(t, "systemctl", "stop", "dnsmasq")
		pid := s.listen(t, "old-resolver", "--datagram", "53")
		s.wantFound(t, 4, "FAIL  port 53/udp: process "+pid+" (systemd-socket- of old-resolver.service) has ", "FAIL  port 53/tcp: nobody listens")
	})
	s.wantPass(t, 0)
}

// wantFound wants a check to end with a code and to say all of the words.
func (s *site) wantFound(t *testing.T, code int, words ...string) {
	t.Helper()
	s.wantFoundWith(t, code, "LC_ALL=C", words...)
}

// wantFoundWith is wantFound with one variable of the shell's.
func (s *site) wantFoundWith(t *testing.T, code int, variable string, words ...string) {
	t.Helper()
	got, out := s.ExitCode(t, "env", variable, "opensource-agent", "check")
	missing := got != code
	for _, word := range words {
		missing = missing || !strings.Contains(out, word)
	}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "OK") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if missing {
		t.Errorf("ended with %d, want %d and %q:\n%s", got, code, words, out)
	}
}

// listen has a process of the machine listen until the test ends, in a unit of
// that name, and returns its id.
func (s *site) listen(t *testing.T, unit string, args ...string) string {
	t.Helper()
	at := args[len(args)-1]
	s.Run(t, "systemd-run", append(append([]string{"--quiet", "--unit=" + unit, "systemd-socket-activate"}, args[:len(args)-1]...), "--listen="+at, "/bin/cat")...)
	t.Cleanup(func() { s.Run(t, "systemctl", "stop", unit+".service") })
	port := at[strings.LastIndexByte(at, ':')+1:]
	wait.For(t, 10*time.Second, unit+" to listen", func() error {
		_, err := s.Try("sh", "-c", "ss -Hlnp 'sport = :"+port+"' | grep -q systemd-socket-")
		return err
	})
	return s.Property(t, unit+".service", "MainPID")
}
