package host

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// store is a folder of certificate pairs.
type store struct {
	t   *testing.T
	dir string
}

func newStore(t *testing.T) store { return store{t, t.TempDir()} }

func (s store) put(name string, content []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), content, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s store) probe(cache Cache, domains ...string) Facts {
	return Probe(s.t.Context(), Inputs{
		CertDir: s.dir, KeyDir: s.dir, Domains: domains, Now: now, Cache: cache,
		NGINX: "/nonexistent/nginx", DNSMasq: "/nonexistent/dnsmasq",
	})
}

type issuer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// issue makes a certificate for a key, self-signed without an issuer.
func issue(t *testing.T, key crypto.Signer, by *issuer, change func(*x509.Certificate)) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: fmt.Sprintf("test %T", key)},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(90 * 24 * time.Hour), DNSNames: []string{"example.com"},
	}
	if change != nil {
		change(template)
	}
	if by == nil {
		by = &issuer{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	return must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
}

func pkcs8(t *testing.T, key any) []byte {
	der := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(key))
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func join(parts ...[]byte) []byte {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// TestPairIsJudgedAsNGINXJudgesIt compares with the nginx that is installed.
func TestPairIsJudgedAsNGINXJudgesIt(t *testing.T) {
	nginx := findProgram("nginx")
	if _, err := os.Stat(nginx); err != nil {
		t.Skip("SKIPPED: nginx is not installed")
	}
	t.Setenv("GODEBUG", "rsa1024min=0")
	ec, other := ecKey(t), ecKey(t)
	rsaKey := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	small := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 1024))
	p224 := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority := func(key crypto.Signer) (*issuer, []byte) {
		text := issue(t, key, nil, func(c *x509.Certificate) {
			c.IsCA, c.BasicConstraintsValid, c.Subject.CommonName = true, true, "authority"
		})
		block, _ := pem.Decode(text)
		return &issuer{must[*x509.Certificate](t)(x509.ParseCertificate(block.Bytes)), key}, text
	}
	ca, caText := authority(rsaKey)
	smallCA, smallCAText := authority(small)
	sha1 := func(c *x509.Certificate) { c.SignatureAlgorithm = x509.SHA1WithRSA }
	crt, key := issue(t, ec, nil, nil), pkcs8(t, ec)
	sec1 := must[[]byte](t)(x509.MarshalECPrivateKey(ec))
	cut := func(text []byte) []byte { return text[:len(text)-40] }
	spoiled := []byte(strings.Replace(string(caText), "\nMII", "\n!!!", 1))
	//lint:ignore SA1019 this old way to encrypt a key is still found on hosts
	encrypted := must[*pem.Block](t)(x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", sec1, []byte("secret"), x509.PEMCipherAES256))

	const ok, unreadable = checkin.CertificateOK, checkin.CertificateUnreadable
	for name, c := range map[string]struct {
		certificate, key []byte
		want             checkin.CertificateState
	}{
		"ecdsa":                  {crt, key, ok},
		"p224":                   {issue(t, p224, nil, nil), pkcs8(t, p224), ok},
		"sec1":                   {crt, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}), ok},
		"parameters before key":  {crt, join([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"), key), ok},
		"rsa":                    {issue(t, rsaKey, nil, nil), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)}), ok},
		"ed25519":                {issue(t, ed, nil, nil), pkcs8(t, ed), ok},
		"chain":                  {join(issue(t, ec, ca, nil), caText), key, ok},
		"chain and text":         {join([]byte("subject=test\n"), issue(t, ec, ca, nil), []byte("\nissuer\n\n"), caText, []byte("\nend")), key, ok},
		"windows line ends":      {[]byte(strings.ReplaceAll(string(crt), "\n", "\r\n")), key, ok},
		"all in both":            {join(crt, key), join(crt, key), ok},
		"key first":              {join(key, crt), key, ok},
		"expired":                {issue(t, ec, nil, func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Hour) }), key, ok},
		"not yet valid":          {issue(t, ec, nil, func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }), key, ok},
		"other key":              {crt, pkcs8(t, other), checkin.CertificateMismatch},
		"empty":                  {nil, key, unreadable},
		"empty key":              {crt, nil, unreadable},
		"text":                   {[]byte("<html>"), key, unreadable},
		"DER":                    {func() []byte { block, _ := pem.Decode(crt); return block.Bytes }(), key, unreadable},
		"swapped":                {key, crt, unreadable},
		"cut":                    {cut(crt), key, unreadable},
		"cut key":                {crt, cut(key), unreadable},
		"cut chain":              {join(issue(t, ec, ca, nil), cut(caText)), key, unreadable},
		"spoiled chain":          {join(issue(t, ec, ca, nil), spoiled), key, unreadable},
		"spoiled inside a chain": {join(issue(t, ec, ca, nil), spoiled, caText), key, unreadable},
		"not a certificate":      {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("xx")}), key, unreadable},
		"encrypted key":          {crt, pem.EncodeToMemory(encrypted), unreadable},
		"small rsa key":          {issue(t, small, nil, nil), pkcs8(t, small), unreadable},
		"signed by sha1":         {issue(t, ec, ca, sha1), key, unreadable},
		"self-signed by sha1":    {issue(t, rsaKey, nil, sha1), pkcs8(t, rsaKey), ok},
		"small authority":        {join(issue(t, ec, smallCA, nil), smallCAText), key, unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.put("example.com.crt", c.certificate)
			s.put("example.com.key", c.key)
			pair := readPair(s.dir+"/example.com.crt", s.dir+"/example.com.key")
			if pair.State != c.want {
				t.Errorf("state %s (%s), want %s", pair.State, pair.Note, c.want)
			}
			if words, loads := nginxLoads(t, nginx, s.dir); loads != (c.want == ok) {
				t.Errorf("state %s, but nginx says: %s", c.want, words)
			}
			if strings.Contains(pair.Note, "PRIVATE KEY-----") {
				t.Errorf("the note shows the key: %s", pair.Note)
			}
		})
	}
}

// TestKeyOfAnotherKind is a pair that nginx takes, but with which no client can
// get a connection.
func TestKeyOfAnotherKind(t *testing.T) {
	s := newStore(t)
	s.put("example.com.crt", issue(t, ecKey(t), nil, nil))
	s.put("example.com.key", pkcs8(t, must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))))
	if pair := readPair(s.dir+"/example.com.crt", s.dir+"/example.com.key"); pair.State != checkin.CertificateMismatch {
		t.Errorf("state %s (%s)", pair.State, pair.Note)
	}
}

// nginxLoads lets the real nginx test a configuration with the pair in dir.
func nginxLoads(t *testing.T, nginx, dir string) (words string, loads bool) {
	t.Helper()
	configuration := fmt.Sprintf(`pid %[1]s/pid; error_log stderr; events {}
http { access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f;
uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
server { listen unix:%[1]s/socket ssl; ssl_certificate %[1]s/example.com.crt; ssl_certificate_key %[1]s/example.com.key; } }`, dir)
	if err := os.WriteFile(dir+"/nginx.conf", []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(nginx, "-t", "-p", dir, "-c", dir+"/nginx.conf", "-e", "stderr")
	output, err := command.CombinedOutput()
	return string(output), err == nil
}

func TestStatesAndDates(t *testing.T) {
	s := newStore(t)
	key := ecKey(t)
	for name, days := range map[string]int{"ok.test": 31, "expiring.test": 29, "expired.test": -1} {
		s.put(name+".crt", issue(t, key, nil, func(c *x509.Certificate) { c.NotAfter = now.Add(time.Duration(days) * 24 * time.Hour) }))
		s.put(name+".key", pkcs8(t, key))
	}
	s.put("future.test.crt", issue(t, key, nil, func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }))
	s.put("future.test.key", pkcs8(t, key))
	s.put("no-key.test.crt", issue(t, key, nil, nil))
	s.put("no-cert.test.key", pkcs8(t, key))
	s.put("odd.test.key", pkcs8(t, key))
	if err := os.Mkdir(s.dir+"/odd.test.crt", 0o700); err != nil {
		t.Fatal(err)
	}
	f := s.probe(Cache{}, "ok.test", "expiring.test", "EXPIRED.test.", "future.test", "no-key.test", "no-cert.test", "odd.test", "none.test",
		"../../etc/passwd", "a/b", "", "bad name; #", "ok.test")
	for domain, want := range map[string]struct {
		state    checkin.CertificateState
		fallback bool
	}{
		"ok.test":       {checkin.CertificateOK, false},
		"expiring.test": {checkin.CertificateExpiring, false},
		"expired.test":  {checkin.CertificateExpired, false},
		"future.test":   {checkin.CertificateExpired, false},
		"no-key.test":   {checkin.CertificateMissing, true},
		"no-cert.test":  {checkin.CertificateMissing, true},
		"odd.test":      {checkin.CertificateUnreadable, true},
		"none.test":     {checkin.CertificateMissing, true},
	} {
		got, told := f.Certificates[domain]
		if !told || got.State != want.state || got.Fallback != want.fallback {
			t.Errorf("%s: %+v, want %+v", domain, got, want)
		}
		if _, usable := f.Usable[domain]; usable == want.fallback {
			t.Errorf("%s: usable %v", domain, usable)
		}
		if (got.NotAfter == nil) != want.fallback {
			t.Errorf("%s: notAfter %v", domain, got.NotAfter)
		}
		if noted := f.CertificateNotes[domain] != ""; noted != (want.state != checkin.CertificateOK) {
			t.Errorf("%s: note %q", domain, f.CertificateNotes[domain])
		}
	}
	if len(f.Certificates) != 8 {
		t.Errorf("names that are no domains were looked up: %v", f.Certificates)
	}
}

func TestWrongClockSwapsNoCertificate(t *testing.T) {
	s := newStore(t)
	key := ecKey(t)
	s.put("example.com.crt", issue(t, key, nil, nil))
	s.put("example.com.key", pkcs8(t, key))
	in := Inputs{CertDir: s.dir, KeyDir: s.dir, Domains: []string{"example.com"}, NGINX: "/nonexistent", DNSMasq: "/nonexistent"}
	signatures := map[string]bool{}
	for _, clock := range []time.Time{now, time.Unix(1, 0), now.AddDate(50, 0, 0)} {
		in.Now = clock
		f := Probe(t.Context(), in)
		if f.Usable["example.com"].Digest == "" || f.Certificates["example.com"].Fallback {
			t.Errorf("at %v: %+v", clock, f.Certificates["example.com"])
		}
		signatures[f.Signature()] = true
		in.Cache = f.Cache
	}
	if len(signatures) != 1 {
		t.Errorf("the clock changes the signature: %v", signatures)
	}
}

func TestRenewedCertificateIsSeen(t *testing.T) {
	s := newStore(t)
	key := ecKey(t)
	s.put("example.com.crt", issue(t, key, nil, nil))
	s.put("example.com.key", pkcs8(t, key))
	first := s.probe(Cache{}, "example.com")
	if again := s.probe(first.Cache, "example.com"); again.Signature() != first.Signature() {
		t.Error("signature of an unchanged pair changed")
	}
	// In place, with the same size, and dated back: only the change time tells.
	info, err := os.Stat(s.dir + "/example.com.crt")
	if err != nil {
		t.Fatal(err)
	}
	renewed := issue(t, key, nil, nil)
	for int64(len(renewed)) != info.Size() {
		renewed = issue(t, key, nil, nil)
	}
	s.put("example.com.crt", renewed)
	if err := os.Chtimes(s.dir+"/example.com.crt", info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	second := s.probe(first.Cache, "example.com")
	if second.Signature() == first.Signature() || second.Usable["example.com"] == first.Usable["example.com"] {
		t.Error("the renewed certificate was not seen")
	}
	if err := os.Remove(s.dir + "/example.com.key"); err != nil {
		t.Fatal(err)
	}
	third := s.probe(second.Cache, "example.com")
	if third.Certificates["example.com"].State != checkin.CertificateMissing || third.Signature() == second.Signature() {
		t.Errorf("without its key: %+v", third.Certificates)
	}
	s.put("example.com.key", pkcs8(t, key))
	if back := s.probe(third.Cache, "example.com"); back.Signature() != second.Signature() {
		t.Errorf("with its key again: %+v", back.Certificates)
	}
}

func TestCacheIsUsedAndForgetsOtherDomains(t *testing.T) {
	s := newStore(t)
	key := ecKey(t)
	s.put("example.com.crt", issue(t, key, nil, nil))
	s.put("example.com.key", pkcs8(t, key))
	later := time.Now().Add(time.Hour) // the files are settled by then
	in := Inputs{CertDir: s.dir, KeyDir: s.dir, Domains: []string{"example.com", "none.test"}, NGINX: "/nonexistent", DNSMasq: "/nonexistent", Now: later}
	first := Probe(t.Context(), in)
	pair, cached := first.Cache.Certificates["example.com"]
	if !cached {
		t.Fatal("nothing was remembered")
	}
	pair.Digest = "from the cache"
	in.Cache = Cache{Certificates: map[string]Pair{"example.com": pair, "gone.test": pair}}
	second := Probe(t.Context(), in)
	if second.Usable["example.com"].Digest != "from the cache" {
		t.Error("an unchanged pair was read again")
	}
	if len(second.Cache.Certificates) != 2 {
		t.Errorf("cache %v", second.Cache.Certificates)
	}
	// A file that changed this moment may change again unseen.
	in.Now, in.Cache = time.Now(), Cache{}
	if fresh := Probe(t.Context(), in); len(fresh.Cache.Certificates) != 1 {
		t.Errorf("a fresh pair was remembered: %v", fresh.Cache.Certificates)
	}
}

func FuzzPair(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		// Neither may panic, and neither may succeed without a block of PEM.
		if leaf, err := parseChain(certificate); err == nil && leaf == nil {
			t.Error("no certificate and no error")
		}
		if public, err := parseKey(key); err == nil && public == nil {
			t.Error("no key and no error")
		}
	})
}
