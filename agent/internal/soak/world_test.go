package soak

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
)

const (
	journalAddress = "127.0.0.1:3001"
	stateDir       = "/var/lib/opensource-agent"
	volumesRoot    = "/mnt/volumes"
	overridesDir   = "/etc/opensource-agent/templates"
	pristine       = scratch + "/pristine" // what the managed folders were at first
)

// The six files that the agent manages.
var managedFiles = map[string][]string{
	"nginx":   {"/etc/nginx/nginx.conf"},
	"dnsmasq": {"/var/lib/dnsmasq/dhcp-hosts", "/var/lib/dnsmasq/hosts", "/var/lib/dnsmasq/dhcp-opts", "/var/lib/dnsmasq/servers", "/etc/dnsmasq.conf"},
}

// enterWorld gives this process, which is alone in its namespaces, private
// folders to write to, a loopback interface and a network of containers.
func enterWorld() error {
	for _, step := range []func() error{
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		func() error { return unix.Mount("proc", "/proc", "proc", 0, "") },
		func() error { return bindVolumes(os.Getenv(dirVariable)) },
		func() error { return unix.Mount("tmpfs", "/run", "tmpfs", 0, "size=256m,mode=755") },
		func() error { return privateCopy("/etc") },
		func() error { return unix.Mount("tmpfs", "/var/lib", "tmpfs", 0, "size=4m,mode=755") },
		func() error { return unix.Mount("tmpfs", "/var/log", "tmpfs", 0, "size=64m,mode=755") },
		makeFolders,
		writeTools,
		keepPristine,
		func() error { return run("ip", "link", "set", "lo", "up") },
		// All addresses of a network on the loopback interface are this host's.
		func() error { return run("ip", "address", "add", "192.0.2.1/24", "dev", "lo") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// bindVolumes makes a folder of a real disk the volumes root.
func bindVolumes(dir string) error {
	volumes := filepath.Join(dir, "volumes")
	if err := errors.Join(os.MkdirAll(volumes, 0o755), unix.Mount("tmpfs", "/mnt", "tmpfs", 0, "size=1m,mode=755"), os.Mkdir(volumesRoot, 0o755)); err != nil {
		return err
	}
	return unix.Mount(volumes, volumesRoot, "", unix.MS_BIND, "")
}

// privateCopy covers a folder with a copy of itself in memory, small enough to
// be filled.
func privateCopy(folder string) error {
	copied := scratch + folder
	if err := os.MkdirAll(copied, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", copied, "tmpfs", 0, "size=16m,mode=755"); err != nil {
		return err
	}
	if err := run("cp", "-a", folder+"/.", copied); err != nil {
		return err
	}
	return unix.Mount(copied, folder, "", unix.MS_BIND, "")
}

func makeFolders() error {
	for _, dir := range []string{
		toolsDir, pristine, "/var/lib/nginx", "/var/lib/misc", "/var/lib/dnsmasq", "/var/log/nginx", overridesDir, "/run/lock",
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile("/etc/dnsmasq.conf", []byte("# Debian's\nbind-dynamic\nno-resolv\n"), 0o644)
}

// keepPristine copies what every sequence begins with.
func keepPristine() error {
	return errors.Join(
		os.RemoveAll("/etc/default/dnsmasq"), // options are no matter here
		run("cp", "-a", "/etc/nginx", "/etc/dnsmasq.conf", pristine),
	)
}

// world is what all sequences of a worker have in common.
type world struct {
	t       *testing.T
	machine *machine
	manager *manager
}

func newWorld(t *testing.T) *world {
	t.Helper()
	m, err := newMachine(scratch)
	must(t, err)
	w := &world{t: t, machine: m, manager: &manager{}}
	must(t, listenHTTP(managerAddress, w.manager), listenHTTP(journalAddress, http.HandlerFunc(m.serveJournal)))
	must(t, startContainers())
	return w
}

func listenHTTP(address string, handler http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	return nil
}

// reset makes the world as it was before the first sequence.
func (w *world) reset() error {
	heal()
	for _, u := range w.machine.units {
		u.set(func(u *unit) { u.refuse, u.before = false, nil })
		u.stop(syscall.SIGKILL)
		u.log.clear()
	}
	w.machine.takeOdd()
	w.manager.set(func(m *manager) {
		m.data, m.etag, m.fault, m.told, m.before = nil, "", "", nil, nil
		m.published = map[string]checkin.Snapshot{}
	})
	var faults []error
	for _, folder := range []string{
		"/etc/nginx", "/var/lib/dnsmasq", stateDir, overridesDir, "/var/log/nginx", validatedDir + "/nginx", validatedDir + "/dnsmasq", volumesRoot, "/etc/elsewhere",
	} {
		faults = append(faults, empty(folder))
	}
	for _, pattern := range []string{"/etc/dnsmasq.conf*", "/etc/.dnsmasq.conf*", "/etc/ssl/certs/example.*", "/etc/ssl/private/example.*", testsLog, "/run/*.pid"} {
		found, _ := filepath.Glob(pattern)
		for _, file := range found {
			faults = append(faults, os.Remove(file))
		}
	}
	faults = append(faults, run("cp", "-a", pristine+"/.", "/etc"))
	for _, unit := range w.machine.units {
		faults = append(faults, unit.restart())
		unit.loaded()
	}
	return errors.Join(faults...)
}

// empty makes a folder and removes all that is in it.
func empty(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// leftovers returns the files of the agent's own that are not meant to stay.
func leftovers() []string {
	var found []string
	for _, pattern := range []string{"/etc/.*", "/etc/nginx/.*", "/var/lib/dnsmasq/.*", stateDir + "/.*", stateDir + "/commit-*", "/etc/elsewhere/.*"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if strings.Contains(file, ".opensource-agent.") || strings.Contains(file, "commit-") {
				found = append(found, file)
			}
		}
	}
	return found
}

// heal takes away every fault of disks and ports.
func heal() {
	for _, folder := range []string{"/etc/nginx", "/var/lib/dnsmasq", stateDir} {
		for unix.Unmount(folder, unix.MNT_DETACH) == nil { // its own mount, if it is read-only
		}
	}
	for _, file := range []string{"/etc/fill", "/var/lib/fill", scratch + "/nginx.refuse", scratch + "/dnsmasq.refuse", scratch + "/nginx.kill", scratch + "/dnsmasq.kill"} {
		_ = os.Remove(file)
	}
}

// makeReadOnly lets nobody write into a folder any more.
func makeReadOnly(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(folder, folder, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount("", folder, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// fill leaves so many bytes free on the disk of a folder.
func fill(folder string, free int64) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return err
	}
	size := int64(disk.Bavail)*disk.Bsize - free
	if size <= 0 {
		return nil
	}
	file, err := os.Create(filepath.Join(folder, "fill"))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, size); err != nil {
		return fmt.Errorf("fill %s: %w", folder, err)
	}
	return nil
}
