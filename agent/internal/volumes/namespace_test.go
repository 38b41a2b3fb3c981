package volumes

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Mounts are real here. Each test that needs some runs once more, alone in a
// process with its own mount namespace, where workDir names its folder.
const (
	workDir    = "TEST_VOLUMES_DIR"
	capDropped = "TEST_VOLUMES_CAP_DROPPED"
)

// inMountNamespace runs the calling test in a mount namespace of its own and
// returns its folder there, which lies on the root filesystem. It returns an
// empty string in the process that only waits for that.
func inMountNamespace(t *testing.T) string {
	return inNamespace(t, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS})
}

// inUserNamespace does the same in a user namespace that knows the ids 0 to
// 999 only, which are the same outside.
func inUserNamespace(t *testing.T) string {
	few := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1000}}
	return inNamespace(t, &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUSER, UidMappings: few, GidMappings: few,
	})
}

func inNamespace(t *testing.T, attr *syscall.SysProcAttr) string {
	t.Helper()
	if dir := os.Getenv(workDir); dir != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: real mounts need root")
	}
	// Not t.TempDir: /tmp may be a tmpfs, on which no volume may lie.
	dir, err := os.MkdirTemp("/var/tmp", "volumes-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
	child.Env = append(os.Environ(), workDir+"="+dir)
	child.SysProcAttr = attr
	output, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("in its namespace: %v\n%s", err, output)
	}
	if strings.Contains(string(output), "no tests to run") || strings.Contains(string(output), "SKIP") {
		t.Skipf("SKIPPED in its namespace:\n%s", output)
	}
	return ""
}

// dropCapability runs the process again without one capability.
func dropCapability(t *testing.T, capability uintptr) {
	t.Helper()
	if os.Getenv(capDropped) != "" {
		return
	}
	runtime.LockOSThread() // exec takes the bounding set of the thread that calls it
	if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Fatal(unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), capDropped+"=1")))
}

func mkdir(t *testing.T, path string, uid, gid int, mode uint32) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func mount(t *testing.T, source, target, fsType string, flags uintptr, data string) {
	t.Helper()
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, target, fsType, flags, data); err != nil {
		t.Fatalf("mount %s on %s: %v", source, target, err)
	}
}

// bind mounts a new folder of the same disk at target.
func bind(t *testing.T, target string) {
	t.Helper()
	source, err := os.MkdirTemp(os.Getenv(workDir), "disk-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(source, 0o755); err != nil {
		t.Fatal(err)
	}
	mount(t, source, target, "", unix.MS_BIND, "")
}

func stat(t *testing.T, path string) owner {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		t.Fatal(err)
	}
	return owner{int64(s.Uid), int64(s.Gid), s.Mode & 0o7777}
}

func missing(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is there (%v)", path, err)
	}
}
