package preflight

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// fakeProc is a folder in the form of /proc.
type fakeProc struct {
	dir     string
	sockets map[string][]string // lines by file in net
	inode   int
}

func newProc() *fakeProc { return &fakeProc{sockets: map[string][]string{}, inode: 1000} }

// listens adds a socket, as "80" or "0100007F:80" with the address in the
// kernel's form, held by a process: "PID NAME UNIT", or nobody that can be seen.
func (f *fakeProc) listens(t *testing.T, table, local, holder string) *fakeProc {
	t.Helper()
	address, port, given := strings.Cut(local, ":")
	if !given {
		address, port = "00000000", local
		if strings.HasSuffix(table, "6") {
			address = strings.Repeat("0", 32)
		}
	}
	var number int
	fmt.Sscan(port, &number)
	state := map[bool]string{true: "0A", false: "07"}[strings.HasPrefix(table, "tcp")]
	f.inode++
	f.sockets[table] = append(f.sockets[table], fmt.Sprintf("   0: %s:%04X 00000000:0000 %s 00000000:00000000 00:00000000 00000000     0        0 %d 1 0", address, number, state, f.inode))
	if holder == "" {
		return f
	}
	var pid, name, unit string
	fmt.Sscan(holder, &pid, &name, &unit)
	folder := filepath.Join(f.folder(t), pid)
	must(t, os.MkdirAll(filepath.Join(folder, "fd"), 0o755))
	must(t, os.Symlink(fmt.Sprintf("socket:[%d]", f.inode), filepath.Join(folder, "fd", fmt.Sprint(f.inode))))
	write(t, filepath.Join(folder, "comm"), name+"\n")
	write(t, filepath.Join(folder, "cgroup"), "0::/system.slice/"+unit+"\n")
	return f
}

func (f *fakeProc) folder(t *testing.T) string {
	t.Helper()
	if f.dir == "" {
		f.dir = t.TempDir()
	}
	return f.dir
}

// written writes the tables of sockets and returns the folder.
func (f *fakeProc) written(t *testing.T) string {
	t.Helper()
	f.folder(t)
	must(t, os.MkdirAll(filepath.Join(f.dir, "net"), 0o755))
	must(t, os.MkdirAll(filepath.Join(f.dir, "1", "fd"), 0o755))
	must(t, os.MkdirAll(filepath.Join(f.dir, "sys"), 0o755))
	for _, table := range []string{"tcp", "udp"} { // no IPv6 unless the test has some
		write(t, filepath.Join(f.dir, "net", table), "  sl  local_address rem_address   st ...\n"+strings.Join(f.sockets[table], "\n")+
			"\n   9: 0100007F:0050 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 0 0 77 1\nodd line\n")
	}
	for _, table := range []string{"tcp6", "udp6"} {
		if f.sockets[table] != nil {
			write(t, filepath.Join(f.dir, "net", table), strings.Join(f.sockets[table], "\n"))
		}
	}
	return f.dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

// wholeSite has all network fields, and one TCP and one UDP service.
func wholeSite() *checkin.Snapshot {
	return &checkin.Snapshot{
		Site: &checkin.Site{
			ID: 1, InternalDomain: "lab.internal", DHCPRange: "192.0.2.100,192.0.2.200", SubnetMask: "255.255.255.0",
			Gateway: "192.0.2.1", DNSForwarders: "9.9.9.9",
		},
		NGINX: checkin.NGINX{StreamServices: []checkin.StreamService{
			{InternalPort: 22, ExternalPort: 2201, Protocol: "tcp"}, {InternalPort: 53, ExternalPort: 2053, Protocol: "udp"},
		}},
	}
}

const (
	theNGINX   = "20 nginx nginx.service"
	theDNSMasq = "30 dnsmasq dnsmasq.service"
)

// running is a host on which all is well.
func running(t *testing.T) *fakeProc {
	return newProc().
		listens(t, "tcp", "80", theNGINX).listens(t, "tcp", "443", theNGINX).listens(t, "tcp", "2201", theNGINX).
		listens(t, "udp", "2053", theNGINX).listens(t, "tcp6", "80", theNGINX).listens(t, "tcp6", "443", theNGINX).
		listens(t, "udp", "0100007F:53", theDNSMasq).listens(t, "tcp", "0100007F:53", theDNSMasq).listens(t, "udp", "67", theDNSMasq)
}

func TestPorts(t *testing.T) {
	well := []string{
		"OK    port 80/tcp: nginx listens", "OK    port 443/tcp: nginx listens", "OK    port 53/udp: dnsmasq listens",
		"OK    port 53/tcp: dnsmasq listens", "OK    port 67/udp: dnsmasq listens", "OK    ports of services: none of 2 is in somebody else's hands",
	}
	all := map[string]bool{"nginx": true, "dnsmasq": true}
	conf := filepath.Join(t.TempDir(), "dnsmasq.conf")
	write(t, conf, "# Written by opensource-agent\n\nbind-dynamic\n")
	whole := filepath.Join(t.TempDir(), "dnsmasq.conf")
	write(t, whole, "#bind-dynamic\n")

	for name, test := range map[string]struct {
		proc     *fakeProc
		managed  map[string]bool
		snapshot *checkin.Snapshot
		conf     string
		user     int
		want     []string // nil: well
	}{
		"all is well": {running(t), all, wholeSite(), conf, 0, nil},
		"before the first snapshot": {newProc(), nil, nil, conf, 0, []string{
			"OK    port 80/tcp: free", "OK    port 443/tcp: free", "OK    port 53/udp: free", "OK    port 53/tcp: free", "OK    port 67/udp: free",
		}},
		"Debian's own nginx and dnsmasq": {newProc().listens(t, "tcp", "80", theNGINX).listens(t, "udp", "53", theDNSMasq), nil, nil, conf, 0, []string{
			"OK    port 80/tcp: nginx listens", "OK    port 443/tcp: free", "OK    port 53/udp: dnsmasq listens", "OK    port 53/tcp: free", "OK    port 67/udp: free",
		}},
		"the stub of systemd-resolved": {
			running(t).listens(t, "udp", "3500007F:53", "40 systemd-resolve systemd-resolved.service").
				listens(t, "tcp", "3600007F:53", "40 systemd-resolve systemd-resolved.service"),
			all, wholeSite(), conf, 0, nil,
		},
		"the stub, and dnsmasq on all addresses": {
			newProc().listens(t, "udp", "3500007F:53", "40 systemd-resolve systemd-resolved.service"), all, wholeSite(), whole, 0, []string{
				"FAIL  port 80/tcp: nobody listens, and nginx should. To do: sudo opensource-agent", "FAIL  port 443/tcp: nobody listens",
				"FAIL  port 53/udp: process 40 (systemd-resolve of systemd-resolved.service) has 127.0.0.53:53 instead of dnsmasq. To do: set DNSStubListener=no",
				"FAIL  port 53/tcp: nobody listens", "FAIL  port 67/udp: nobody listens", "OK    ports of services:",
			},
		},
		"another DNS server, web server and service": {
			newProc().listens(t, "udp", "53", "50 named named.service").listens(t, "tcp", "53", "50 named named.service").
				listens(t, "tcp", "80", "60 apache2 apache2.service").listens(t, "tcp6", "80", "60 apache2 apache2.service").
				listens(t, "tcp", "443", "70 haproxy user@0.scope").listens(t, "tcp", "2201", "1 systemd init.scope").
				listens(t, "udp", "2053", ""),
			nil, wholeSite(), conf, 0,
			[]string{
				"FAIL  port 80/tcp: process 60 (apache2 of apache2.service) has 0.0.0.0:80 instead of nginx. To do: systemctl disable --now apache2.service",
				"FAIL  port 443/tcp: process 70 (haproxy … has 0.0.0.0:443 instead of nginx. To do: end it (kill 70)",
				"FAIL  port 53/udp: process 50 (named of named.service) has 0.0.0.0:53 instead of dnsmasq", "FAIL  port 53/tcp: process 50",
				"OK    port 67/udp: free",
				"FAIL  port 2053/udp: a process that cannot be seen from here has 0.0.0.0:2053 instead of nginx. To do: look with ss",
				"FAIL  port 2201/tcp: process 1 (systemd … has 0.0.0.0:2201 instead of nginx. To do: find the socket unit",
			},
		},
		"the dnsmasq of a hypervisor": {
			running(t).listens(t, "udp", "017AA8C0:53", "80 dnsmasq libvirtd.service"), all, wholeSite(), conf, 0, []string{
				well[0], well[1], "FAIL  port 53/udp: process 80 (dnsmasq of libvirtd.service) has 192.168.122.1:53 instead of dnsmasq",
				well[3], well[4], well[5],
			},
		},
		"beside IPv4 on IPv6 alone": {
			newProc().listens(t, "tcp6", "80", "60 caddy caddy.service"), nil, &checkin.Snapshot{}, conf, 0, []string{
				"FAIL  port 80/tcp: process 60 (caddy of caddy.service) has [::]:80 instead of nginx", "OK    port 443/tcp: free",
				"OK    port 53: not used by the agent",
			},
		},
		"not root": {newProc().listens(t, "tcp", "80", ""), nil, &checkin.Snapshot{}, conf, 1000, []string{
			"WARN  port 80/tcp: somebody listens, and only root can see who. To do: run sudo", "OK    port 443/tcp: free", "OK    port 53: not used",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Options{Proc: test.proc.written(t), Managed: test.managed, Snapshot: test.snapshot, UserID: test.user}
			o.Facts.Paths.DNSMasqConf = test.conf
			want := test.want
			if want == nil {
				want = well
			}
			wantLines(t, ports(t.Context(), o), want...)
		})
	}
	wantLines(t, ports(t.Context(), &Options{Proc: t.TempDir()}), "WARN  : read the sockets of this host: … To do: is /proc mounted?")
}

func TestWebPorts(t *testing.T) {
	o := &Options{Snapshot: &checkin.Snapshot{NGINX: checkin.NGINX{HTTP3: true}}, Facts: render.Facts{NGINX: render.NGINXFacts{HTTP3: true}}}
	if got := fmt.Sprint(webPorts(o)); got != "[port 80/tcp port 443/tcp port 443/udp]" {
		t.Error(got)
	}
}

func TestUnitOfAProcess(t *testing.T) {
	for content, want := range map[string]string{
		"0::/system.slice/nginx.service\n":                                      "nginx.service",
		"0::/machine.slice/box/system.slice/nginx.service/sub\n":                "nginx.service",
		"9:pids:/other.service\n1:name=systemd:/system.slice/a.service\n0::/\n": "a.service",
		"12:cpu:/x.service\n0::/user.slice/session-3.scope":                     "session-3.scope",
		"0::/\n": "", "": "", "junk": "", "0::relative": "", "0::": "",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "cgroup"), content)
		if got := unitOf(dir); got != want {
			t.Errorf("%q is of %q, want %q", content, got, want)
		}
	}
	if got := unitOf(t.TempDir()); got != "" {
		t.Errorf("a process that is gone is of %q", got)
	}
}

func TestAddressesOfTheKernel(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:0050":                         "127.0.0.1:80",
		"00000000:01BB":                         "0.0.0.0:443",
		"00000000000000000000000001000000:0035": "[::1]:53",
		"0000000000000000FFFF00000100007F:0050": "127.0.0.1:80", // an IPv4 address in a socket for both
		"B80D0120000000000000000001000000:0035": "[2001:db8::1]:53",
		"0100007F":                              "",
		"0100007F:10000":                        "",
		"0100:0050":                             "",
		"xx00007F:0050":                         "",
		"00000000000000000000000000000000000000000000:01": "",
	} {
		got, err := parseHexAddress(text)
		if (err != nil) != (want == "") || err == nil && got != netip.MustParseAddrPort(want) {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
}
