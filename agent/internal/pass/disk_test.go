package pass

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"opensource.internal/agent/checkin"
)

const inNamespace = "TEST_PASS_NAMESPACE"

// inMountNamespace runs the calling test once more, in a process with a mount
// namespace of its own, and returns true there.
func inMountNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: needs root")
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=120s")
	child.Env = append(os.Environ(), inNamespace+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in its namespace: %v\n%s", err, out)
	}
	return false
}

// mounted mounts a file system of one MiB over a folder of the host, with what
// is in the folder.
func (s *site) mounted(path string) string {
	s.t.Helper()
	dir := filepath.Join(s.root, path)
	before := s.t.TempDir()
	if out, err := exec.Command("cp", "-a", dir+"/.", before).CombinedOutput(); err != nil {
		s.t.Fatalf("cp: %v: %s", err, out)
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m,mode=755"); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if out, err := exec.Command("cp", "-a", before+"/.", dir).CombinedOutput(); err != nil {
		s.t.Fatalf("cp: %v: %s", err, out)
	}
	return dir
}

// Whatever is wrong with a disk, the files stay whole, nothing is left behind
// and the other service is served. Once it is mended, all is made good without
// any word of the manager.
func TestDisks(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	for name, test := range map[string]struct {
		folder  string
		breaks  func(t *testing.T, dir string)
		mends   func(t *testing.T, dir string)
		nginx   string // what is told of it
		dnsmasq bool   // is applied all the same
	}{
		"full /etc/nginx": {"etc/nginx", fillUp, freeUp, "nginx.conf: no space left on device (free some space on its file system)", true},
		"full state":      {"var/lib/opensource-agent", fillUp, freeUp, "commit-nginx.json: no space left on device (free some space on its file system)", false},
		"read-only /etc/nginx": {
			"etc/nginx", remount(syscall.MS_RDONLY), remount(0), "nginx.conf: read-only file system (its file system is mounted read-only)", true,
		},
		"read-only state": {
			"var/lib/opensource-agent", remount(syscall.MS_RDONLY), remount(0), "commit-nginx.json: read-only file system (its file system is mounted read-only)", false,
		},
		"nginx.conf is a mount point": {"etc/nginx", bindConf, unbindConf, "it is a mount point and cannot be replaced: mount its folder instead of the file", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.byHand = true // does not wait for the next try
			s.publish(lab())
			s.pass(Settled)
			dir := s.mounted(test.folder)
			s.pass(Settled)
			test.breaks(t, dir)
			before := s.managed()
			changed := lab()
			changed.NGINX.HTTPServices[0].ExternalHostname = "later"
			changed.Site.Nodes[0].Containers[0].Hostname, changed.Site.DNSRecords[0].Target = "later", "later"
			s.publish(changed)
			s.take()
			for range 2 {
				s.pass(Rejected)
			}
			requests, _ := s.take()
			services := last(t, requests).Services
			if r := services["nginx"]; r.Outcome != checkin.OutcomeRejected || !strings.Contains(r.Message, test.nginx) {
				t.Errorf("nginx: %+v", r)
			}
			if s.read("etc/nginx/nginx.conf") != before["etc/nginx/nginx.conf"] {
				t.Error("nginx.conf is not what it was")
			}
			if r := services["dnsmasq"]; (r.LastApply == checkin.ApplySuccess) != test.dnsmasq {
				t.Errorf("dnsmasq: %+v", r)
			}
			s.wantNoLeftovers()

			test.mends(t, dir)
			s.pass(Settled)
			if !strings.Contains(s.read("etc/nginx/nginx.conf"), "later.example.com") || !strings.Contains(s.read("var/lib/dnsmasq/hosts"), "later.lab.internal") {
				t.Error("it was not made good")
			}
			s.wantNoLeftovers()
		})
	}
}

// managed reads the managed files that a change of names touches.
func (s *site) managed() map[string]string {
	content := map[string]string{}
	for _, path := range []string{"etc/nginx/nginx.conf", "etc/dnsmasq.conf", "var/lib/dnsmasq/hosts"} {
		content[path] = s.read(path)
	}
	return content
}

func (s *site) wantNoLeftovers() {
	s.t.Helper()
	for path := range s.files() {
		if strings.Contains(path, ".opensource-agent.") || strings.Contains(path, "commit-") {
			s.t.Errorf("left behind: %s", path)
		}
	}
}

func fillUp(t *testing.T, dir string) {
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
}

func freeUp(t *testing.T, dir string) {
	if err := os.Remove(filepath.Join(dir, "fill")); err != nil {
		t.Fatal(err)
	}
}

func remount(flags uintptr) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// bindConf does what container runtimes do with single files.
func bindConf(t *testing.T, dir string) {
	conf := filepath.Join(dir, "nginx.conf")
	if err := syscall.Mount(conf, conf, "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
}

func unbindConf(t *testing.T, dir string) {
	if err := syscall.Unmount(filepath.Join(dir, "nginx.conf"), 0); err != nil {
		t.Fatal(err)
	}
}
