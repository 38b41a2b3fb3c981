package render

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// The addresses that the tests of real servers use inside their own network
// namespace, all on its loopback interface.
const (
	outsideAddr  = "198.51.100.1" // how others reach the host
	backendAddr  = "198.51.100.11"
	authAddr     = "198.51.100.12"
	resolverAddr = "198.51.100.53"
)

const namespaceEnv = "RENDER_TEST_IN_NAMESPACE"

// inNamespace runs the calling test once more as a child in a network namespace
// of its own, where every port is free and nothing outside can be reached. It
// returns true in that child, where the test goes on.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaceEnv) != "" {
		for _, args := range [][]string{
			{"link", "set", "lo", "up"},
			{"addr", "add", outsideAddr + "/24", "dev", "lo"},
			{"addr", "add", backendAddr + "/24", "dev", "lo"},
			{"addr", "add", authAddr + "/24", "dev", "lo"},
			{"addr", "add", resolverAddr + "/24", "dev", "lo"},
		} {
			if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
				t.Fatalf("ip %v: %v\n%s", args, err, out)
			}
		}
		return true
	}
	needTool(t, "unshare")
	needTool(t, "ip")
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: a network namespace needs root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), namespaceEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("in the namespace: %v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("in the namespace:\n%s", out)
	}
	return false
}

// start runs a server until the test ends. It returns its output so far.
func start(t *testing.T, name string, args ...string) *syncBuffer {
	t.Helper()
	output := &syncBuffer{}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, output.String())
		}
	})
	return output
}

// eventually polls until done returns true, for at most ten seconds.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("gave up waiting: %s", what)
		case <-tick.C:
		}
	}
}

// startNGINX has the real nginx serve what was rendered, and waits until it
// proves that it does.
func startNGINX(t *testing.T, r Result, facts Facts) {
	t.Helper()
	writeFiles(t, r)
	start(t, "nginx", "-c", facts.Paths.NGINXConf, "-g", "daemon off;")
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(facts.Paths.NGINXErrorLog)
			t.Logf("nginx's error log:\n%s", log)
		}
	})
	eventually(t, "nginx shows its revision", func() bool {
		got, err := fetch(t, "http://127.0.0.1"+RevisionPath, "127.0.0.1:80", nil)
		return err == nil && got.body == r.Revision
	})
}

// hostFacts are those of a host with the installed nginx whose files are in a
// folder of the test, with our error pages.
func hostFacts(t *testing.T) Facts {
	t.Helper()
	facts := bookworm()
	if installedNGINX(t).atLeast(versionHTTP2Directive) {
		facts = trixie()
	}
	facts.Resolvers = facts.Resolvers[:0]
	facts.Paths = pathsBelow(t, tempDir(t))
	pages, err := filepath.Abs("../../packaging/agent/pages")
	if err != nil {
		t.Fatal(err)
	}
	// Copied, since nginx's workers may not enter the folder of the sources.
	if err := os.CopyFS(facts.Paths.ErrorPages, os.DirFS(pages)); err != nil {
		t.Fatal(err)
	}
	writeCertificates(t, facts)
	return facts
}

type answer struct {
	status int
	proto  string
	header http.Header
	body   string
}

// seen is what the echoing backend saw of the request.
func (a answer) seen(t *testing.T) request {
	t.Helper()
	var r request
	if err := json.Unmarshal([]byte(a.body), &r); err != nil {
		t.Fatalf("not an answer of the backend: %d %q", a.status, a.body)
	}
	return r
}

// fetch makes one request over a new connection to addr, and follows nothing.
func fetch(t *testing.T, url, addr string, header http.Header) (answer, error) {
	t.Helper()
	client := &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true,
			ForceAttemptHTTP2: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			},
		},
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Proto, resp.Header, string(body)}, err
}

// get fetches from the nginx of the namespace.
func get(t *testing.T, url string, header http.Header) answer {
	t.Helper()
	port := ":80"
	if strings.HasPrefix(url, "https:") {
		port = ":443"
	}
	got, err := fetch(t, url, outsideAddr+port, header)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// request is what a backend tells of a request it got.
type request struct {
	Method, Host, URI string
	TLSName           string
	Header            http.Header
}

// echo answers with the request as JSON.
func echo(w http.ResponseWriter, r *http.Request) {
	seen := request{Method: r.Method, Host: r.Host, URI: r.RequestURI, Header: r.Header}
	if r.TLS != nil {
		seen.TLSName = r.TLS.ServerName
	}
	_ = json.NewEncoder(w).Encode(seen)
}

// serve runs a handler on a fixed address until the test ends.
func serve(t *testing.T, addr string, withTLS bool, handler http.HandlerFunc) {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	if withTLS {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
}

// serveDNS answers A questions from a table, and NXDOMAIN to all else. It
// returns the names that were asked for.
func serveDNS(t *testing.T, addr string, table map[string]string) *syncBuffer {
	t.Helper()
	asked := &syncBuffer{}
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		reply := new(dns.Msg).SetReply(q)
		name := strings.TrimSuffix(q.Question[0].Name, ".")
		_, _ = io.WriteString(asked, name+"\n")
		address, known := table[name]
		switch {
		case !known:
			reply.Rcode = dns.RcodeNameError
		case q.Question[0].Qtype == dns.TypeA:
			reply.Answer = []dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60},
				A:   net.ParseIP(address),
			}}
		}
		_ = w.WriteMsg(reply)
	})}
	done := make(chan error, 1)
	go func() { done <- server.ActivateAndServe() }()
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), <-done); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Log(err)
		}
	})
	return asked
}

// syncBuffer is a bytes.Buffer for several goroutines.
type syncBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}
