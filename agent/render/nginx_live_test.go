package render

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
)

// longHost is a host name of 253 characters below example.com.
var longHost = strings.Repeat("a", 49) + strings.Repeat("."+strings.Repeat("b", 63), 3)

// liveSnapshot publishes the backends of the namespace.
func liveSnapshot() checkin.Snapshot {
	backend := checkin.Backend{IPv4Address: backendAddr}
	var s checkin.Snapshot
	publish := func(host, domain string, port int, change func(*checkin.HTTPService)) {
		service := checkin.HTTPService{
			ID: int64(len(s.NGINX.HTTPServices) + 1), InternalPort: port, Container: backend, ExternalHostname: host,
			BackendProtocol: "http", ExternalDomain: checkin.HTTPServiceDomain{Name: domain},
		}
		if change != nil {
			change(&service)
		}
		s.NGINX.HTTPServices = append(s.NGINX.HTTPServices, service)
	}
	signIn := func(server string) func(*checkin.HTTPService) {
		return func(h *checkin.HTTPService) {
			h.AuthRequired, h.ExternalDomain.AuthServer = true, checkin.Text(server)
		}
	}
	publish("app", "example.com", 8080, nil)
	publish("app", "example.org", 8080, nil)
	publish("tls", "example.com", 8443, func(h *checkin.HTTPService) { h.BackendProtocol = "https" })
	publish("dead", "example.com", 8081, nil)
	publish(longHost, "example.com", 8080, nil)
	publish("secret", "example.com", 8080, signIn("http://sso.example.com:4180"))
	publish("secret2", "example.com", 8080, signIn("http://sso.example.com:4180"))
	publish("closed", "example.com", 8080, signIn("http://"+authAddr+":4999"))
	publish("gone", "example.com", 8080, signIn("http://sso.gone.invalid:4180"))
	publish("nobody", "example.com", 8080, signIn(""))
	s.NGINX.ExternalDomains = []checkin.ExternalDomain{{Name: "example.com"}, {Name: "example.org"}}
	s.NGINX.StreamServices = []checkin.StreamService{
		{ID: 1, InternalPort: 8080, Container: backend, ExternalPort: 2080, Protocol: "tcp"},
		{ID: 2, InternalPort: 7, Container: backend, ExternalPort: 2007, Protocol: "udp"},
	}
	return s
}

// spoofed are headers with which a client pretends to be somebody else.
func spoofed() http.Header {
	return http.Header{
		"X-User": {"root"}, "X-Preferred-Username": {"root"}, "X-Email": {"root@example.com"},
		"X-Groups": {"admin"}, "X-Access-Token": {"stolen"},
		"X-Forwarded-For": {"127.0.0.1"}, "X-Real-Ip": {"127.0.0.1"}, "Forwarded": {"for=127.0.0.1"},
		"X-Forwarded-Proto": {"gopher"}, "X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Port": {"1"},
		"X-Forwarded-Uri": {"/public"}, "X-Auth-Request-Redirect": {"https://evil.example"},
	}
}

func TestLiveNGINX(t *testing.T) {
	needTool(t, "nginx")
	if !inNamespace(t) {
		return
	}
	facts := hostFacts(t)
	facts.Resolvers = []netip.Addr{netip.MustParseAddr(resolverAddr)}
	serveDNS(t, resolverAddr+":53", map[string]string{"sso.example.com": authAddr})
	serve(t, backendAddr+":8080", false, containerHandler)
	serve(t, backendAddr+":8443", true, echo)
	auth := serveAuth(t)
	serveUDPEcho(t, backendAddr+":7")

	result, err := NGINX(http3(liveSnapshot()), facts, LoadTemplates(nil))
	if err != nil || len(result.LeftOut) > 0 {
		t.Fatal(err, result.LeftOut)
	}
	startNGINX(t, result, facts)

	t.Run("revision", func(t *testing.T) { testRevision(t) })
	t.Run("pages", func(t *testing.T) { testPages(t) })
	t.Run("proxy", func(t *testing.T) { testProxy(t) })
	t.Run("upgrade", func(t *testing.T) { testUpgrade(t) })
	t.Run("WebSocket", func(t *testing.T) { testWebSocket(t) })
	t.Run("no buffering", func(t *testing.T) { testNoBuffering(t) })
	t.Run("security headers", func(t *testing.T) { testSecurityHeaders(t, facts.NGINX.HTTP3) })
	t.Run("sign-in", func(t *testing.T) { testSignIn(t, auth) })
	t.Run("stream", func(t *testing.T) { testStream(t) })
}

// testRevision: only loopback is told, and only on port 80's default server.
func testRevision(t *testing.T) {
	for _, url := range []string{"http://" + outsideAddr + RevisionPath, "https://" + outsideAddr + RevisionPath, "https://nothing.example.com" + RevisionPath} {
		if got := get(t, url, http.Header{"X-Forwarded-For": {"127.0.0.1"}, "X-Real-Ip": {"127.0.0.1"}}); got.status != http.StatusNotFound {
			t.Errorf("%s: %d %q, want 404", url, got.status, got.body)
		}
	}
	if got := get(t, "https://app.example.com"+RevisionPath, nil); got.seen(t).URI != RevisionPath {
		t.Errorf("a service's own path did not reach it: %q", got.body)
	}
}

func testPages(t *testing.T) {
	for _, test := range []struct {
		url    string
		status int
		page   string
	}{
		{"https://nothing.example.com/", 404, "There is nothing at this address"},
		{"https://deep.nothing.example.com/x", 404, "There is nothing at this address"},
		{"https://example.com/", 404, "There is nothing at this address"},
		{"https://other.invalid/", 404, "There is nothing at this address"},
		{"https://dead.example.com/", 502, "The service does not answer"},
		{"https://nobody.example.com/", 503, "Sign-in is not available"},
		{"https://nobody.example.com/oauth2/auth", 503, "Sign-in is not available"},
		{"https://closed.example.com/", 503, "Sign-in is not available"},
		{"https://closed.example.com/oauth2/start", 503, "Sign-in is not available"},
		{"https://closed.example.com/oauth2/sign_in", 503, "Sign-in is not available"},
		{"https://gone.example.com/", 503, "Sign-in is not available"},
		{"https://app.example.com/.opensource-agent/pages/404.html", 404, "There is nothing at this address"},
		{"https://secret.example.com/.opensource-agent/auth", 404, "There is nothing at this address"},
		{"http://app.example.com/.well-known/acme-challenge/none", 404, "There is nothing at this address"},
	} {
		got := get(t, test.url, nil)
		if got.status != test.status || !strings.Contains(got.body, test.page) {
			t.Errorf("%s: %d %.100q, want %d with %q", test.url, got.status, got.body, test.status, test.page)
		}
		if server := got.header.Get("Server"); server != "nginx" {
			t.Errorf("%s: Server: %q tells more than the name", test.url, server)
		}
	}
	redirect := get(t, "http://app.example.com/a%20b?c=d", nil)
	if want := "https://app.example.com/a%20b?c=d"; redirect.status != 301 || redirect.header.Get("Location") != want {
		t.Errorf("port 80: %d to %q, want 301 to %q", redirect.status, redirect.header.Get("Location"), want)
	}
}

func testProxy(t *testing.T) {
	got := get(t, "https://app.example.com/a%2Fb?c=d", spoofed())
	if got.proto != "HTTP/2.0" {
		t.Errorf("spoken over %s, want HTTP/2.0", got.proto)
	}
	seen := got.seen(t)
	if seen.URI != "/a%2Fb?c=d" || seen.Host != "app.example.com" {
		t.Errorf("the container saw %s on %s", seen.URI, seen.Host)
	}
	wantForwarded(t, seen, "app.example.com")
	wantNoIdentity(t, seen)

	if seen := get(t, "https://tls.example.com/", nil).seen(t); seen.TLSName != "tls.example.com" {
		t.Errorf("the container was asked for the certificate of %q", seen.TLSName)
	}
	long := longHost + ".example.com"
	if len(long) != 253 {
		t.Fatalf("%d characters", len(long))
	}
	if seen := get(t, "https://"+long+"/", nil).seen(t); seen.Host != long {
		t.Errorf("host %s", seen.Host)
	}
}

// wantForwarded checks that the client's own word counted for nothing.
func wantForwarded(t *testing.T, seen request, host string) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Forwarded-For": outsideAddr, "X-Real-Ip": outsideAddr, "X-Forwarded-Proto": "https",
		"X-Forwarded-Host": host, "X-Forwarded-Port": "443",
	} {
		if got := strings.Join(seen.Header.Values(name), "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got, sent := seen.Header["Forwarded"]; sent {
		t.Errorf("Forwarded: %q passed", got)
	}
}

var identity = []string{"X-User", "X-Preferred-Username", "X-Email", "X-Groups", "X-Access-Token"}

func wantNoIdentity(t *testing.T, seen request) {
	t.Helper()
	for _, name := range identity {
		if got, sent := seen.Header[name]; sent {
			t.Errorf("%s: %q passed", name, got)
		}
	}
}

// testUpgrade: WebSockets pass, other upgrades do not, and neither brings an
// identity with it.
func testUpgrade(t *testing.T) {
	upgrade := func(protocol string) request {
		header := spoofed()
		header.Set("Upgrade", protocol)
		header.Set("Connection", "Upgrade")
		return rawGet(t, "app.example.com", header).seen(t)
	}
	seen := upgrade("websocket")
	if seen.Header.Get("Upgrade") != "websocket" || seen.Header.Get("Connection") != "upgrade" {
		t.Errorf("a WebSocket arrived as %v", seen.Header)
	}
	wantNoIdentity(t, seen)
	seen = upgrade("h2c")
	if seen.Header.Get("Upgrade") != "" {
		t.Errorf("an upgrade to %q passed", seen.Header.Get("Upgrade"))
	}
}

// containerHandler echoes requests, speaks back on /socket once it is upgraded,
// and on /duplex answers the first byte of a body before it waits for the rest.
func containerHandler(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/socket":
		conn, stream, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_, _ = io.CopyN(conn, stream, int64(len("hello")))
	case "/duplex":
		controller := http.NewResponseController(w)
		_ = controller.EnableFullDuplex()
		_, _ = io.CopyN(w, r.Body, 1)
		_ = controller.Flush()
		_, _ = io.Copy(w, r.Body)
	default:
		echo(w, r)
	}
}

func testWebSocket(t *testing.T) {
	conn := dialTLS(t, "app.example.com")
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: app.example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	_, _ = io.WriteString(conn, "hello")
	got, err := io.ReadAll(reader)
	if string(got) != "hello" {
		t.Errorf("the tunnel brought back %q, %v", got, err)
	}
}

// testNoBuffering: a byte reaches the container while its request goes on, and
// the answer comes back while the container's goes on.
func testNoBuffering(t *testing.T) {
	conn := dialTLS(t, "app.example.com")
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(conn, "POST /duplex HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: 2\r\n\r\na")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 1)
	if _, err := io.ReadFull(resp.Body, first); err != nil || first[0] != 'a' {
		t.Fatalf("%q, %v", first, err)
	}
	_, _ = io.WriteString(conn, "b")
	rest, err := io.ReadAll(resp.Body)
	if string(rest) != "b" {
		t.Errorf("%q, %v", rest, err)
	}
}

func testSecurityHeaders(t *testing.T, http3 bool) {
	real, fallback := get(t, "https://app.example.com/", nil), get(t, "https://app.example.org/", nil)
	for _, name := range []string{"Strict-Transport-Security", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"} {
		if len(real.header.Values(name)) != 1 {
			t.Errorf("with a real certificate %s: %q", name, real.header.Values(name))
		}
		if len(fallback.header.Values(name)) != 0 {
			t.Errorf("with the snakeoil certificate %s: %q", name, fallback.header.Values(name))
		}
	}
	if altSvc := strings.Contains(real.header.Get("Alt-Svc"), "h3="); altSvc != http3 {
		t.Errorf("HTTP/3 is offered: %t, want %t", altSvc, http3)
	}
	dead := get(t, "https://dead.example.com/", nil)
	if dead.header.Get("Strict-Transport-Security") == "" {
		t.Error("no Strict-Transport-Security on an error page")
	}
}

func testStream(t *testing.T) {
	got, err := fetch(t, "http://tcp.test/x", outsideAddr+":2080", nil)
	if err != nil || got.seen(t).URI != "/x" {
		t.Errorf("TCP: %v %v", got, err)
	}
	conn, err := net.Dial("udp", outsideAddr+":2007")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	buffer := make([]byte, 16)
	_, errWrite := io.WriteString(conn, "datagram")
	n, errRead := conn.Read(buffer)
	if string(buffer[:n]) != "datagram" {
		t.Errorf("UDP: %q %v %v", buffer[:n], errWrite, errRead)
	}
}

func serveUDPEcho(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(buffer[:n], from)
		}
	}()
}

// TestLiveManager: the manager behind nginx always sees that a request was
// forwarded, whatever the client sends, on both ways to it.
func TestLiveManager(t *testing.T) {
	needTool(t, "nginx")
	if !inNamespace(t) {
		return
	}
	facts := hostFacts(t)
	facts.ManagerUpstream, facts.ManagerHostname = "127.0.0.1:3000", "manager.example.com"
	serve(t, facts.ManagerUpstream, false, echo)
	result, err := NGINX(checkin.Bootstrap(), facts, LoadTemplates(nil))
	if err != nil {
		t.Fatal(err)
	}
	startNGINX(t, result, facts)
	for _, host := range []string{outsideAddr, "manager.example.com"} {
		for _, header := range []http.Header{nil, spoofed(), {"X-Forwarded-For": {""}}} {
			got, err := fetch(t, "https://"+host+"/api/v1/agents", outsideAddr+":443", header)
			if err != nil {
				t.Fatal(err)
			}
			wantForwarded(t, got.seen(t), host)
		}
		// A client cannot have them taken for hop-by-hop headers.
		hop := http.Header{"Connection": {"X-Forwarded-For, X-Real-IP"}}
		wantForwarded(t, rawGet(t, host, hop).seen(t), host)
	}
}

// rawGet makes a request over TLS in HTTP/1.1, headers as they are.
func rawGet(t *testing.T, host string, header http.Header) answer {
	t.Helper()
	conn := dialTLS(t, host)
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n", host)
	_ = header.Write(conn)
	_, _ = io.WriteString(conn, "\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Proto, resp.Header, string(body)}
}
