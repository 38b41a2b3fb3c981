package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/servertest"
)

// publicHost is the name in the examples of contrib/reverse-proxy.
const publicHost = "manager.example.com"

const (
	snakeoilCertificate = "/etc/ssl/certs/ssl-cert-snakeoil.pem"
	snakeoilKey         = "/etc/ssl/private/ssl-cert-snakeoil.key"
)

// proxy is a real one in front of a manager.
type proxy struct {
	manager *servertest.Server
	client  *http.Client // takes every connection to the proxy
	url     string
}

// proxies start one each, with https for publicHost on an address.
var proxyPrograms = map[string]func(t *testing.T, folder, manager, address string) *exec.Cmd{
	"nginx, the example": func(t *testing.T, folder, manager, address string) *exec.Cmd {
		example := readExample(t, "nginx.conf", "listen 80;", "listen "+freeAddress(t)+";", "listen 443 ssl", "listen "+address+" ssl",
			"127.0.0.1:3000", manager, "/etc/ssl/certs/manager.example.com.crt", snakeoilCertificate,
			"/etc/ssl/private/manager.example.com.key", snakeoilKey)
		return nginx(t, folder, example)
	},
	// Whatever the administrator has not thought of: buffering as it is by
	// default, and everything compressed.
	"nginx as it is, with gzip": func(t *testing.T, folder, manager, address string) *exec.Cmd {
		return nginx(t, folder, fmt.Sprintf(`server {
			listen %s ssl; server_name %s; ssl_certificate %s; ssl_certificate_key %s;
			proxy_read_timeout %d;
			location / {
				proxy_pass http://%s;
				proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto https;
			}
		}`, address, publicHost, snakeoilCertificate, snakeoilKey, proxyReadTimeout/time.Second, manager))
	},
	"Caddy, the example, compressing": func(t *testing.T, folder, manager, address string) *exec.Cmd {
		if _, err := exec.LookPath("caddy"); err != nil {
			t.Skip("NOT TESTED: caddy is not installed")
		}
		_, port, _ := net.SplitHostPort(address)
		example := readExample(t, "Caddyfile", "127.0.0.1:3000", manager, publicHost+" {", publicHost+" {\n\tbind 127.0.0.1\n\tencode gzip")
		options := fmt.Sprintf("{\n\tadmin off\n\thttps_port %s\n\tauto_https disable_redirects\n\tlocal_certs\n\tskip_install_trust\n\tstorage file_system %s/store\n}\n", port, folder)
		file := filepath.Join(folder, "Caddyfile")
		if err := os.WriteFile(file, []byte(options+example), 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", file)
		command.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
		return command
	},
}

// proxyReadTimeout is shorter than nginx's own 60 s, to save the tests time; the
// stream writes a line every 15 s.
const proxyReadTimeout = 18 * time.Second

// readExample is an example as an administrator would change it.
func readExample(t *testing.T, name string, changes ...string) string {
	t.Helper()
	content, err := os.ReadFile("../../../contrib/reverse-proxy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(string(content), changes[i]) {
			t.Fatalf("%s does not hold %q", name, changes[i])
		}
	}
	return strings.NewReplacer(changes...).Replace(string(content))
}

func nginx(t *testing.T, folder, servers string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("NOT TESTED: nginx is not installed")
	}
	if _, err := os.ReadFile(snakeoilKey); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	file := filepath.Join(folder, "nginx.conf")
	content := fmt.Sprintf(`user root; daemon off; pid %[1]s/pid; error_log stderr;
events {}
http {
	access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	gzip on; gzip_types *; gzip_proxied any; gzip_min_length 1;
	%[2]s
}`, folder, servers)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command("nginx", "-e", "stderr", "-c", file)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startBehind starts a manager and the proxy in front of it.
func startBehind(t *testing.T, program func(t *testing.T, folder, manager, address string) *exec.Cmd) *proxy {
	t.Helper()
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) {
		c.PublicURL, c.TrustedProxies = mustParse("https://"+publicHost), proxies("127.0.0.0/8")
	}})
	address := freeAddress(t)
	command := program(t, t.TempDir(), strings.TrimPrefix(s.URL, "http://"), address)
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(unix.SIGTERM)
		kill := time.AfterFunc(5*time.Second, func() { _ = command.Process.Kill() }) // Caddy waits for its clients
		defer kill.Stop()
		_ = command.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	p := &proxy{manager: s, url: "https://" + publicHost, client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableCompression: true, // the answer as the proxy sends it
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true, ServerName: publicHost},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		answer, err := p.client.Get(p.url + "/api/v1/health")
		if err == nil {
			answer.Body.Close()
			return p
		}
		if time.Now().After(end) {
			t.Fatalf("the proxy does not start: %v", err)
		}
	}
}

// do sends a request through the proxy and returns the answer, decompressed.
func (p *proxy) do(t *testing.T, method, path, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept-Encoding", "gzip")
	answer, err := p.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := decoded(answer)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// decoded reads a body as what it was before a proxy compressed it.
func decoded(answer *http.Response) (io.Reader, error) {
	if answer.Header.Get("Content-Encoding") != "gzip" {
		return answer.Body, nil
	}
	content, err := gzip.NewReader(answer.Body)
	if errors.Is(err, io.EOF) { // 304 has none
		return strings.NewReader(""), nil
	}
	return content, err
}

func TestBehindProxies(t *testing.T) {
	for name, program := range proxyPrograms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startBehind(t, program)
			key := p.manager.AdminKey
			site := p.manager.Create(t, "/sites", object{"name": "lab"})

			t.Run("it is found to be set up right", func(t *testing.T) {
				if _, health := p.do(t, "GET", "/api/v1/health", "", http.Header{}); !strings.Contains(health, `"publicUrlMismatch":null`) {
					t.Errorf("health: %s", health)
				}
				checkIn := fmt.Sprintf(`{"siteId":%d,"hostname":"x","currentTime":1,"services":{}}`, site)
				if answer, _ := p.do(t, "POST", "/api/v1/agents", checkIn, http.Header{}); answer.StatusCode != 401 {
					t.Errorf("a stranger is trusted as if on loopback: %d", answer.StatusCode)
				}
			})
			t.Run("a tag that a proxy has weakened is known again", func(t *testing.T) {
				checkIn := fmt.Sprintf(`{"siteId":%d,"hostname":"edge","currentTime":1,"services":{}}`, site)
				first, _ := p.do(t, "POST", "/api/v1/agents", checkIn, withKey(key))
				tag := first.Header.Get("ETag")
				t.Logf("tag %s, encoding %q", tag, first.Header.Get("Content-Encoding"))
				second, _ := p.do(t, "POST", "/api/v1/agents", checkIn, withKey(key, "If-None-Match", tag))
				if first.StatusCode != 200 || tag == "" || second.StatusCode != 304 {
					t.Errorf("first %d %q, second %d", first.StatusCode, tag, second.StatusCode)
				}
			})
			t.Run("a live stream passes, lives and resumes", func(t *testing.T) {
				live := openLive(t, p.client, p.url, withKey(key, "Accept-Encoding", "gzip"))
				live.expect("reset {}")
				checkInAs(t, p.manager, site, "a", "")
				live.expect(fmt.Sprintf(`agent {"id":2,"siteId":%d}`, site))
				live.idle(proxyReadTimeout + 7*time.Second)
				checkInAs(t, p.manager, site, "b", "")
				live.expect(fmt.Sprintf(`agent {"id":3,"siteId":%d}`, site))
				live.answer.Body.Close()
				checkInAs(t, p.manager, site, "c", "")
				checkInAs(t, p.manager, site, "d", "")
				back := openLive(t, p.client, p.url, withKey(key, "Last-Event-ID", live.lastID))
				for id := 4; id <= 5; id++ {
					back.expect(fmt.Sprintf(`agent {"id":%d,"siteId":%d}`, id, site))
				}
			})
		})
	}
}
