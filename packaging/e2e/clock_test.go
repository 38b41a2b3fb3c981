//go:build e2e

package e2e

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"
)

// wrongClock has the manager seen from a host whose clock is wrong: what runs
// does not go by the clock.
func wrongClock(t *testing.T, s *site) {
	running, loads := s.Read(t, "/etc/nginx/nginx.conf"), s.loads(t)
	t.Run("ahead", func(t *testing.T) {
		code, said := s.ExitCode(t, "env", "MANAGER_URL="+s.managerOfTheDayBefore(t), "opensource-agent")
		if code != 0 || !strings.Contains(said, "this host's clock is 2") || !strings.Contains(said, " ahead of the manager's: one of them is wrong") {
			t.Errorf("the pass ended with %d:\n%s", code, said)
		}
	})
	t.Run("behind, and the manager behind TLS", func(t *testing.T) {
		address, authority := s.managerOfTomorrow(t)
		code, said := s.ExitCode(t, "env", "MANAGER_URL="+address, "MANAGER_CA_FILE="+authority, "opensource-agent")
		if code != 3 || !strings.Contains(said, "certificate has expired or is not yet valid") || !strings.Contains(said, "(is this host's clock behind? set the clock with timedatectl") {
			t.Errorf("the pass ended with %d:\n%s", code, said)
		}
	})
	s.wantServed(t)
	if now := s.loads(t); s.Read(t, "/etc/nginx/nginx.conf") != running || now["nginx"] != loads["nginx"] || now["dnsmasq"] != loads["dnsmasq"] {
		t.Error("something was changed or reloaded")
	}
	s.wantPass(t, 0)
}

// managerOfTheDayBefore is the manager as seen from a host whose clock is a day
// ahead.
func (s *site) managerOfTheDayBefore(t *testing.T) string {
	t.Helper()
	return "http://" + s.proxyManager(t, nil, func(answer *http.Response) error {
		answer.Header.Set("Date", time.Now().AddDate(0, 0, -1).UTC().Format(http.TimeFormat))
		return nil
	})
}

// managerOfTomorrow is the manager behind TLS as seen from a host whose clock is
// a day behind, and the file of the authority of its certificate.
func (s *site) managerOfTomorrow(t *testing.T) (address, authority string) {
	t.Helper()
	now := time.Now()
	issued := s.authority.issue(t, "manager.test", 4001, now.AddDate(0, 0, 1), now.AddDate(0, 0, 60))
	certificate, err := tls.X509KeyPair([]byte(issued.certificate), []byte(issued.key))
	if err != nil {
		t.Fatal(err)
	}
	s.Run(t, "sh", "-c", "grep -q manager.test /etc/hosts || echo '"+s.wires.Gateway.String()+" manager.test' >>/etc/hosts")
	_, port, _ := net.SplitHostPort(s.proxyManager(t, &tls.Config{Certificates: []tls.Certificate{certificate}}, nil))
	return "https://manager.test:" + port, s.Copy(t, s.authority.file)
}

// proxyManager serves the manager with answers that are changed, and returns
// where.
func (s *site) proxyManager(t *testing.T, encrypt *tls.Config, change func(*http.Response) error) string {
	t.Helper()
	behind, err := url.Parse(s.manager.URL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", s.wires.Gateway.String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if encrypt != nil {
		listener = tls.NewListener(listener, encrypt)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }, ModifyResponse: change}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return address
}
