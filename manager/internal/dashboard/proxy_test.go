package dashboard_test

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"golang.org/x/sys/unix"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/servertest"
)

// example is nginx with the example of contrib/reverse-proxy, in front of a manager.
type example struct {
	file, address string
	running       *exec.Cmd
}

func newExample(t *testing.T, manager string) *example {
	t.Helper()
	const certificate, key = "/etc/ssl/certs/ssl-cert-snakeoil.pem", "/etc/ssl/private/ssl-cert-snakeoil.key"
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("SKIPPED: nginx is not installed, so no page was looked at through it")
	}
	if _, err := os.ReadFile(key); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	content, err := os.ReadFile("../../../contrib/reverse-proxy/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	e := &example{file: filepath.Join(t.TempDir(), "nginx.conf"), address: freeAddress(t)}
	servers := strings.NewReplacer("listen 80;", "listen "+freeAddress(t)+";", "listen 443 ssl", "listen "+e.address+" ssl", "127.0.0.1:3000", manager,
		"/etc/ssl/certs/manager.example.com.crt", certificate, "/etc/ssl/private/manager.example.com.key", key).Replace(string(content))
	folder := filepath.Dir(e.file)
	whole := fmt.Sprintf(`user root; daemon off; pid %[1]s/pid; error_log stderr;
events {}
http {
	access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	%[2]s
}`, folder, servers)
	if err := os.WriteFile(e.file, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.stop() })
	return e
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

func (e *example) start(t *testing.T) {
	t.Helper()
	e.running = exec.Command("nginx", "-e", "stderr", "-c", e.file)
	if err := e.running.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		connection, err := net.Dial("tcp", e.address)
		if err == nil {
			connection.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func (e *example) stop() {
	if e.running != nil {
		_ = e.running.Process.Signal(unix.SIGTERM)
		_ = e.running.Wait()
		e.running = nil
	}
}

// TestBehindAProxyWithAPrefix: people use the dashboard through nginx, below a
// path, and the proxy is restarted meanwhile.
func TestBehindAProxyWithAPrefix(t *testing.T) {
	const origin = "https://manager.example.com"
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) {
		c.PublicURL, _ = url.Parse(origin + "/m") // can be parsed
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}})
	signIn(t, s)
	site := s.Create(t, "/sites", object{"name": "lab"})
	checkInHealthy(t, s, site, "gate")
	proxy := newExample(t, strings.TrimPrefix(s.URL, "http://"))
	proxy.start(t)
	b := browseAt(t, origin, "", chromedp.Flag("host-resolver-rules", "MAP manager.example.com:443 "+proxy.address), chromedp.Flag("ignore-certificate-errors", true))
	where := func(want string) {
		t.Helper()
		if got := eval[string](t, b, "location.pathname + location.search"); got != want {
			t.Fatalf("on %s, not %s", got, want)
		}
	}
	signedIn := func() {
		t.Helper()
		b.until(t, `location.pathname === "/m/sign-in" && document.readyState === "complete"`)
		b.fill(t, "name", "ada")
		b.fill(t, "password", password)
		b.press(t, "Sign in")
	}
	live := func() {
		t.Helper()
		b.until(t, `document.getElementById("live")?.textContent === "Live"`)
	}

	b.open(t, "/m/agents?q=g")
	signedIn()
	where("/m/agents?q=g")
	live()
	checkInHealthy(t, s, site, "gateway")
	b.reads(t, "gateway")

	proxy.stop()
	b.until(t, `document.getElementById("live").textContent.startsWith("Not live: reconnecting")`)
	checkInHealthy(t, s, site, "garage")
	proxy.start(t)
	b.reads(t, "garage")
	live()
	b.forgive() // that it was away

	b.open(t, "/m/sites/1/edit")
	b.fill(t, "gateway", "192.0.2.1")
	b.press(t, "Save")
	b.reads(t, "Gateway: 192.0.2.1 (was: not set)")
	where("/m/sites/1")
	live()
	if err := chromedp.Run(b.Context, network.ClearBrowserCookies()); err != nil {
		t.Fatal(err)
	}
	checkInHealthy(t, s, site, "garden") // the page notices at the next change
	signedIn()
	b.forgive() // that the session has ended
	where("/m/sites/1")
	live()
}
