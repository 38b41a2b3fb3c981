//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"opensource.internal/e2e/internal/machine"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/standin"
	"opensource.internal/e2e/internal/wait"
)

// TestManagerPackage follows the manager's package from the installation to
// its purge.
func TestManagerPackage(t *testing.T) {
	t.Parallel()
	wires := network.NewSwitch(t, "pkg-manager", "203.0.113.192/27")
	wires.Plug(t, "pkg-manager", wires.Host(10), "")
	m := machine.Boot(t, "pkg-manager", machine.Options{Suite: machine.Debian12, Namespace: "pkg-manager"})

	for _, step := range []struct {
		name string
		run  func(*testing.T, *machine.Machine)
	}{
		{"commands before the first serve leave the database to the service", commandsBeforeServe},
		{"the service runs confined", serviceConfined},
		{"it stops well under a second", stopsFast},
		{"shells complete its commands", completionsInstalled},
		{"an upgrade loses no answered check-in", upgradeUnderLoad},
		{"settings survive an upgrade", managerSettingsSurvive},
		{"remove and purge", managerRemoveAndPurge},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, m) }) {
			t.Logf("journal:\n%s", m.Journal("opensource-manager.service"))
		}
	}
}

// commandsBeforeServe installs with the start of services forbidden, as image
// builders do.
func commandsBeforeServe(t *testing.T, m *machine.Machine) {
	m.Write(t, "/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)
	m.Install(t, deb(t, "opensource-manager"))
	m.Run(t, "rm", "/usr/sbin/policy-rc.d")
	key := strings.TrimSpace(m.Run(t, "opensource-manager", "apikey", "create", "--role", "admin"))
	if key == "" || strings.ContainsAny(key, " \n") {
		t.Errorf("apikey create prints %q, want the key alone", key)
	}
	if foreign := m.Run(t, "find", "/var/lib/opensource-manager", "!", "-user", "opensource-manager"); foreign != "" {
		t.Errorf("not of the service's user:\n%s", foreign)
	}
	m.Run(t, "systemctl", "start", "opensource-manager.service")
	status := m.Run(t, "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Authorization: Bearer "+key,
		"http://127.0.0.1:3000/api/v1/sites")
	if status != "200" {
		t.Errorf("the key made before the first start gets %s", status)
	}
	m.Run(t, "opensource-manager", "apikey", "list")
}

func serviceConfined(t *testing.T, m *machine.Machine) {
	user := m.Run(t, "ps", "-o", "user:32=", "-p", m.Property(t, "opensource-manager.service", "MainPID"))
	if strings.TrimSpace(user) != "opensource-manager" {
		t.Errorf("the service runs as %s", user)
	}
	if mode := m.Run(t, "stat", "-c", "%a %U:%G", "/var/lib/opensource-manager"); mode != "750 opensource-manager:opensource-manager\n" {
		t.Errorf("its folder is %s", mode)
	}
	if health := m.Run(t, "curl", "-sS", "http://127.0.0.1:3000/api/v1/health"); !strings.Contains(health, `"data"`) {
		t.Errorf("health answers %s", health)
	}
	// State, connections waiting, how many may wait, address.
	listener := strings.Fields(m.Run(t, "ss", "-Htln", "sport = :3000"))
	if len(listener) < 4 || listener[3] != "127.0.0.1:3000" {
		t.Fatalf("it listens on: %v", listener)
	}
	if queue, err := strconv.Atoi(listener[2]); err != nil || queue < 1024 {
		t.Errorf("only %s agents may knock at the same moment", listener[2])
	}
}

func stopsFast(t *testing.T, m *machine.Machine) {
	start := time.Now()
	m.Run(t, "systemctl", "stop", "opensource-manager.service")
	if took := time.Since(start); took > time.Second {
		t.Errorf("stopping took %v", took)
	}
	if result := m.Property(t, "opensource-manager.service", "Result"); result != "success" {
		t.Errorf("it ended with %s", result)
	}
	m.Run(t, "systemctl", "start", "opensource-manager.service")
}

func completionsInstalled(t *testing.T, m *machine.Machine) {
	for _, file := range []string{
		"/usr/share/bash-completion/completions/opensource-manager",
		"/usr/share/zsh/vendor-completions/_opensource-manager",
		"/usr/share/fish/vendor_completions.d/opensource-manager.fish",
	} {
		if script := m.Read(t, file); !strings.Contains(script, "apikey") {
			t.Errorf("%s does not know apikey", file)
		}
	}
}

// checkInLoop checks in as one of 40 hosts after the other, each time with a
// new message, and notes what was answered.
const checkInLoop = `n=1000000
while [ -e /run/checking-in ]; do
	n=$((n + 1)) host=host-$((n % 40))
	code=$(curl -s -m 5 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $1" -H 'Content-Type: application/json' \
		-d '{"siteId":1,"hostname":"'$host'","currentTime":1,"services":{"nginx":{"state":"active","message":"'$n'"}}}' http://127.0.0.1:3000/api/v1/agents)
	[ "$code" != 200 ] || echo "$host $n" >>/run/answered
done`

// upgradeUnderLoad installs another version while agents check in. All that
// was answered is there afterwards, from before the upgrade and from after it.
func upgradeUnderLoad(t *testing.T, m *machine.Machine) {
	key := strings.TrimSpace(m.Run(t, "opensource-manager", "apikey", "create", "--role", "admin"))
	m.Run(t, "curl", "-sSf", "-H", "Authorization: Bearer "+key, "-H", "Content-Type: application/json", "-d", `{"name":"lab"}`, "http://127.0.0.1:3000/api/v1/sites")
	m.Write(t, "/run/checking-in", "", 0o600)
	m.Run(t, "systemd-run", "--unit=checking-in", "sh", "-c", checkInLoop, "sh", key)
	answered := func() int {
		code, lines := m.ExitCode(t, "cat", "/run/answered")
		if code != 0 {
			return 0
		}
		return strings.Count(lines, "\n")
	}
	more := func(when string) int {
		t.Helper()
		before := answered()
		wait.For(t, 30*time.Second, "check-ins "+when, func() error {
			if n := answered(); n < before+100 {
				return fmt.Errorf("%d answered", n)
			}
			return nil
		})
		return answered()
	}
	more("before the upgrade")
	pid := m.Property(t, "opensource-manager.service", "MainPID")
	m.Install(t, standin.Newer(t, deb(t, "opensource-manager"), "2026.12.0+again"))
	if now := m.Property(t, "opensource-manager.service", "MainPID"); now == pid {
		t.Error("the upgrade left the old program running")
	}
	more("after the upgrade")
	m.Run(t, "rm", "/run/checking-in")
	wait.For(t, 10*time.Second, "the last check-in", func() error {
		if state := m.Property(t, "checking-in.service", "ActiveState"); state == "active" {
			return errors.New(state)
		}
		return nil
	})

	var agents []struct {
		Hostname string
		Services map[string]struct{ Message string }
	}
	if err := json.Unmarshal([]byte(m.Run(t, "opensource-manager", "agents", "--json")), &agents); err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{}
	for _, agent := range agents {
		stored[agent.Hostname] = agent.Services["nginx"].Message
	}
	for line := range strings.Lines(m.Read(t, "/run/answered")) {
		host, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if stored[host] < number { // all of one length
			t.Errorf("%s was answered with %s, and %q is stored", host, number, stored[host])
		}
	}
}

func managerSettingsSurvive(t *testing.T, m *machine.Machine) {
	edited := "# edited\nLISTEN=127.0.0.1:3001\nPUBLIC_URL=https://manager.example.com\n"
	m.Write(t, "/etc/opensource-manager/manager.env", edited, 0o640)
	before := m.Property(t, "opensource-manager.service", "MainPID")
	m.Install(t, standin.Newer(t, deb(t, "opensource-manager"), "2026.12.1"))
	if got := m.Read(t, "/etc/opensource-manager/manager.env"); got != edited {
		t.Errorf("the upgrade changed the settings:\n%s", got)
	}
	wait.For(t, 10*time.Second, "the upgraded manager", func() error {
		_, err := m.Try("curl", "-sSf", "http://127.0.0.1:3001/api/v1/health")
		return err
	})
	if after := m.Property(t, "opensource-manager.service", "MainPID"); after == before {
		t.Error("the upgrade left the old program running")
	}
}

func managerRemoveAndPurge(t *testing.T, m *machine.Machine) {
	m.Run(t, "dpkg", "--remove", "opensource-manager")
	m.Run(t, "test", "-e", "/var/lib/opensource-manager/manager.db", "-a", "-e", "/etc/opensource-manager/manager.env")
	m.Run(t, "dpkg", "--purge", "opensource-manager")
	for _, gone := range []string{"/etc/opensource-manager", "/var/lib/opensource-manager"} {
		if code, _ := m.ExitCode(t, "test", "-e", gone); code == 0 {
			t.Errorf("purge left %s", gone)
		}
	}
}
