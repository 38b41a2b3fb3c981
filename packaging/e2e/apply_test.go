//go:build e2e

package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/e2e/internal/machine"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/standin"
	"opensource.internal/e2e/internal/wait"
)

// liveLab is a machine whose nginx and dnsmasq serve the site that a stand-in
// for the manager publishes. The timer is stopped.
type liveLab struct {
	*packageLab
	server string // where its dnsmasq answers
}

// liveSite is a site whose names tell its configurations apart: another one
// changes nginx.conf, dnsmasq.conf and the side files of dnsmasq.
func liveSite(wires network.Switch, name string) checkin.Snapshot {
	backend := checkin.Backend{IPv4Address: wires.Host(11).String()}
	snapshot := emptySite(7)
	site := snapshot.Site
	site.InternalDomain, site.SubnetMask = checkin.Text(name+".internal"), "255.255.255.192"
	site.DHCPRange = checkin.Text(wires.Host(20).String() + "," + wires.Host(30).String())
	site.Gateway = checkin.Text(wires.Gateway.String())
	site.DNSForwarders = site.Gateway
	site.Nodes = []checkin.Node{{Name: "pve1", IPv4Address: checkin.Text(wires.Host(12).String()), Containers: []checkin.Container{
		{Hostname: "web", IPv4Address: backend.IPv4Address, MACAddress: "02:00:00:00:00:01"},
	}}}
	snapshot.NGINX.HTTPServices = []checkin.HTTPService{{
		ID: 3, InternalPort: 8080, Container: backend, ExternalHostname: name, BackendProtocol: "http",
		ExternalDomain: checkin.HTTPServiceDomain{Name: "example.com"},
	}}
	snapshot.NGINX.ExternalDomains = []checkin.ExternalDomain{{Name: "example.com"}}
	return snapshot
}

// TestApplyOnARealMachine is about what happens after the commit, where only
// the real systemd can tell.
func TestApplyOnARealMachine(t *testing.T) {
	t.Parallel()
	wires := network.NewSwitch(t, "apply", "192.0.2.0/26")
	wires.Plug(t, "apply", wires.Host(10), "")
	manager := standin.NewManager(t, wires.Gateway.String(), liveSite(wires, "first"))
	lab := liveLab{server: wires.Host(10).String(), packageLab: &packageLab{
		manager: manager, Machine: machine.Boot(t, "apply", machine.Options{Suite: machine.Debian13, Namespace: "apply"}),
	}}
	lab.Install(t, deb(t, "opensource-agent"))
	lab.Run(t, "systemctl", "stop", "opensource-agent.timer")
	lab.Write(t, "/etc/opensource-agent/agent.env", "SITE_ID=7\nMANAGER_URL="+manager.URL+"\nAPI_KEY=osk_x\n", 0o640)
	lab.wantPass(t, 0)
	lab.wantServed(t, "first")

	publish := func(t *testing.T, name string) { manager.Publish(t, liveSite(wires, name)) }
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"nginx dies later", func(t *testing.T) { lab.diesLater(t, publish, "nginx", "no") }},
		{"nginx dies later and is started again", func(t *testing.T) { lab.diesLater(t, publish, "nginx", "always") }},
		{"dnsmasq dies later", func(t *testing.T) { lab.diesLater(t, publish, "dnsmasq", "no") }},
		{"killed before dnsmasq is restarted, then the same", func(t *testing.T) {
			lab.killedBeforeTheRestart(t, publish)
			said := lab.passSays(t, 0)
			lab.wantServed(t, "killed")
			wantLines(t, said, "an earlier pass was cut short service=dnsmasq", "what the earlier pass had begun is finished service=dnsmasq")
		}},
		{"killed before dnsmasq is restarted, then nothing to manage", func(t *testing.T) {
			lab.killedBeforeTheRestart(t, publish)
			unmanaged := liveSite(wires, "first")
			unmanaged.Site.Gateway = ""
			manager.Publish(t, unmanaged)
			said := lab.passSays(t, 0)
			lab.wantServed(t, "first")
			wantLines(t, said, "an earlier pass was cut short service=dnsmasq", "what the earlier pass had begun is undone service=dnsmasq")
		}},
	} {
		t.Run(step.name, func(t *testing.T) {
			before := time.Now()
			defer func() {
				if t.Failed() {
					out, _ := lab.Try("journalctl", "--no-pager", "--output=short-precise", fmt.Sprintf("--since=@%d", before.Unix()))
					t.Logf("journal:\n%s", out)
				}
			}()
			step.run(t)
			lab.wantNothingLeft(t)
		})
	}
}

// diesLater gives a service a configuration that it dies of two seconds after
// it was loaded: long after the proof.
func (lab liveLab) diesLater(t *testing.T, publish func(*testing.T, string), service, restart string) {
	const deadly = "/bin/sh -c 'grep -q deadly %s && exec systemd-run --quiet --on-active=2 --timer-property=AccuracySec=10ms /bin/kill -9 $MAINPID; exit 0'"
	dropIn := "/etc/systemd/system/" + service + ".service.d/deadly.conf"
	text := "[Service]\nRestart=" + restart + "\nExecReload=" + fmt.Sprintf(deadly, "/etc/nginx/nginx.conf") + "\n"
	if service == "dnsmasq" {
		text = "[Service]\nRestart=" + restart + "\nExecStartPost=" + fmt.Sprintf(deadly, "/etc/dnsmasq.conf") + "\n"
	}
	lab.Write(t, dropIn, text, 0o644)
	lab.Run(t, "systemctl", "daemon-reload")
	defer func() {
		lab.Run(t, "rm", dropIn)
		lab.Run(t, "systemctl", "daemon-reload")
		publish(t, "first")
		lab.wantPass(t, 0)
		lab.wantServed(t, "first")
	}()

	start := time.Now()
	publish(t, "deadly")
	lab.wantPass(t, 4)
	checkIns := lab.manager.CheckIns(start)
	report := checkIns[len(checkIns)-1].Request.Services[service]
	for _, words := range []string{"it came alive and did not last: ", service + ".service", "code=killed, status=9/KILL"} {
		if !strings.Contains(report.Message, words) {
			t.Errorf("the message does not say %q: %s", words, report.Message)
		}
	}
	if report.Outcome != checkin.OutcomeRolledBack || report.State != "active" {
		t.Errorf("reported as %s and %s", report.Outcome, report.State)
	}
	lab.wantServedBy(t, service, "first")
}

// killedBeforeTheRestart kills a pass right after it has replaced the main file
// of dnsmasq, and before it has told systemd to restart it. It takes as many
// passes as it takes to hit that moment.
func (lab liveLab) killedBeforeTheRestart(t *testing.T, publish func(*testing.T, string)) {
	for range 20 {
		publish(t, "first")
		lab.wantPass(t, 0)
		process := lab.Property(t, "dnsmasq.service", "MainPID")
		publish(t, "killed")
		lab.Run(t, "systemctl", "start", "--no-block", "opensource-agent.service")
		lab.killWhen(t, func() bool {
			conf, _ := os.ReadFile(lab.Path("/etc/dnsmasq.conf"))
			return strings.Contains(string(conf), "killed.internal")
		})
		lab.waitForPass(t)
		killed := lab.Property(t, "opensource-agent.service", "Result") == "signal"
		if killed && lab.Property(t, "dnsmasq.service", "MainPID") == process && lab.lookUp("web.killed.internal") != nil {
			return
		}
	}
	t.Fatal("the moment was never hit")
}

// killWhen kills the agent as soon as something is true.
func (lab liveLab) killWhen(t *testing.T, happened func() bool) {
	t.Helper()
	pid := 0
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if pid == 0 {
			pid, _ = lab.Process(agentProgram)
			continue
		}
		if happened() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			return
		}
	}
	t.Fatal("the pass never got that far")
}

func (lab liveLab) waitForPass(t *testing.T) {
	t.Helper()
	wait.For(t, 40*time.Second, "the pass to end", func() error {
		if state := lab.Property(t, "opensource-agent.service", "ActiveState"); state == "activating" {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
}

// wantPass runs one pass by hand, which waits for no retry.
func (lab liveLab) wantPass(t *testing.T, want int) {
	t.Helper()
	lab.passSays(t, want)
}

func (lab liveLab) passSays(t *testing.T, want int) string {
	t.Helper()
	lab.waitForPass(t)
	code, out := lab.ExitCode(t, "opensource-agent")
	if code != want {
		t.Errorf("the pass ended with %d, want %d:\n%s", code, want, out)
	}
	return out
}

// wantServed wants nginx and dnsmasq to run the configuration of that name.
func (lab liveLab) wantServed(t *testing.T, name string) {
	t.Helper()
	lab.wantServedBy(t, "nginx", name)
	lab.wantServedBy(t, "dnsmasq", name)
}

func (lab liveLab) wantServedBy(t *testing.T, service, name string) {
	t.Helper()
	if state := lab.Property(t, service+".service", "ActiveState"); state != "active" {
		t.Errorf("%s is %s", service, state)
	}
	if service == "dnsmasq" {
		if err := lab.lookUp("web." + name + ".internal"); err != nil {
			t.Error(err)
		}
		return
	}
	conf := lab.Read(t, "/etc/nginx/nginx.conf")
	revision := strings.TrimSpace(lab.Run(t, "curl", "-sS", "http://127.0.0.1/.well-known/opensource-agent/revision"))
	if !strings.Contains(conf, name+".example.com") || len(revision) != 64 || !strings.Contains(conf, revision) {
		t.Errorf("nginx runs the revision %q, which is not the one of %s", revision, name)
	}
}

// lookUp returns an error unless dnsmasq resolves the name.
func (lab liveLab) lookUp(name string) error {
	out, err := exec.Command("dig", "+short", "+time=1", "+tries=2", "@"+lab.server, name, "A").CombinedOutput()
	if err == nil {
		_, err = netip.ParseAddr(strings.TrimSpace(string(out)))
	}
	if err != nil {
		err = fmt.Errorf("dig %s: %w: %s", name, err, out)
	}
	return err
}

func (lab liveLab) wantNothingLeft(t *testing.T) {
	t.Helper()
	if left := lab.Run(t, "find", "/etc", "/var/lib", "-xdev", "-name", ".*.opensource-agent.*", "-o", "-name", "commit-*.json"); left != "" {
		t.Errorf("left over:\n%s", left)
	}
}

func wantLines(t *testing.T, said string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if strings.Count(said, line) != 1 {
			t.Errorf("the pass does not say once %q:\n%s", line, said)
		}
	}
}
