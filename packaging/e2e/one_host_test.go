//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"opensource.internal/e2e/internal/machine"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/wait"
)

// TestOneHost installs both packages on one machine. Two lines of the agent's
// settings that lose their # are all it takes to reach the dashboard.
func TestOneHost(t *testing.T) {
	t.Parallel()
	wires := network.NewSwitch(t, "one", "203.0.113.224/27")
	wires.Plug(t, "one-host", wires.Host(10), "")
	host := machine.Boot(t, "one-host", machine.Options{Suite: machine.Debian13, Namespace: "one-host"})
	host.Install(t, deb(t, "opensource-manager"), deb(t, "opensource-agent"))
	host.Run(t, "sed", "-i", "-E", "s/^#(SITE_ID=1|MANAGER_URL=http:..localhost:3000)$/\\1/", "/etc/opensource-agent/agent.env")

	key := strings.TrimSpace(host.Run(t, "opensource-manager", "apikey", "create", "--role", "admin"))
	api := func(method, path, body string) (string, error) {
		return host.Try("curl", "-sS", "--fail-with-body", "-X", method, "-H", "Authorization: Bearer "+key, "-H", "Content-Type: application/json",
			"--data", body, "http://127.0.0.1:3000/api/v1"+path)
	}
	dashboard := func() error {
		out, err := exec.Command("curl", "--silent", "--show-error", "--fail", "--insecure", "--max-time", "5",
			"https://"+wires.Host(10).String()+"/setup").CombinedOutput()
		if err == nil && !strings.Contains(string(out), "password") {
			err = fmt.Errorf("it is %q", out)
		}
		return err
	}
	wait.For(t, passInterval, "the dashboard of a fresh manager over HTTPS", dashboard)
	if list, err := api("GET", "/agents", ""); err != nil || strings.Contains(list, "one-host") {
		t.Errorf("the check-in for a site that does not exist was recorded: %s, %v", list, err)
	}

	if out, err := api("POST", "/sites", `{"name":"home"}`); err != nil {
		t.Fatalf("create site: %v: %s", err, out)
	}
	wait.For(t, passInterval, "the agent on the list", func() error {
		list, err := api("GET", "/agents", "")
		if err == nil && !strings.Contains(list, `"hostname":"one-host"`) {
			err = fmt.Errorf("the list is %s", list)
		}
		return err
	})
	if err := dashboard(); err != nil {
		t.Errorf("the dashboard once the site exists: %v", err)
	}
	// What comes through nginx is not loopback, whatever it claims.
	status, err := exec.Command("curl", "--silent", "--insecure", "--max-time", "5", "-o", "/dev/null", "-w", "%{http_code}",
		"-H", "X-Forwarded-For: 127.0.0.1", "-H", "Content-Type: application/json",
		"--data", `{"siteId":1,"hostname":"intruder","currentTime":1,"ipv4Address":null,"services":{}}`,
		"https://"+wires.Host(10).String()+"/api/v1/agents").Output()
	if err != nil || string(status) != "401" {
		t.Errorf("a check-in from outside without a key gets %s, want 401; %v", status, err)
	}

	host.Run(t, "opensource-manager", "apikey", "create", "--role", "agent", "--site", "1")
	if code, out := host.ExitCode(t, "opensource-agent"); code != 3 || !strings.Contains(out, "401") {
		t.Errorf("trust in loopback goes on after the site's first key: exit code %d\n%s", code, out)
	}
}
