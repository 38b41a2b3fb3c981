package render

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
)

var update = flag.Bool("update", false, "write the golden files")

// hosts are the snapshots and hosts that golden files exist for.
var hosts = []struct {
	name     string
	snapshot checkin.Snapshot
	facts    func() Facts
}{
	{"bookworm", labSnapshot(), bookworm},
	{"bookworm-no-stream", labSnapshot(), func() Facts {
		f := bookworm()
		f.NGINX.Stream = false
		return f
	}},
	{"bookworm-no-ipv6", labSnapshot(), func() Facts {
		f := bookworm()
		f.IPv6 = false
		return f
	}},
	{"bookworm-no-certificates", labSnapshot(), func() Facts {
		f := bookworm()
		f.Certificates = nil
		return f
	}},
	{"bookworm-auth", authSnapshot(), bookworm},
	{"bookworm-no-auth-server", noAuthServerSnapshot(), bookworm},
	{"bookworm-docs-and-manager", labSnapshot(), func() Facts {
		f := bookworm()
		f.DocsRoot = "/usr/share/doc/example"
		f.ManagerUpstream, f.ManagerHostname = "127.0.0.1:3000", "manager.example.com"
		return f
	}},
	{"bookworm-bootstrap", checkin.Bootstrap(), func() Facts {
		f := bookworm()
		f.ManagerUpstream = "127.0.0.1:3000"
		return f
	}},
	{"bookworm-older-manager", olderSnapshot(), bookworm},
	{"trixie", labSnapshot(), trixie},
	{"trixie-http3", http3(authSnapshot()), trixie},
}

func http3(s checkin.Snapshot) checkin.Snapshot {
	s.NGINX.HTTP3 = true
	return s
}

func TestGoldenNGINX(t *testing.T) {
	for _, host := range hosts {
		t.Run(host.name, func(t *testing.T) {
			result, err := NGINX(host.snapshot, host.facts(), LoadTemplates(nil))
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, host.name+".nginx.conf", result.Files[0].Content)
		})
	}
}

func TestGoldenDNSMasq(t *testing.T) {
	for _, host := range hosts {
		t.Run(host.name, func(t *testing.T) {
			result, err := DNSMasq(host.snapshot, host.facts(), LoadTemplates(nil))
			if err != nil {
				t.Fatal(err)
			}
			if result.Skipped != "" && host.snapshot.Site != nil {
				t.Fatal(result.Skipped)
			}
			var all []byte
			for _, f := range result.Files {
				all = append(all, "==> "+f.Path+"\n"...)
				all = append(all, f.Content...)
			}
			compareGolden(t, host.name+".dnsmasq", all)
		})
	}
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("differs from %s (-golden +rendered), see -update:\n%s", file, diff)
	}
}

// TestNGINXAccepts has the real nginx test every variant, rendered for it: those
// of its own version are the golden files but for their paths.
func TestNGINXAccepts(t *testing.T) {
	installed := installedNGINX(t)
	for _, host := range hosts {
		t.Run(host.name, func(t *testing.T) {
			facts := host.facts()
			facts.NGINX.Version = installed
			facts.Paths = pathsBelow(t, tempDir(t))
			writeCertificates(t, facts)
			testNGINX(t, host.snapshot, facts)
		})
	}
}

// testNGINX renders, and has the real nginx test the result in a network
// namespace where all ports are free.
func testNGINX(t *testing.T, s checkin.Snapshot, facts Facts) Result {
	t.Helper()
	result, err := NGINX(s, facts, LoadTemplates(nil))
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, result)
	out, err := exec.CommandContext(t.Context(), "unshare", "--net", "nginx", "-t", "-q", "-c", result.Files[0].Path).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("nginx -t: %v\n%s", err, out)
	}
	return result
}

// TestDNSMasqAccepts has the real dnsmasq test every variant.
func TestDNSMasqAccepts(t *testing.T) {
	needTool(t, "dnsmasq")
	for _, host := range hosts {
		t.Run(host.name, func(t *testing.T) {
			facts := host.facts()
			facts.Paths = pathsBelow(t, tempDir(t))
			result, err := DNSMasq(host.snapshot, facts, LoadTemplates(nil))
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Files) == 0 {
				return
			}
			writeFiles(t, result)
			out, err := exec.CommandContext(t.Context(), "dnsmasq", "--test", "-C", facts.Paths.DNSMasqConf).CombinedOutput()
			if err != nil {
				t.Errorf("dnsmasq --test: %v\n%s", err, out)
			}
		})
	}
}

// installedNGINX returns the version of the installed nginx. Testing a
// configuration takes root: nginx opens its listeners.
func installedNGINX(t *testing.T) Version {
	t.Helper()
	needTool(t, "nginx")
	needTool(t, "unshare")
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: testing nginx's configuration needs root")
	}
	out, err := exec.CommandContext(t.Context(), "nginx", "-v").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`nginx/(\d+)\.(\d+)\.(\d+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("no version in %q", out)
	}
	var v Version
	for i := range v {
		for _, digit := range m[i+1] {
			v[i] = v[i]*10 + int(digit-'0')
		}
	}
	return v
}

func needTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIPPED: %s is not installed", name)
	}
}

// tempDir is t.TempDir for nginx: its workers run as another user.
func tempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// writeCertificates writes a pair for each usable domain, and the snakeoil one.
func writeCertificates(t *testing.T, f Facts) {
	t.Helper()
	writePair(t, f.Paths.SnakeoilCert, f.Paths.SnakeoilKey, "snakeoil.invalid")
	for domain := range f.Certificates {
		writePair(t, filepath.Join(f.Paths.CertDir, domain+".crt"), filepath.Join(f.Paths.KeyDir, domain+".key"), domain, "*."+domain)
	}
}

func writePair(t *testing.T, certFile, keyFile string, names ...string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, certFile, "CERTIFICATE", cert)
	writePEM(t, keyFile, "PRIVATE KEY", keyDER)
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
