package preflight

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/render"
)

func TestPrograms(t *testing.T) {
	has := func(stream, http3 bool) host.Facts {
		return host.Facts{Host: checkin.HostInfo{
			NGINX: &checkin.NGINXInfo{Version: "1.26.3", Stream: stream, HTTP3: http3}, DNSMasq: &checkin.DNSMasqInfo{Version: "2.91"},
		}}
	}
	hangs := host.Facts{Warnings: []error{errors.New("ask nginx for its version: it did not end in time")}}
	for name, test := range map[string]struct {
		host     host.Facts
		snapshot *checkin.Snapshot
		want     []string
	}{
		"all":               {has(true, true), nil, []string{"OK    : version 1.26.3", "OK    : has the stream module", "OK    : can do HTTP/3"}},
		"no stream, unused": {has(false, false), nil, []string{"OK    : version", "WARN  : the stream module is missing … To do: apt-get install libnginx-mod-stream", "OK    : cannot do HTTP/3, which is not asked for"}},
		"no stream, used": {has(false, false), wholeSite(), []string{
			"OK    : version", "FAIL  : the stream module is missing: 2 TCP and UDP services are left out", "OK    : cannot do HTTP/3",
		}},
		"no HTTP/3, wanted": {has(true, false), &checkin.Snapshot{NGINX: checkin.NGINX{HTTP3: true}}, []string{
			"OK    : version", "OK    : has the stream", "WARN  : it cannot do HTTP/3, which is switched on",
		}},
		"none":  {host.Facts{}, nil, []string{"FAIL  : it is not installed. To do: apt-get install nginx"}},
		"hangs": {hangs, nil, []string{"FAIL  : ask nginx for its version: it did not end in time. To do: apt-get install --reinstall nginx"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantLines(t, nginxProgram(t.Context(), &Options{Host: test.host, Snapshot: test.snapshot}), test.want...)
		})
	}
	wantLines(t, dnsmasqProgram(t.Context(), &Options{Host: has(true, true)}), "OK    : version 2.91")
	wantLines(t, dnsmasqProgram(t.Context(), &Options{}), "FAIL  : it is not installed. To do: apt-get install dnsmasq")
}

func TestIPv6(t *testing.T) {
	wantLines(t, ipv6(t.Context(), &Options{Host: host.Facts{Host: checkin.HostInfo{IPv6: true}}}), "OK    : works")
	wantLines(t, ipv6(t.Context(), &Options{}), "OK    : is off on this host")
}

func TestWhatValidatorsSay(t *testing.T) {
	wantLines(t, tested("nginx", "nginx: configuration file x test is successful", nil), "OK    : nginx accepts its live files")
	wantLines(t, tested("nginx", "2026 [warn] 1#1: conflicting server name \"a\"\nnginx: fine", nil), "WARN  : nginx warns of its live files: … conflicting server name \"a\". To do: correct the file")
	wantLines(t, tested("dnsmasq", "", errors.New("bad option at line 12 of /etc/dnsmasq.d/x")), "FAIL  : dnsmasq refuses its live files: bad option at line 12")
	there := &Options{Host: host.Facts{Host: checkin.HostInfo{NGINX: &checkin.NGINXInfo{}, DNSMasq: &checkin.DNSMasqInfo{}}}}
	there.Facts.Paths = render.Paths{NGINXConf: "/nonexistent/nginx.conf", DNSMasqConf: "/nonexistent/dnsmasq.conf"}
	wantLines(t, append(nginxConfiguration(t.Context(), there), dnsmasqConfiguration(t.Context(), there)...),
		"OK    : there is no /nonexistent/nginx.conf yet", "OK    : there is no /nonexistent/dnsmasq.conf yet")
	for _, o := range []*Options{{}, {UserID: 1000, Host: host.Facts{Host: checkin.HostInfo{NGINX: &checkin.NGINXInfo{}, DNSMasq: &checkin.DNSMasqInfo{}}}}} {
		if found := append(nginxConfiguration(t.Context(), o), dnsmasqConfiguration(t.Context(), o)...); found != nil {
			t.Errorf("got %v", found)
		}
	}
}

func TestNameServers(t *testing.T) {
	address := func(texts ...string) (all []netip.Addr) {
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text))
		}
		return all
	}
	for name, test := range map[string]struct {
		servers []netip.Addr
		manager string
		want    string
	}{
		"others":                      {address("9.9.9.9", "1.1.1.1"), "https://m.example", "OK    : 9.9.9.9 1.1.1.1"},
		"systemd-resolved":            {address("127.0.0.53"), "https://m.example", "OK    : systemd-resolved"},
		"itself":                      {address("127.0.0.1"), "https://m.example", "WARN  : /etc/resolv.conf leads to this host's own dnsmasq"},
		"itself, beside others":       {address("9.9.9.9", "::1"), "https://m.example", "WARN  : "},
		"itself, and nobody is asked": {address("127.0.0.1"), "https://192.0.2.1", "OK    : 127.0.0.1"},
		"itself, and so the manager":  {address("127.0.0.1"), "http://localhost:3000", "OK    : 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := url.Parse(test.manager)
			must(t, err)
			wantLines(t, nameServers(t.Context(), &Options{Manager: &Manager{URL: u}, Host: host.Facts{Resolvers: test.servers}}), test.want)
		})
	}
}

func TestDiskSpace(t *testing.T) {
	fs := func(blocks, inodes uint64, flags int64) *filesystem {
		return &filesystem{[]string{"/var", "/"}, unix.Statfs_t{Bsize: 1 << 20, Bavail: blocks, Files: 5000, Ffree: inodes, Flags: flags}}
	}
	countless := fs(1<<20, 0, 0)
	countless.stat.Files = 0
	for name, test := range map[string]struct {
		fs   *filesystem
		want string
	}{
		"enough":              {fs(1<<20, 4000, 0), "OK    : /, /var: 1024 GiB free, 4000 inodes"},
		"no inodes to count":  {countless, "OK    : /, /var: 1024 GiB free, any number of inodes"},
		"little space":        {fs(99, 4000, 0), "WARN  : /, /var: 99 MiB free, 4000 inodes. To do: make room: df -h /var"},
		"few inodes":          {fs(500, 999, 0), "WARN  : /, /var: 500 MiB free, 999 inodes"},
		"full":                {fs(7, 4000, 0), "FAIL  : /, /var: 7 MiB free … nothing can be written"},
		"no inodes":           {fs(500, 15, 0), "FAIL  : … nothing can be written"},
		"mounted read-only":   {fs(500, 4000, unix.ST_RDONLY), "FAIL  : /, /var: mounted read-only. To do: mount -o remount,rw"},
		"mounted in many way": {fs(500, 4000, unix.ST_NOATIME), "OK    : "},
	} {
		t.Run(name, func(t *testing.T) { wantLines(t, list(test.fs.finding()), test.want) })
	}
}

func TestManyFoldersOfOneDisk(t *testing.T) {
	fs := &filesystem{stat: unix.Statfs_t{Bsize: 1 << 20, Bavail: 500}}
	for i := range 9 {
		fs.paths = append(fs.paths, fmt.Sprintf("/mnt/%d", i))
	}
	wantLines(t, list(fs.finding()), "OK    : /mnt/0 and 8 others: 500 MiB free")
}

func TestDisksOfThisMachine(t *testing.T) {
	o := &Options{StateDirectory: filepath.Join(t.TempDir(), "not", "there"), Facts: render.Facts{Paths: render.DefaultPaths()}}
	found := disks(t.Context(), o)
	if len(found) == 0 || len(found) > 7 || found[0].Level == Fail {
		t.Errorf("got %v", lines(found))
	}
}

func TestSiteVolumes(t *testing.T) {
	if _, err := os.Stat("/proc/self/mountinfo"); err != nil {
		t.Skip("NOT TESTED: no /proc")
	}
	wantLines(t, siteVolumes(t.Context(), &Options{Snapshot: wholeSite()}), "OK    : the site has none")
	dir, err := os.MkdirTemp("/var/tmp", "preflight-test-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := &Options{Snapshot: wholeSite()}
	o.Snapshot.Site.Volumes = []checkin.Volume{
		{ID: 1, HostPath: "relative", Mode: "rw"}, {ID: 2, HostPath: dir + "/a", Mode: "rw", UID: -1}, {ID: 3, HostPath: "/proc/a", Mode: "rw"},
	}
	wantLines(t, siteVolumes(t.Context(), o),
		"FAIL  : volume 3: … pseudo filesystem … To do: compare findmnt with the path", "FAIL  : volume 1: hostPath", "FAIL  : volume 2: uid")
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("something was made: %v", entries)
	}
}

func TestTemplates(t *testing.T) {
	dir := t.TempDir()
	o := &Options{Overrides: filepath.Join(dir, "own"), Originals: filepath.Join(dir, "package"), Templates: render.LoadTemplates(nil)}
	wantLines(t, templates(t.Context(), o), "OK    : none is overridden")

	old, current := time.Now().Add(-time.Hour), time.Now()
	for name, at := range map[string]time.Time{
		"own/nginx/listen.tmpl": old, "package/nginx/listen.tmpl": current,
		"own/nginx/domain.tmpl": current, "package/nginx/domain.tmpl": old,
		"own/nginx/lisen.tmpl": current,
	} {
		write(t, filepath.Join(dir, name), "x")
		must(t, os.Chtimes(filepath.Join(dir, name), at, at))
	}
	o.Templates = render.LoadTemplates(os.DirFS(o.Overrides))
	wantLines(t, templates(t.Context(), o),
		"OK    : "+o.Overrides+"/nginx/domain.tmpl is used",
		"WARN  : "+o.Overrides+"/nginx/listen.tmpl is older than the original of this version. To do: diff -u "+o.Originals,
		"WARN  : "+o.Overrides+"/nginx/lisen.tmpl takes the place of no template",
	)
}

func TestRendering(t *testing.T) {
	facts := render.Facts{NGINX: render.NGINXFacts{Version: render.Version{1, 26, 3}, Stream: true}}
	there := host.Facts{Host: checkin.HostInfo{NGINX: &checkin.NGINXInfo{}}}
	o := &Options{Facts: facts, Host: there, Templates: render.LoadTemplates(nil)}
	wantLines(t, rendering(t.Context(), o), "OK    : nginx: nothing is left out", "OK    : dnsmasq is not managed: the site does not exist yet")

	o.Snapshot = wholeSite()
	o.Snapshot.NGINX.StreamServices[0].Container.IPv4Address = "192.0.2.1"
	o.Snapshot.NGINX.StreamServices[1].Container.IPv4Address = "nowhere"
	wantLines(t, rendering(t.Context(), o), "WARN  : nginx: left out is stream udp/2053: … To do: correct it in the manager", "OK    : dnsmasq: nothing is left out")

	overrides := t.TempDir()
	write(t, filepath.Join(overrides, "nginx/listen.tmpl"), "{{.Nope")
	o.Templates = render.LoadTemplates(os.DirFS(overrides))
	o.Snapshot.Site.Gateway = "gateway"
	wantLines(t, rendering(t.Context(), o), "FAIL  : nginx: parse template nginx/listen.tmpl: … To do: correct the template", "FAIL  : dnsmasq: site.gateway: … To do: correct")
}

func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	end := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	later := end.AddDate(1, 0, 0)
	o := &Options{}
	o.Facts.Paths = render.Paths{CertDir: "/c", KeyDir: "/k", SnakeoilCert: dir + "/cert.pem", SnakeoilKey: dir + "/key.pem"}
	wantLines(t, certificates(t.Context(), o), "FAIL  : the self-signed pair: … To do: make-ssl-cert generate-default-snakeoil")
	o.UserID = 1000
	wantLines(t, certificates(t.Context(), o), "WARN  : the self-signed pair cannot be read … To do: run as root")

	writePair(t, o.Facts.Paths.SnakeoilCert, o.Facts.Paths.SnakeoilKey)
	o.Host.Certificates = map[string]checkin.Certificate{
		"a.test": {State: checkin.CertificateOK, NotAfter: &later}, "b.test": {State: checkin.CertificateOK, NotAfter: &end},
		"c.test": {State: checkin.CertificateMissing, Fallback: true}, "d.test": {State: checkin.CertificateExpiring},
		"e.test": {State: checkin.CertificateExpired}, "f.test": {State: checkin.CertificateMismatch, Fallback: true},
	}
	o.Host.CertificateNotes = map[string]string{"f.test": "/k/f.test.key is not the key of it", "e.test": "it ended", "d.test": "it ends soon", "c.test": "no such file"}
	wantLines(t, certificates(t.Context(), o),
		"OK    : the self-signed pair",
		"WARN  : c.test: missing: no such file; browsers warn … To do: put the pair into /c/c.test.crt and /k/c.test.key",
		"WARN  : d.test: expiring: it ends soon. To do: renew it",
		"FAIL  : e.test: expired: it ended. To do: renew it, or set this host's clock right",
		"FAIL  : f.test: mismatch: /k/f.test.key is not the key of it. To do: put the pair",
		"OK    : 2 in use, the first one ends on 2027-03-01",
	)
}

func writePair(t *testing.T, certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, private.Public(), private)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	write(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
}

func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	o := &Options{StateDirectory: filepath.Join(dir, "state"), Now: time.Now}
	o.Facts.Paths = render.Paths{NGINXConf: dir + "/nginx/nginx.conf", DNSMasqConf: dir + "/dnsmasq.conf", DNSMasqDir: dir + "/dnsmasq"}
	write(t, dir+"/nginx/sites-enabled/default", "")
	wantLines(t, leftovers(t.Context(), o), "OK    : none")

	write(t, dir+"/nginx/.nginx.conf.opensource-agent.new-1", "")
	write(t, dir+"/dnsmasq/.hosts.opensource-agent.old", "")
	write(t, dir+"/nginx/sites-enabled/shop", "")
	wantLines(t, leftovers(t.Context(), o), "WARN  : nginx.conf of the agent does not read /etc/nginx/sites-enabled: shop. To do: move")
	o.Now = func() time.Time { return time.Now().Add(settledAfter + time.Second) }
	wantLines(t, leftovers(t.Context(), o),
		"WARN  : a pass that was cut short has left "+dir+"/nginx/.nginx.conf.opensource-agent.new-1. To do: sudo opensource-agent",
		"WARN  : a pass that was cut short has left "+dir+"/dnsmasq/.hosts.opensource-agent.old",
		"WARN  : nginx.conf of the agent",
	)
}
