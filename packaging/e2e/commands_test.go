//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/e2e/internal/machine"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/standin"
	"opensource.internal/e2e/internal/wait"
)

// TestCommandsOfTheAgent tries the commands that look, on a machine where there
// is something to see. The timer is stopped.
func TestCommandsOfTheAgent(t *testing.T) {
	t.Parallel()
	wires := network.NewSwitch(t, "commands", "192.0.2.64/27")
	wires.Plug(t, "commands", wires.Host(10), "")
	manager := standin.NewManager(t, wires.Gateway.String(), liveSite(wires, "first"))
	lab := commandLab{wires: wires, liveLab: liveLab{server: wires.Host(10).String(), packageLab: &packageLab{
		manager: manager, Machine: machine.Boot(t, "commands", machine.Options{Suite: machine.Debian13, Namespace: "commands"}),
	}}}
	lab.Install(t, deb(t, "opensource-agent"))
	lab.Run(t, "systemctl", "stop", "opensource-agent.timer")
	lab.Write(t, "/etc/opensource-agent/agent.env", "SITE_ID=7\nMANAGER_URL="+manager.URL+"\nAPI_KEY=osk_x\n", 0o640)
	for _, step := range []struct {
		name string
		run  func(*testing.T, commandLab)
	}{
		{"before the first pass", beforeTheFirstPass},
		{"a dry run is what a pass does", dryRunIsWhatAPassDoes},
		{"what is refused", dryRunOfWhatIsRefused},
		{"status", statusOfAMachine},
		{"the state is for root", stateIsRoots},
		{"render is what is live", renderIsWhatIsLive},
		{"completions and man page", completionsAndManPage},
	} {
		t.Run(step.name, func(t *testing.T) { step.run(t, lab) })
	}
}

type commandLab struct {
	liveLab
	wires network.Switch
}

// agent runs a command of the agent.
func (lab commandLab) agent(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out := lab.ExitCode(t, "opensource-agent", args...)
	if code != want {
		t.Errorf("opensource-agent %s ended with %d, want %d:\n%s", strings.Join(args, " "), code, want, out)
	}
	return out
}

// dryRun does one and wants no trace of it.
func (lab commandLab) dryRun(t *testing.T, want int, lines ...string) {
	t.Helper()
	traces := func() string {
		// What is missing and stays missing is the same twice, too.
		out, _ := lab.Try("find", "/etc", "/var/lib/opensource-agent", "/var/lib/dnsmasq", "/var/lib/nginx", "/var/log/nginx", "/run/nginx.pid", "/tmp",
			"!", "-path", "/tmp", "-printf", `%p %y %m %i %s %T@ %C@\n`)
		return out
	}
	before, process := traces(), lab.Property(t, "nginx.service", "MainPID")+lab.Property(t, "dnsmasq.service", "MainPID")
	wantParts(t, lab.agent(t, want, "run", "--dry-run"), lines...)
	if after := traces(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", onlyIn(before, after), onlyIn(after, before))
	}
	if after := lab.Property(t, "nginx.service", "MainPID") + lab.Property(t, "dnsmasq.service", "MainPID"); after != process {
		t.Error("something was restarted")
	}
}

func wantParts(t *testing.T, said string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(said, part) {
			t.Errorf("it does not say %q:\n%s", part, said)
		}
	}
}

// onlyIn returns the lines of a text that another one does not have.
func onlyIn(text, other string) string {
	var only []string
	for line := range strings.Lines(text) {
		if !strings.Contains(other, line) {
			only = append(only, line)
		}
	}
	return strings.Join(only, "")
}

func beforeTheFirstPass(t *testing.T, lab commandLab) {
	wantParts(t, lab.agent(t, 4, "status"), "no site: no snapshot of the manager was ever accepted", "nginx: active, nothing was ever applied",
		"no next pass: the timer is stopped")
	code, out := lab.ExitCode(t, "setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "opensource-agent", "status")
	if code != 2 || !strings.Contains(out, "permission denied: run it as root (sudo opensource-agent)") {
		t.Errorf("as nobody it ends with %d:\n%s", code, out)
	}
}

// stateIsRoots lets everybody read the settings, but not what the agent knows.
func stateIsRoots(t *testing.T, lab commandLab) {
	lab.Run(t, "chmod", "go+rx", "/etc/opensource-agent/agent.env", "/run/opensource-agent")
	code, out := lab.ExitCode(t, "setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "opensource-agent", "status")
	if code != 2 || !strings.Contains(out, "permission denied: run it as root (sudo opensource-agent status)") {
		t.Errorf("as nobody it ends with %d:\n%s", code, out)
	}
	lab.Run(t, "chmod", "go-rx", "/etc/opensource-agent/agent.env", "/run/opensource-agent")
}

func dryRunIsWhatAPassDoes(t *testing.T, lab commandLab) {
	lab.dryRun(t, 10, "which the manager has just sent", "nginx: 1 file would be changed, then reload; its own test accepts the candidate",
		"dnsmasq: 5 files would be changed, then ", "+        server_name first.example.com;")
	lab.wantPass(t, 0)
	lab.wantServed(t, "first")
	lab.dryRun(t, 0, "the manager has nothing newer", "nginx: nothing would be changed", "dnsmasq: nothing would be changed")

	renamed := liveSite(lab.wires, "first")
	renamed.Site.Nodes[0].Containers[0].Hostname = "other"
	lab.manager.Publish(t, renamed)
	lab.dryRun(t, 10, "nginx: nothing would be changed", "files would be changed, then SIGHUP; ")
	lab.manager.Publish(t, liveSite(lab.wires, "second"))
	lab.dryRun(t, 10, "nginx: 1 file would be changed, then reload; ", "dnsmasq: 4 files would be changed, then restart; ")
	lab.wantServed(t, "first")
	if requests := lab.manager.CheckIns(time.Time{}); requests[len(requests)-1].Request.Running == nil {
		t.Error("a dry run does not tell what runs")
	}
}

func dryRunOfWhatIsRefused(t *testing.T, lab commandLab) {
	bad := liveSite(lab.wires, "first")
	bad.NGINX.HTTPServices[0].InternalPort = 80800
	lab.manager.Publish(t, bad)
	lab.dryRun(t, 4, "its previous version stays: http first.example.com (id 3): ", "80800", "nginx: nothing would be changed", "dnsmasq: nothing would be changed")
	bad.NGINX.HTTPServices[0].ID = 4
	lab.manager.Publish(t, bad)
	lab.dryRun(t, 4, "left out: http first.example.com (id 4): ", "nginx: 1 file would be changed, then reload; ")

	lab.manager.Publish(t, liveSite(lab.wires, "first"))
	lab.Write(t, "/etc/opensource-agent/templates/nginx/listen.tmpl", "no_such_directive;", 0o644)
	lab.dryRun(t, 4, "nginx: its own test refuses the candidate: nothing would be changed", `unknown directive "no_such_directive" in /etc/nginx/nginx.conf:`)
	lab.Run(t, "rm", "/etc/opensource-agent/templates/nginx/listen.tmpl")

	lab.agent(t, 0, "hold", "nginx", "--for", "1h", "--reason", "moving house")
	lab.Run(t, "sh", "-c", "echo '# edited' >>/etc/nginx/nginx.conf")
	lab.dryRun(t, 0, "nginx: held until ")
	lab.agent(t, 0, "release", "nginx")
	lab.dryRun(t, 10, "-# edited")
	lab.wantPass(t, 0)
}

func statusOfAMachine(t *testing.T, lab commandLab) {
	wantParts(t, lab.agent(t, 0, "status"), "site 7 lab: all in force since ", "nginx: active, in force, applied ", "dnsmasq: active, in force, applied ",
		"example.com: missing, the self-signed one is served instead")
	lab.agent(t, 0, "hold", "dnsmasq", "--for", "2h", "--reason", "moving house")
	lab.Run(t, "sh", "-c", "echo '# edited' >>/etc/nginx/nginx.conf")
	wantParts(t, lab.agent(t, 0, "status"), "held for another ", " by root: moving house", "edited by somebody else: /etc/nginx/nginx.conf")
	lab.agent(t, 0, "release", "dnsmasq")

	bad := liveSite(lab.wires, "first")
	bad.NGINX.HTTPServices[0].InternalPort = 80800
	lab.manager.Publish(t, bad)
	lab.wantPass(t, 4)
	wantParts(t, lab.agent(t, 4, "status"), "site 7 lab: not all of it is in force", "nginx: active, in force but for one record, applied ", "its previous version stays: http first.example.com (id 3): ")

	lab.Run(t, "systemctl", "start", "opensource-agent.timer")
	var status struct {
		Site     *struct{ Name string }
		LastPass *struct {
			EndedAt  *time.Time
			ExitCode *int
		}
		NextPass *time.Time
		Services []struct {
			Name, State string
			Quarantined []checkin.QuarantinedItem
		}
		ExitCode int
	}
	wait.For(t, 30*time.Second, "a pass of the timer, as status tells it", func() error {
		if err := json.Unmarshal([]byte(lab.agent(t, 4, "status", "--json")), &status); err != nil {
			t.Fatal(err)
		}
		if status.LastPass == nil || status.LastPass.ExitCode == nil || *status.LastPass.ExitCode != 4 || status.NextPass == nil {
			return errors.New("it is not told yet")
		}
		return nil
	})
	if until := time.Until(*status.NextPass); until > passInterval || until < -passInterval || time.Since(*status.LastPass.EndedAt) > time.Minute {
		t.Errorf("last pass %v, next pass %v", status.LastPass.EndedAt, status.NextPass)
	}
	if status.Site.Name != "lab" || status.ExitCode != 4 || status.Services[0].State != "active" || len(status.Services[0].Quarantined) != 1 {
		t.Errorf("status: %+v", status)
	}
	lab.Run(t, "systemctl", "stop", "opensource-agent.timer")
	lab.manager.Publish(t, liveSite(lab.wires, "first"))
	lab.wantPass(t, 0)
}

func renderIsWhatIsLive(t *testing.T, lab commandLab) {
	wantParts(t, lab.agent(t, 0, "render", "--snapshot", "/var/lib/opensource-agent/snapshot.json", "--out", "/tmp/rendered"),
		"/tmp/rendered/etc/nginx/nginx.conf\n", "/tmp/rendered/etc/dnsmasq.conf\n")
	for _, file := range []string{"/etc/nginx/nginx.conf", "/etc/dnsmasq.conf", "/var/lib/dnsmasq/hosts", "/var/lib/dnsmasq/dhcp-hosts"} {
		lab.Run(t, "cmp", file, "/tmp/rendered"+file)
	}
	lab.agent(t, 2, "render", "--snapshot", "/var/lib/opensource-agent/snapshot.json", "--out", "/tmp/rendered")
	// Whoever has a snapshot can render it, without a right to anything here.
	lab.Run(t, "install", "-m", "644", "/var/lib/opensource-agent/snapshot.json", "/tmp/snapshot.json")
	lab.Run(t, "setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
		"opensource-agent", "render", "--snapshot", "/tmp/snapshot.json", "--out", "/tmp/by-nobody")
	lab.Run(t, "cmp", "/etc/dnsmasq.conf", "/tmp/by-nobody/etc/dnsmasq.conf")
}

func completionsAndManPage(t *testing.T, lab commandLab) {
	out := lab.Run(t, "bash", "-c", `source /usr/share/bash-completion/completions/opensource-agent; complete -p opensource-agent
COMP_WORDS=(opensource-agent sta) COMP_CWORD=1; _opensource_agent; echo "${COMPREPLY[@]}"`)
	wantParts(t, out, "complete -F _opensource_agent opensource-agent", "status")
	wantParts(t, lab.Read(t, "/usr/share/zsh/vendor-completions/_opensource-agent"), "#compdef opensource-agent")
	wantParts(t, lab.Read(t, "/usr/share/fish/vendor_completions.d/opensource-agent.fish"), "complete -c opensource-agent")
	page := manPage(t)
	help := lab.agent(t, 0, "--help")
	for _, command := range []string{"run", "status", "check", "bundle", "render", "hold", "release"} {
		wantParts(t, page, ".SS "+command+"\n")
		wantParts(t, help, "\n  "+command+" ")
		lab.agent(t, 0, command, "--help")
	}
}

// manPage reads the page from the package: the machines are installed without
// documentation.
func manPage(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `dpkg-deb --fsys-tarfile "$1" | tar -xO ./usr/share/man/man8/opensource-agent.8.gz | gzip -d`, "sh", deb(t, "opensource-agent")).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
