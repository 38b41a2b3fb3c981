package host

import (
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
)

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPath(t *testing.T) {
	root := t.TempDir()
	put(t, root+"/etc/there", "")
	for path, want := range map[string]string{"/etc/there": root + "/etc/there", "/etc/absent": "/etc/absent"} {
		if got := Path(root, path); got != want {
			t.Errorf("%s is read at %s, want %s", path, got, want)
		}
		if got := Path("", path); got != path {
			t.Errorf("without root %s is read at %s", path, got)
		}
	}
}

func TestThisMachine(t *testing.T) {
	f := Probe(t.Context(), Inputs{StateDir: t.TempDir()})
	if f.Host.OS == "" || f.Host.DiskFreeBytes <= 0 || f.Hostname == "" {
		t.Errorf("os %q, free %d, name %q", f.Host.OS, f.Host.DiskFreeBytes, f.Hostname)
	}
	if f.IPv4 != "" {
		if _, err := checkin.ParseHostIPv4(string(f.IPv4)); err != nil {
			t.Error(err)
		}
	}
	if len(f.Resolvers) == 0 {
		t.Error("no name servers")
	}
}

func TestAStateDirThatIsNotThereYet(t *testing.T) {
	f := Probe(t.Context(), Inputs{StateDir: t.TempDir() + "/none", NGINX: "/nonexistent", DNSMasq: "/nonexistent"})
	if len(f.Warnings) != 0 || f.Host.DiskFreeBytes == 0 {
		t.Errorf("warnings %v, free %d", f.Warnings, f.Host.DiskFreeBytes)
	}
}

func TestOSName(t *testing.T) {
	for content, want := range map[string]string{
		"NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n": "Debian GNU/Linux 13 (trixie)",
		"PRETTY_NAME=Alpine\n":                      "Alpine",
		"PRETTY_NAME='Single \"quoted'":             "Single \"quoted",
		"PRETTY_NAME=\"a\\nb\x01\"":                 `a\nb\x01`,
		"PRETTY_NAME=\"" + strings.Repeat("x", 500): "[cut] " + strings.Repeat("x", 122),
	} {
		root := t.TempDir()
		put(t, root+"/etc/os-release", content)
		if got := osName(root); got != want {
			t.Errorf("%.60q: got %q, want %q", content, got, want)
		}
	}
}

func TestMachineID(t *testing.T) {
	id := func(content string) string {
		root := t.TempDir()
		put(t, root+"/etc/machine-id", content)
		return machineID(root)
	}
	const raw = "0123456789abcdef0123456789abcdef"
	hashed := id(raw + "\n")
	if bytes, err := hex.DecodeString(hashed); err != nil || len(bytes) != 16 {
		t.Errorf("got %q", hashed)
	}
	if hashed == raw || hashed != id(raw) || hashed == id("1"+raw[1:]) {
		t.Errorf("got %q", hashed)
	}
	for _, content := range []string{"", "uninitialized\n", "short", strings.Repeat("x", 1<<20)} {
		if got := id(content); got != "" {
			t.Errorf("%.20q gave %q", content, got)
		}
	}
}

func TestResolvers(t *testing.T) {
	addrs := func(texts ...string) []netip.Addr {
		var all []netip.Addr
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text))
		}
		return all
	}
	for content, want := range map[string][]netip.Addr{
		"nameserver 127.0.0.53\noptions edns0\nsearch x\n":                               addrs("127.0.0.53"),
		"# nameserver 9.9.9.9\nnameserver\t1.1.1.1 # ours\r\n":                           addrs("1.1.1.1"),
		"nameserver fe80::1%eth0\nnameserver 2001:db8::1\n":                              addrs("2001:db8::1"),
		"nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4": addrs("1.1.1.1", "1.1.1.2", "1.1.1.3"),
		"": addrs("127.0.0.1"),
		"nameserver 1.1.1.1;\nnameserver x\nnameserver\nxnameserver 1.1.1.1\n\x00": addrs("127.0.0.1"),
	} {
		if diff := cmp.Diff(want, parseResolvers(content, true), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%q: %s", content, diff)
		}
	}
	if got := parseResolvers("nameserver 2001:db8::1\n", false); got[0] != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("without IPv6: %v", got)
	}
}

// onThread runs a function on a thread of its own, which ends with it: what
// the function does to its thread stays there.
func onThread(function func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		function()
	}()
	<-done
}

func TestIPv6SwitchedOffBySysctl(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: a network namespace needs root")
	}
	if !ipv6Works() {
		t.Skip("SKIPPED: there is no IPv6 here")
	}
	onThread(func() {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		if !ipv6Works() {
			t.Error("IPv6 was not found in a fresh network namespace")
			return
		}
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0); err != nil {
			t.Error(err)
			return
		}
		if ipv6Works() {
			t.Error("IPv6 was found where it is switched off")
		}
	})
}

func TestIPv6DeniedByTheKernel(t *testing.T) {
	onThread(func() {
		if err := denyIPv6Sockets(); err != nil {
			t.Errorf("seccomp: %v", err)
			return
		}
		if ipv6Works() {
			t.Error("IPv6 was found where no socket can be made")
		}
	})
}

// denyIPv6Sockets makes socket(AF_INET6, …) fail on this thread as it does on
// a host that was booted with ipv6.disable=1.
func denyIPv6Sockets() error {
	const number, firstArgument = 0, 16 // offsets in struct seccomp_data, seccomp(2)
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	unlessEqual := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	answer := func(value uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value} }
	program := []unix.SockFilter{
		load(number), unlessEqual(unix.SYS_SOCKET, 3),
		load(firstArgument), unlessEqual(unix.AF_INET6, 1),
		answer(unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)),
		answer(unix.SECCOMP_RET_ALLOW),
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
}

func BenchmarkUnchangedProbe(b *testing.B) {
	in := Inputs{Domains: []string{"a.test", "b.test", "c.test"}, StateDir: b.TempDir()}
	in.Cache = Probe(b.Context(), in).Cache
	for b.Loop() {
		f := Probe(b.Context(), in)
		in.Cache = f.Cache
		_ = f.Signature()
	}
}
