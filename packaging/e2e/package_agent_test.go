//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/e2e/internal/machine"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/standin"
	"opensource.internal/e2e/internal/wait"
)

// awkwardKey needs every kind of quoting.
const awkwardKey = `osk_a#b$c"d=e\f`

// packageLab is a machine for the life of the agent's package, with a stand-in
// for its manager.
type packageLab struct {
	*machine.Machine
	manager *standin.Manager
}

// TestAgentPackage follows the agent's package from the earlier generation to
// its purge.
func TestAgentPackage(t *testing.T) {
	for suite, subnet := range map[machine.Suite]string{
		machine.Debian13: "203.0.113.64/26",
		machine.Debian12: "203.0.113.128/26",
	} {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			lab := newPackageLab(t, suite, subnet)
			for _, step := range []struct {
				name string
				run  func(*testing.T, *packageLab)
			}{
				{"upgrade from the earlier generation", upgradeFromEarlier},
				{"units of the earlier generation that are conffiles", upgradeFromConffiles},
				{"not configured", notConfigured},
				{"environment of the container", environmentOfContainer},
				{"settings survive an upgrade", settingsSurvive},
				{"a disabled timer stays disabled", disabledTimer},
				{"by hand with only the env file", byHand},
				{"credential", credential},
				{"timer", timerNeverDies},
				{"power cut", powerCut},
				{"remove and purge", removeAndPurge},
			} {
				if !t.Run(step.name, func(t *testing.T) { step.run(t, lab) }) {
					t.Logf("journal:\n%s", lab.Journal("opensource-agent.service"))
				}
			}
		})
	}
}

func newPackageLab(t *testing.T, suite machine.Suite, subnet string) *packageLab {
	name := "pkg-" + string(suite[:4])
	wires := network.NewSwitch(t, name, subnet)
	wires.Plug(t, name, wires.Host(10), "")
	manager := standin.NewManager(t, wires.Gateway.String(), emptySite(7))
	return &packageLab{
		manager: manager,
		Machine: machine.Boot(t, name, machine.Options{
			Suite: suite, Namespace: name,
			Environment: []string{"SITE_ID=7", "MANAGER_URL=" + manager.URL, "API_KEY=" + awkwardKey, "OTHER=never copied"},
		}),
	}
}

// emptySite is a site that has nothing but a name.
func emptySite(id int64) checkin.Snapshot {
	snapshot := checkin.Bootstrap()
	snapshot.Site = &checkin.Site{
		ID: id, Name: "lab", Nodes: []checkin.Node{}, DNSRecords: []checkin.DNSRecord{}, Volumes: []checkin.Volume{},
	}
	return snapshot
}

func upgradeFromEarlier(t *testing.T, lab *packageLab) {
	lab.Write(t, "/etc/environment", "LANG=C.UTF-8\nSITE_ID=7\nMANAGER_URL="+lab.manager.URL+"\n", 0o644)
	lab.Install(t, standin.EarlierAgent(t, "lib/systemd/system"))
	wait.For(t, 30*time.Second, "the earlier agent's state", func() error {
		_, err := os.Stat(lab.Path("/var/lib/opensource-agent/state.json"))
		return err
	})

	start := time.Now()
	lab.Install(t, deb(t, "opensource-agent"))
	if fragment := lab.Property(t, "opensource-agent.service", "FragmentPath"); !strings.HasSuffix(fragment, "/lib/systemd/system/opensource-agent.service") {
		t.Errorf("the service comes from %s", fragment)
	}
	if exec := lab.Property(t, "opensource-agent.service", "ExecStart"); !strings.Contains(exec, "path=/usr/sbin/opensource-agent ") {
		t.Errorf("the service runs %s", exec)
	}
	if enabled, _ := lab.Try("systemctl", "is-enabled", "opensource-agent.timer"); strings.TrimSpace(enabled) != "enabled" {
		t.Errorf("the timer is %s", enabled)
	}
	lab.waitForCheckIn(t, start, 15*time.Second)
	if first := lab.manager.CheckIns(start)[0]; first.Request.SiteID != 7 || first.Tag != "" {
		t.Errorf("the first check-in is of site %d with tag %q, want 7 and none: the earlier agent's tag belongs to no snapshot here",
			first.Request.SiteID, first.Tag)
	}
	// The check-in comes before the reload.
	wait.For(t, 10*time.Second, "nginx and dnsmasq", func() error {
		if state, _ := lab.Try("systemctl", "is-active", "nginx", "dnsmasq"); state != "active\nactive\n" {
			return fmt.Errorf("they are %s", state)
		}
		return nil
	})
}

func upgradeFromConffiles(t *testing.T, lab *packageLab) {
	lab.Run(t, "dpkg", "--purge", "opensource-agent")
	lab.Install(t, standin.EarlierAgent(t, "etc/systemd/system"))
	lab.Install(t, deb(t, "opensource-agent"))
	for _, unit := range []string{"opensource-agent.service", "opensource-agent.timer"} {
		if fragment := lab.Property(t, unit, "FragmentPath"); strings.HasPrefix(fragment, "/etc/") {
			t.Errorf("%s comes from %s, the earlier generation's", unit, fragment)
		}
	}
	lab.Run(t, "dpkg", "--purge", "opensource-agent")
}

func notConfigured(t *testing.T, lab *packageLab) {
	lab.Write(t, "/etc/environment", "LANG=C.UTF-8\n", 0o644)
	lab.Run(t, "systemctl", "mask", "opensource-agent-environment.service")
	lab.Install(t, deb(t, "opensource-agent"))
	code, out := lab.ExitCode(t, "opensource-agent")
	if code != 2 || !strings.Contains(out, "/etc/opensource-agent/agent.env") || strings.Count(strings.TrimSpace(out), "\n") > 0 {
		t.Errorf("exit code %d, want 2, and one line that names the file to edit; got:\n%s", code, out)
	}
	lab.Run(t, "systemctl", "unmask", "opensource-agent-environment.service")
}

func environmentOfContainer(t *testing.T, lab *packageLab) {
	lab.Write(t, "/etc/environment", "LANG=C.UTF-8", 0o644)
	start := time.Now()
	lab.Run(t, "systemctl", "restart", "opensource-agent-environment.service")
	settings := lab.Read(t, "/etc/environment")
	for _, want := range []string{"LANG=C.UTF-8\n", "\nSITE_ID=7\n", "\nMANAGER_URL=" + lab.manager.URL + "\n"} {
		if !strings.Contains(settings, want) {
			t.Errorf("/etc/environment lacks %q:\n%s", want, settings)
		}
	}
	for _, unwanted := range []string{"API_KEY", "OTHER", "osk_"} {
		if strings.Contains(settings, unwanted) {
			t.Errorf("/etc/environment, which everybody reads, holds %s:\n%s", unwanted, settings)
		}
	}
	if mode := lab.Run(t, "stat", "-c", "%a %U", "/run/opensource-agent/environment"); mode != "600 root\n" {
		t.Errorf("the file of secrets is %s", mode)
	}

	lab.Run(t, "systemctl", "restart", "opensource-agent-environment.service")
	if again := lab.Read(t, "/etc/environment"); again != settings {
		t.Errorf("a second run changed /etc/environment:\n%s\nwas:\n%s", again, settings)
	}
	lab.startPass(t)
	lab.wantCheckIn(t, start, 7, awkwardKey)
}

func settingsSurvive(t *testing.T, lab *packageLab) {
	edited := "# edited\nSITE_ID=8\nMANAGER_URL=" + lab.manager.URL + "\nAPI_KEY='" + awkwardKey + "2'\n"
	lab.manager.Publish(t, emptySite(8))
	lab.Write(t, "/etc/opensource-agent/agent.env", edited, 0o640)
	newer := standin.Newer(t, deb(t, "opensource-agent"), "2026.12.1")
	for _, install := range []string{"upgrade", "reinstall"} {
		start := time.Now()
		lab.Install(t, newer)
		if got := lab.Read(t, "/etc/opensource-agent/agent.env"); got != edited {
			t.Errorf("%s changed the settings:\n%s", install, got)
		}
		if mode := lab.Run(t, "stat", "-c", "%a %U:%G", "/etc/opensource-agent/agent.env"); mode != "640 root:root\n" {
			t.Errorf("after %s the settings are %s", install, mode)
		}
		lab.waitForCheckIn(t, start, 15*time.Second)
		lab.wantCheckIn(t, start, 8, awkwardKey+"2")
	}
}

func disabledTimer(t *testing.T, lab *packageLab) {
	lab.Run(t, "systemctl", "disable", "--now", "opensource-agent.timer")
	lab.Install(t, deb(t, "opensource-agent"))
	for _, question := range []string{"is-enabled", "is-active"} {
		if code, answer := lab.ExitCode(t, "systemctl", question, "opensource-agent.timer"); code == 0 {
			t.Errorf("after an upgrade the disabled timer is %s", strings.TrimSpace(answer))
		}
	}
	lab.Run(t, "systemctl", "enable", "--now", "opensource-agent.timer")
}

func byHand(t *testing.T, lab *packageLab) {
	start := time.Now()
	lab.Run(t, "opensource-agent")
	lab.wantCheckIn(t, start, 8, awkwardKey+"2")
}

func credential(t *testing.T, lab *packageLab) {
	lab.Write(t, "/etc/opensource-agent/agent.env", "SITE_ID=8\nMANAGER_URL="+lab.manager.URL+"\nAPI_KEY=\n", 0o640)
	lab.Run(t, "rm", "-f", "/run/opensource-agent/environment")
	lab.Write(t, "/etc/opensource-agent/credentials/api-key", "osk_credential\n", 0o600)
	lab.Write(t, "/etc/systemd/system/opensource-agent.service.d/api-key.conf",
		lab.Read(t, "/usr/share/doc/opensource-agent/examples/api-key.conf"), 0o644)
	lab.Run(t, "systemctl", "daemon-reload")
	start := time.Now()
	lab.startPass(t)
	lab.wantCheckIn(t, start, 8, "osk_credential")

	lab.Run(t, "rm", "-r", "/etc/systemd/system/opensource-agent.service.d")
	lab.Run(t, "systemctl", "daemon-reload")
}

// timerNeverDies does to the timer what other timers did not survive, and
// wants a next time at once each time.
func timerNeverDies(t *testing.T, lab *packageLab) {
	working := lab.Read(t, "/etc/opensource-agent/agent.env")
	for _, hardship := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"reinstall", func(t *testing.T) { lab.Install(t, deb(t, "opensource-agent")) }},
		{"daemon-reload", func(t *testing.T) { lab.Run(t, "systemctl", "daemon-reload") }},
		{"ten restarts of the timer", func(t *testing.T) {
			for range 10 {
				lab.Run(t, "systemctl", "restart", "opensource-agent.timer")
			}
		}},
		{"ten failed passes", func(t *testing.T) {
			lab.Write(t, "/etc/opensource-agent/agent.env", "SITE_ID=1abc\n", 0o640)
			for range 10 {
				if code, _ := lab.ExitCode(t, "systemctl", "start", "opensource-agent.service"); code == 0 {
					t.Error("a pass without a valid SITE_ID succeeded")
				}
			}
			lab.Write(t, "/etc/opensource-agent/agent.env", working, 0o640)
		}},
		{"daemon-reexec", func(t *testing.T) { lab.Run(t, "systemctl", "daemon-reexec") }},
	} {
		t.Run(hardship.name, func(t *testing.T) {
			hardship.run(t)
			lab.wantNextElapse(t)
		})
	}
	// After all of it: two passes that nobody but the timer starts, and
	// about 30 seconds between them.
	start := time.Now()
	lab.waitForCheckIn(t, start, 45*time.Second)
	first := lab.manager.CheckIns(start)[0].At
	later := first.Add(5 * time.Second)
	lab.waitForCheckIn(t, later, 45*time.Second)
	if pause := lab.manager.CheckIns(later)[0].At.Sub(first); pause > 36*time.Second {
		t.Errorf("%v between two passes", pause)
	}
}

// powerCut takes the power away in the middle of everything. After the boot the
// container's environment is copied anew, and a pass runs within seconds.
func powerCut(t *testing.T, lab *packageLab) {
	lab.Write(t, "/etc/environment", "LANG=C.UTF-8\n", 0o644)
	lab.Write(t, "/etc/opensource-agent/agent.env", "", 0o640)
	lab.manager.Publish(t, emptySite(7))
	// Until the boot no pass gets as far as a check-in: nothing tells it the
	// site any more.
	cut := time.Now()
	lab.PowerCycle(t)
	lab.waitForCheckIn(t, cut, 10*time.Second)
	lab.wantCheckIn(t, cut, 7, awkwardKey)
	if settings := lab.Read(t, "/etc/environment"); !strings.Contains(settings, "\nSITE_ID=7\n") {
		t.Errorf("the boot did not copy the container's environment:\n%s", settings)
	}
	if active := lab.Run(t, "systemctl", "is-active", "nginx", "dnsmasq", "opensource-agent.timer"); active != "active\nactive\nactive\n" {
		t.Errorf("after the boot nginx, dnsmasq and the timer are %s", active)
	}
}

// wantNextElapse wants the timer to run again within 35 seconds.
func (lab *packageLab) wantNextElapse(t *testing.T) {
	t.Helper()
	wait.For(t, 10*time.Second, "a next run of the timer", func() error {
		// While a pass runs there is no next time.
		next := lab.Property(t, "opensource-agent.timer", "NextElapseUSecRealtime")
		if next == "" {
			return fmt.Errorf("NextElapseUSecRealtime is empty, the timer is %s",
				lab.Property(t, "opensource-agent.timer", "SubState"))
		}
		seconds, err := strconv.ParseInt(strings.TrimSpace(lab.Run(t, "date", "-d", next, "+%s")), 10, 64)
		if err != nil {
			return err
		}
		if pause := time.Until(time.Unix(seconds, 0)); pause > 35*time.Second {
			return fmt.Errorf("the next run is in %v", pause)
		}
		return nil
	})
}

func removeAndPurge(t *testing.T, lab *packageLab) {
	const settings = "LANG=C.UTF-8\n"
	lab.Write(t, "/etc/environment", settings, 0o644)
	lab.Run(t, "systemctl", "restart", "opensource-agent-environment.service")
	lab.startPass(t)
	managed := lab.Read(t, "/etc/nginx/nginx.conf")
	lab.Write(t, "/etc/opensource-agent/agent.env", "LOG_LEVEL=loud\n", 0o640)
	if code, _ := lab.ExitCode(t, "systemctl", "restart", "opensource-agent.service"); code == 0 {
		t.Error("a pass with a wrong setting succeeded")
	}
	lab.Run(t, "dpkg", "--remove", "opensource-agent")
	if failed := lab.Run(t, "systemctl", "--failed", "--no-legend"); strings.Contains(failed, "opensource-agent") {
		t.Errorf("removing the package left %s", failed)
	}
	for _, kept := range []string{"/etc/opensource-agent/agent.env", "/var/lib/opensource-agent/state.json"} {
		lab.Run(t, "test", "-e", kept)
	}
	if active, _ := lab.Try("systemctl", "is-active", "opensource-agent.timer"); strings.TrimSpace(active) == "active" {
		t.Error("the timer outlived the package")
	}
	lab.Run(t, "dpkg", "--purge", "opensource-agent")
	for _, gone := range []string{"/etc/opensource-agent", "/var/lib/opensource-agent", "/run/opensource-agent"} {
		if code, _ := lab.ExitCode(t, "test", "-e", gone); code == 0 {
			t.Errorf("purge left %s", gone)
		}
	}
	if now := lab.Read(t, "/etc/environment"); now != settings {
		t.Errorf("after the purge /etc/environment is %q, want %q", now, settings)
	}
	if now := lab.Read(t, "/etc/nginx/nginx.conf"); now != managed {
		t.Error("removing the package changed nginx.conf")
	}
	lab.Run(t, "nginx", "-t")
	lab.Run(t, "systemctl", "restart", "nginx", "dnsmasq")
}

// startPass starts the service as the timer does and waits for its end. A pass
// that has begun under other settings does not count.
func (lab *packageLab) startPass(t *testing.T) {
	t.Helper()
	wait.For(t, 30*time.Second, "the pass of the timer to end", func() error {
		if state := lab.Property(t, "opensource-agent.service", "ActiveState"); state == "activating" {
			return errors.New(state)
		}
		return nil
	})
	lab.Run(t, "systemctl", "start", "opensource-agent.service")
}

func (lab *packageLab) waitForCheckIn(t *testing.T, since time.Time, timeout time.Duration) {
	t.Helper()
	wait.For(t, timeout, "a check-in", func() error {
		if len(lab.manager.CheckIns(since)) == 0 {
			return fmt.Errorf("none; journal:\n%s", lab.Journal("opensource-agent.service"))
		}
		return nil
	})
}

// wantCheckIn wants the last check-in to be of a site and with a key.
func (lab *packageLab) wantCheckIn(t *testing.T, since time.Time, site int64, key string) {
	t.Helper()
	all := lab.manager.CheckIns(since)
	if len(all) == 0 {
		t.Fatal("no check-in arrived")
	}
	last := all[len(all)-1]
	if last.Request.SiteID != site || last.Key != key {
		t.Errorf("check-in of site %d with key %q, want site %d and key %q", last.Request.SiteID, last.Key, site, key)
	}
}
