package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/render"
)

// outputs of nginx -V.
const (
	bookworm = "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.22\nTLS SNI support enabled\n" +
		"configure arguments: --with-cc-opt='-g -O2 --with-stream --prefix=/wrong' --prefix=/usr/share/nginx --with-http_v2_module --with-stream_ssl_module --with-stream=dynamic\n"
	trixie = "nginx version: nginx/1.26.3\nbuilt with OpenSSL 3.5.1\n" +
		"configure arguments: --prefix=/usr/share/nginx --with-http_v2_module --with-http_v3_module --with-stream=dynamic\n"
	static = "nginx version: nginx/1.27.4 (Ubuntu)\nconfigure arguments: --prefix=/etc/nginx --with-stream --with-http_v3_module\n"
)

func TestParseNGINX(t *testing.T) {
	for text, want := range map[string]Tool{
		bookworm: {Version: "1.22.1", Prefix: "/usr/share/nginx"},
		trixie:   {Version: "1.26.3", Prefix: "/usr/share/nginx", HTTP3: true},
		static:   {Version: "1.27.4", Prefix: "/etc/nginx", HTTP3: true, Stream: true},
		"warning: odd locale\nnginx version: openresty/1.25.3.2\n": {Version: "1.25.3"},
	} {
		got, err := parseNGINX(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%.40q: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{"", "nginx", "nginx version: nginx/1.22", "nginx version: nginx/99999.1.1", "nginx version: ../../etc", strings.Repeat("x", 1<<16)} {
		if got, err := parseNGINX(text); err == nil {
			t.Errorf("%.40q was read as %+v", text, got)
		}
	}
}

func TestParseDNSMasq(t *testing.T) {
	for text, want := range map[string]string{
		"Dnsmasq version 2.90  Copyright (c) 2000-2024 Simon Kelley\n": "2.90",
		"Dnsmasq version 2.92test7  Copyright\n":                       "2.92test7",
	} {
		if got, err := parseDNSMasq(text); err != nil || got.Version != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Dnsmasq version", "dnsmasq: unknown option", "Dnsmasq version <img>  x"} {
		if got, err := parseDNSMasq(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestRealTools(t *testing.T) {
	for _, program := range []string{"nginx", "dnsmasq"} {
		if _, err := os.Stat(findProgram(program)); err != nil {
			t.Skipf("SKIPPED: %s is not installed", program)
		}
	}
	f := Probe(t.Context(), Inputs{})
	if len(f.Warnings) > 0 {
		t.Error(f.Warnings)
	}
	if f.Host.NGINX == nil || f.NGINX.Version[0] != 1 || !strings.HasPrefix(f.Host.NGINX.Version, "1.") {
		t.Errorf("nginx %+v, %+v", f.Host.NGINX, f.NGINX)
	}
	if f.Host.DNSMasq == nil || !strings.HasPrefix(f.Host.DNSMasq.Version, "2.") {
		t.Errorf("dnsmasq %+v", f.Host.DNSMasq)
	}
	_, err := os.Stat("/etc/nginx/modules-enabled/50-mod-stream.conf")
	if installed := err == nil; f.NGINX.Stream != installed {
		t.Errorf("stream module %v, installed %v", f.NGINX.Stream, installed)
	}
}

// stub writes a program that runs a shell script, and counts its runs.
func stub(t *testing.T, script string) (path string, runs func() int) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "stub")
	script = fmt.Sprintf("#!/bin/sh\necho run >>'%s/runs'\n%s\n", dir, script)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path, func() int {
		log, _ := os.ReadFile(dir + "/runs")
		return strings.Count(string(log), "run\n")
	}
}

func TestToolIsAskedOnceUntilItsFileChanges(t *testing.T) {
	nginx, runs := stub(t, "cat <<'END' >&2\n"+trixie+"END")
	in := Inputs{NGINX: nginx, DNSMasq: "/nonexistent/dnsmasq", ModulesDir: t.TempDir()}
	first := Probe(t.Context(), in)
	if want := (render.NGINXFacts{Version: render.Version{1, 26, 3}, HTTP3: true}); first.NGINX != want {
		t.Errorf("got %+v, want %+v", first.NGINX, want)
	}
	if first.Host.DNSMasq != nil {
		t.Errorf("dnsmasq %+v", first.Host.DNSMasq)
	}
	in.Cache = first.Cache
	second := Probe(t.Context(), in)
	if runs() != 1 {
		t.Errorf("the program ran %d times", runs())
	}
	if first.Signature() != second.Signature() || second.NGINX != first.NGINX {
		t.Error("the same program gave another signature")
	}
	text, err := os.ReadFile(nginx)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(nginx, []byte(strings.Replace(string(text), "1.26.3", "1.28.0", 1)), 0o755); err != nil {
		t.Fatal(err)
	}
	third := Probe(t.Context(), in)
	if runs() != 2 || third.Host.NGINX.Version != "1.28.0" || third.Signature() == first.Signature() {
		t.Errorf("after an upgrade: %d runs, %+v", runs(), third.Host.NGINX)
	}
}

func TestToolsThatMisbehave(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"hangs":           {"sleep 1000", "did not end in time"},
		"ignores SIGTERM": {"trap '' TERM; sleep 1000 & wait; sleep 1000", "did not end in time"},
		"prints for ever": {"while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", "did not end in time"},
		"prints nothing":  {"", "names no version"},
		"fails":           {"echo 'cannot open shared object' >&2; exit 127", "cannot open shared object"},
		"prints junk":     {"head -c 200000 /dev/urandom", "names no version"},
		"dies":            {"kill -SEGV $$", "signal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nginx, runs := stub(t, c.script)
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			in := Inputs{NGINX: nginx, DNSMasq: "/nonexistent/dnsmasq"}
			started := time.Now()
			f := Probe(ctx, in)
			if took := time.Since(started); took > 4*time.Second {
				t.Errorf("took %v", took)
			}
			if f.Host.NGINX != nil || f.NGINX != (render.NGINXFacts{}) {
				t.Errorf("facts %+v", f.Host.NGINX)
			}
			if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Error(), c.want) || len(f.Warnings[0].Error()) > 1500 {
				t.Errorf("warnings %v, want %q", f.Warnings, c.want)
			}
			// Within one pass it is not asked again.
			in.Cache = f.Cache
			if again := Probe(ctx, in); len(again.Warnings) != 1 || runs() != 1 {
				t.Errorf("asked %d times, %v", runs(), again.Warnings)
			}
		})
	}
}

func TestNoProcessIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	nginx, _ := stub(t, "sleep 1000 & echo $! >'"+dir+"/child'; wait")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := output(ctx, nginx, "-V"); err == nil {
		t.Fatal("a hanging program succeeded")
	}
	text, err := os.ReadFile(dir + "/child")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for alive(pid) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d lives on", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// alive is false for a zombie, too.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestStreamModule(t *testing.T) {
	prefix := t.TempDir()
	installed := filepath.Join(prefix, "modules", "ngx_stream_module.so")
	if err := os.MkdirAll(filepath.Dir(installed), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(installed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file, content string
		want          bool
	}{
		"relative":      {"50-mod-stream.conf", "load_module modules/ngx_stream_module.so;\n", true},
		"absolute":      {"stream.conf", "\n  load_module  \"" + installed + "\" ;", true},
		"commented out": {"50-mod-stream.conf", "# load_module modules/ngx_stream_module.so;\n", false},
		"another":       {"50-mod-geoip.conf", "load_module modules/ngx_stream_geoip_module.so;", false},
		"not included":  {"50-mod-stream.conf.dpkg-old", "load_module modules/ngx_stream_module.so;", false},
		"hidden":        {".stream.conf", "load_module modules/ngx_stream_module.so;", false},
		"not installed": {"stream.conf", "load_module other/ngx_stream_module.so;", false},
		"empty":         {"stream.conf", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "odd[1]*")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
			// As Debian leaves it when a package was removed.
			if err := os.Symlink("/nonexistent", filepath.Join(dir, "dead.conf")); err != nil {
				t.Fatal(err)
			}
			if got := loadsStream(readModules(dir), prefix); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestSignatureFollowsTheModules(t *testing.T) {
	nginx, _ := stub(t, "cat <<'END' >&2\n"+bookworm+"END")
	in := Inputs{NGINX: nginx, ModulesDir: t.TempDir()}
	before := Probe(t.Context(), in)
	if err := os.WriteFile(in.ModulesDir+"/x.conf", []byte("load_module modules/x.so;"), 0o644); err != nil {
		t.Fatal(err)
	}
	if after := Probe(t.Context(), in); after.Signature() == before.Signature() {
		t.Error("a new module changed nothing")
	}
}

func TestFindProgram(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	if got := findProgram("nginx"); got != "/usr/sbin/nginx" {
		t.Errorf("got %s", got)
	}
	_, err := exec.LookPath("nginx")
	if err == nil {
		t.Error("the PATH of this test should have no nginx")
	}
}
