//go:build e2e

package e2e

import (
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
