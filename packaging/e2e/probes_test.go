//go:build e2e

package e2e

import (
	"net/netip"
	"os"
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

// probed is the one service of the machine.
const probed = "first.example.com"

// TestProbesOnARealMachine mends one fault after the other on the way to a
// service. Each pass tells the first one that is left, and ends with 0. The timer
// is stopped.
func TestProbesOnARealMachine(t *testing.T) {
	t.Parallel()
	wires := network.NewSwitch(t, "probes", "192.0.2.96/27")
	wires.Plug(t, "probes", wires.Host(10), "")
	snapshot := liveSite(wires, "first")
	snapshot.Site.SubnetMask = "255.255.255.224"
	manager := standin.NewManager(t, wires.Gateway.String(), snapshot)
	lab := liveLab{server: wires.Host(10).String(), packageLab: &packageLab{
		manager: manager, Machine: machine.Boot(t, "probes", machine.Options{Suite: machine.Debian13, Namespace: "probes"}),
	}}
	lab.Install(t, deb(t, "opensource-agent"))
	lab.Run(t, "systemctl", "stop", "opensource-agent.timer")
	lab.Write(t, "/etc/resolv.conf", "nameserver "+wires.Gateway.String()+"\n", 0o644)
	lab.Write(t, "/etc/hosts", "127.0.0.1 localhost "+probed+"\n", 0o644) // is no answer of DNS
	settings := "SITE_ID=7\nMANAGER_URL=" + manager.URL + "\nAPI_KEY=osk_x\n"
	lab.Write(t, "/etc/opensource-agent/agent.env", settings, 0o640)
	if told := lab.probes(t); told != nil {
		t.Errorf("nobody has switched them on, and told is %+v", told)
	}
	lab.Write(t, "/etc/opensource-agent/agent.env", settings+"SITE_PROBES=on\n", 0o640)

	lab.wantHop(t, checkin.HopDNS, "no address of "+probed+": name server "+wires.Gateway.String()+":53: ")
	serveName(t, wires.Gateway, probed)
	lab.wantHop(t, checkin.HopCertificate, "x509: certificate is valid for ")
	authority := newAuthority(t)
	lab.certify(t, authority)
	lab.wantHop(t, checkin.HopCertificate, "x509: certificate signed by unknown authority")
	lab.trust(t, authority)
	lab.wantHop(t, checkin.HopBackend, "dial tcp "+wires.Host(11).String()+":8080: ")
	wires.Plug(t, "web-probes", wires.Host(11), "")
	backend := wires.Host(11).String() + ":8080"
	serveHTTP(t, "web-probes", backend)
	wait.For(t, 10*time.Second, "the way to the container", func() error {
		_, err := lab.Try("curl", "-sS", "--max-time", "1", "http://"+backend)
		return err
	})
	lab.wantHop(t, checkin.HopNone, "")

	lab.Run(t, "opensource-agent", "hold", "nginx")
	lab.Run(t, "systemctl", "stop", "nginx.service")
	since := time.Now()
	lab.startPass(t)
	if told := lab.lastCheckIn(t, since).Probes[probed]; told.Hop != checkin.HopNone {
		t.Errorf("the timer's pass has probed before it was time to: %+v", told)
	}
	lab.wantHop(t, checkin.HopListener, "dial tcp 127.0.0.1:443: connect: connection refused")
	lab.Run(t, "opensource-agent", "release", "nginx")
	lab.wantHop(t, checkin.HopNone, "")
}

// probes makes a pass by hand, which waits for no pause, and returns what it has
// told last.
func (lab liveLab) probes(t *testing.T) map[string]checkin.Probe {
	t.Helper()
	since := time.Now()
	lab.wantPass(t, 0)
	return lab.lastCheckIn(t, since).Probes
}

func (lab liveLab) lastCheckIn(t *testing.T, since time.Time) checkin.Request {
	t.Helper()
	all := lab.manager.CheckIns(since)
	if len(all) == 0 {
		t.Fatal("no check-in arrived")
	}
	return all[len(all)-1].Request
}

// wantHop wants a pass to tell the first hop that fails, in words that begin like
// that, and the same of status.
func (lab liveLab) wantHop(t *testing.T, hop checkin.ProbeHop, words string) {
	t.Helper()
	told := lab.probes(t)
	if found, probed := told[probed]; !probed || len(told) != 1 || found.Hop != hop || !strings.HasPrefix(found.Message, words) {
		t.Errorf("told is %+v, want %s: %s…", told, hop, words)
	}
	want := []string{"site probes: 0 of 1 services can be reached", probed + ": " + string(hop) + ": " + words}
	if hop == checkin.HopNone {
		want = []string{"site probes: 1 of 1 services can be reached"}
	}
	code, status := lab.ExitCode(t, "opensource-agent", "status")
	wantParts(t, status, want...)
	if code != 0 {
		t.Errorf("status ends with %d", code)
	}
}

// certify installs a certificate of an authority.
func (lab liveLab) certify(t *testing.T, a *authority) {
	t.Helper()
	valid, until := lastMonthToNext()
	pair := a.issue(t, "example.com", 1, valid, until)
	lab.Write(t, "/etc/ssl/private/example.com.key", pair.key, 0o600)
	lab.Write(t, "/etc/ssl/certs/example.com.crt", pair.certificate, 0o644)
}

// trust makes the machine trust a private authority.
func (lab liveLab) trust(t *testing.T, a *authority) {
	t.Helper()
	certificate, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	lab.Write(t, "/usr/local/share/ca-certificates/private.crt", string(certificate), 0o644)
	lab.Run(t, "update-ca-certificates")
}

// serveName runs a name server that knows one name, until the test ends.
func serveName(t *testing.T, address netip.Addr, name string) {
	t.Helper()
	server := exec.Command("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-hosts", "--no-resolv", "--bind-interfaces",
		"--except-interface=lo", "--listen-address="+address.String(), "--address=/"+name+"/203.0.113.5", "--pid-file", "--user=root")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	wait.For(t, 5*time.Second, "the name server", func() error {
		return exec.Command("dig", "+time=1", "+tries=1", "@"+address.String(), name).Run()
	})
}
