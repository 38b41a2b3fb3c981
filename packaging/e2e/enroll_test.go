//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"opensource.internal/e2e/internal/machine"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/wait"
)

// TestEnroll makes a host an agent with the command that a fresh manager prints,
// and nothing else.
func TestEnroll(t *testing.T) {
	t.Parallel()
	wires := network.NewSwitch(t, "enroll", "203.0.113.128/27")
	wires.Plug(t, "enroll-host", wires.Host(10), "")
	host := machine.Boot(t, "enroll-host", machine.Options{Suite: machine.Debian12, Namespace: "enroll-host"})
	host.Install(t, deb(t, "opensource-manager"), deb(t, "opensource-agent"))
	host.Run(t, "sed", "-i", "s/^#LOG_LEVEL=info$/LOG_LEVEL=debug/", "/etc/opensource-agent/agent.env")

	admin := strings.TrimSpace(host.Run(t, "opensource-manager", "apikey", "create", "--role", "admin"))
	api := func(key, method, path, body string) string {
		out, _ := host.Try("curl", "-sS", "-X", method, "-H", "Authorization: Bearer "+key, "-H", "Content-Type: application/json",
			"--data", body, "http://127.0.0.1:3000/api/v1"+path)
		return out
	}
	if out := api(admin, "POST", "/sites", `{"name":"home"}`); !strings.Contains(out, `"id":1`) {
		t.Fatalf("create site: %s", out)
	}
	token := func() string {
		command := host.Run(t, "opensource-manager", "enroll", "home", "--public-url", "http://127.0.0.1:3000")
		_, enroll, found := strings.Cut(strings.TrimSpace(command), "&& sudo ")
		if !found {
			t.Fatalf("the command is %s", command)
		}
		return enroll
	}
	enroll := token()
	if out := host.Run(t, "sh", "-c", enroll); !strings.Contains(out, "enroll-host of site 1") {
		t.Errorf("it says: %s", out)
	}

	for path, want := range map[string]string{
		"/etc/opensource-agent/api-key": "600 root:root\n", "/etc/opensource-agent/agent.env": "640 root:root\n",
	} {
		if got := host.Run(t, "stat", "-c", "%a %U:%G", path); got != want {
			t.Errorf("%s is %s", path, got)
		}
	}
	settings := host.Read(t, "/etc/opensource-agent/agent.env")
	for _, line := range []string{"# These settings win over /etc/environment.", "LOG_LEVEL=debug", "SITE_ID=1", "API_KEY_FILE=/etc/opensource-agent/api-key"} {
		if !strings.Contains(settings, line) {
			t.Errorf("%q is not in the settings:\n%s", line, settings)
		}
	}
	if code, out := host.ExitCode(t, "opensource-agent", "check"); code != 0 {
		t.Errorf("check: exit code %d\n%s", code, out)
	}
	host.Run(t, "systemctl", "start", "opensource-agent.service")
	before := host.Property(t, "opensource-agent.service", "InvocationID")
	wait.For(t, passInterval, "a pass of the timer", func() error {
		if now := host.Property(t, "opensource-agent.service", "InvocationID"); now == before {
			return fmt.Errorf("still the pass %s", now)
		}
		if result := host.Property(t, "opensource-agent.service", "Result"); result != "success" {
			return fmt.Errorf("its result is %s:\n%s", result, host.Journal("opensource-agent.service"))
		}
		return nil
	})
	if out := host.Run(t, "opensource-manager", "agents", "--state", "online"); !strings.Contains(out, "enroll-host") {
		t.Errorf("online agents:\n%s", out)
	}

	key := strings.TrimSpace(host.Read(t, "/etc/opensource-agent/api-key"))
	if out := api(key, "POST", "/agents", `{"siteId":1,"hostname":"thief","currentTime":1,"ipv4Address":null,"services":{}}`); !strings.Contains(out, `"wrong_host"`) {
		t.Errorf("a copied key on another host: %s", out)
	}
	if code, out := host.ExitCode(t, "sh", "-c", enroll); code != 2 || !strings.Contains(out, "--force") {
		t.Errorf("again: exit code %d, %s", code, out)
	}
	if code, out := host.ExitCode(t, "sh", "-c", enroll+" --force"); code != 3 || !strings.Contains(out, "was used by") {
		t.Errorf("the token again: exit code %d, %s", code, out)
	}
	if code, out := host.ExitCode(t, "sh", "-c", token()+" --force"); code != 0 {
		t.Errorf("another token: exit code %d, %s", code, out)
	}
	if again := strings.TrimSpace(host.Read(t, "/etc/opensource-agent/api-key")); again == key {
		t.Error("the key is the same")
	}
	for _, unit := range []string{"opensource-agent.service", "opensource-manager.service"} {
		if strings.Contains(host.Journal(unit), key) {
			t.Errorf("the key is in the journal of %s", unit)
		}
	}
}
