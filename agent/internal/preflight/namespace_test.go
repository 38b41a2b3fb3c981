package preflight

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
)

const insideVariable = "TEST_PREFLIGHT_INSIDE"

// inNamespace runs the calling test once more in a network of its own, where
// every port is free, and in a control group that belongs to no unit. It returns
// true there.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		if out, err := exec.CommandContext(t.Context(), "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			t.Fatalf("ip link set lo up: %v\n%s", err, out)
		}
		return true
	}
	for _, tool := range []string{"ip", "nginx", "dnsmasq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT TESTED: %s is not installed", tool)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: a network namespace needs root")
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=1m")
	child.Env = append(os.Environ(), insideVariable+"=yes")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWCGROUP | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("in the namespace: %v\n%s", err, out)
	}
	return false
}

// start runs a server until the test ends and returns its process.
func start(t *testing.T, name string, args ...string) int {
	t.Helper()
	server := exec.Command(name, args...)
	server.Stderr = os.Stderr
	must(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	return server.Process.Pid
}

// The kernel's own tables, with real servers.
func TestPortsOfRealProcesses(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	thief, err := net.Listen("tcp", ":80")
	must(t, err)
	defer thief.Close()
	resolver, err := net.ListenPacket("udp4", "127.0.0.53:53")
	must(t, err)
	defer resolver.Close()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	write(t, dir+"/nginx.conf", fmt.Sprintf("pid %[1]s/pid;\nerror_log %[1]s/log;\nevents {}\nhttp { access_log off; server { listen 443; listen [::]:443; } }\n", dir))
	start(t, "nginx", "-c", dir+"/nginx.conf", "-g", "daemon off;")
	write(t, dir+"/dnsmasq.conf", "bind-dynamic\nno-resolv\nno-hosts\n")
	start(t, "dnsmasq", "--keep-in-foreground", "--pid-file", "--user=root", "-C", dir+"/dnsmasq.conf")

	snapshot := &checkin.Snapshot{Site: wholeSite().Site}
	o := &Options{Proc: "/proc", Snapshot: snapshot}
	o.Facts.Paths.DNSMasqConf = dir + "/dnsmasq.conf"
	var found []Finding
	listening := func() bool {
		found = ports(t.Context(), o)
		text := strings.Join(lines(found), "\n")
		return strings.Contains(text, "nginx listens") && strings.Count(text, "dnsmasq listens") == 2
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); !listening() && ctx.Err() == nil; <-tick.C {
	}
	name := filepath.Base(os.Args[0])
	wantLines(t, found,
		fmt.Sprintf("FAIL  port 80/tcp: process %d (%s) has [::]:80 instead of nginx. To do: end it (kill %[1]d)", os.Getpid(), name[:min(len(name), 15)]),
		"OK    port 443/tcp: nginx listens", "OK    port 53/udp: dnsmasq listens", "OK    port 53/tcp: dnsmasq listens", "OK    port 67/udp: free",
	)
}

func TestVolumesOfARealMount(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	dir, err := os.MkdirTemp("/var/tmp", "preflight-test-") // /tmp may be a tmpfs
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.MkdirAll(dir+"/disk", 0o755))
	must(t, os.MkdirAll(dir+"/store", 0o755))
	must(t, unix.Mount(dir+"/store", dir+"/disk", "", unix.MS_BIND, ""))
	defer unix.Unmount(dir+"/disk", unix.MNT_DETACH)

	o := &Options{Snapshot: wholeSite()}
	o.Snapshot.Site.Volumes = []checkin.Volume{{ID: 1, HostPath: dir + "/disk/a", Mode: "rw"}, {ID: 2, HostPath: dir + "/disk/b/c", Mode: "ro"}}
	wantLines(t, siteVolumes(t.Context(), o), "OK    : the storage of all 2 is mounted", " …  : "+dir+"/disk/a, "+dir+"/disk/b/c: … free")
	o.Snapshot.Site.Volumes[1].HostPath = dir + "/away/b"
	wantLines(t, siteVolumes(t.Context(), o), "FAIL  : volume 2: … not on a separate mount", " …  : "+dir+"/disk/a: … free")
	if entries, _ := os.ReadDir(dir + "/disk"); len(entries) != 0 {
		t.Errorf("something was made: %v", entries)
	}
}

// A file system that is mounted twice may be read-only in one place alone.
func TestABindMountThatIsReadOnly(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/free", 0o755))
	must(t, os.MkdirAll(dir+"/locked", 0o755))
	must(t, unix.Mount(dir+"/locked", dir+"/locked", "", unix.MS_BIND, ""))
	defer unix.Unmount(dir+"/locked", unix.MNT_DETACH)
	must(t, unix.Mount("", dir+"/locked", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	wantLines(t, space(t.Context(), []string{dir + "/free", dir + "/locked"}),
		" …  : "+dir+"/free: … free", "FAIL  : "+dir+"/locked: mounted read-only. To do: mount -o remount,rw "+dir+"/locked")
}
