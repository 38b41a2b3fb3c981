package preflight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeManager answers as the test says, and notes what it was asked.
type fakeManager struct {
	health, session http.HandlerFunc
	asked           []string
}

func (f *fakeManager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
	switch r.URL.Path {
	case "/prefix/api/v1/health":
		f.health(w, r)
	case "/prefix/api/v1/session":
		f.session(w, r)
	default:
		http.NotFound(w, r)
	}
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func html(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<html>")
}

const (
	healthy  = `{"data":{"live":true,"ready":true,"schemaVersion":1,"publicUrlMismatch":null}}`
	rightKey = `{"data":{"name":"edge","role":"agent","siteId":7}}`
)

// at returns the options of an agent of site 7 with that manager.
func at(t *testing.T, address string) *Options {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	return &Options{SiteID: 7, Now: time.Now, Units: fakeUnits{}, Manager: &Manager{URL: u, Key: "the-key", UserAgent: "test", Transport: transport, Hostname: "gateway"}}
}

func TestManager(t *testing.T) {
	const (
		answers = "OK    : http://127.0.0.1: … answers"
		clock   = "OK    clock: within 1s of the manager's"
		ready   = "OK    : ready"
		theKey  = `OK    API key: "edge", of the agent of site 7`
	)
	for name, test := range map[string]struct {
		health, session http.HandlerFunc
		key             string
		want            []string
	}{
		"all is well": {says(200, healthy), says(200, rightKey), "k", []string{answers, clock, ready, theKey}},
		"the key of this host": {
			says(200, healthy), says(200, `{"data":{"name":"edge","role":"agent","siteId":7,"hostname":"gateway"}}`), "k",
			[]string{answers, clock, ready, theKey},
		},
		"the key of another host": {
			says(200, healthy), says(200, `{"data":{"name":"edge","role":"agent","siteId":7,"hostname":"other"}}`), "k",
			[]string{
				answers, clock, ready,
				`FAIL  API key: "edge" is the key of the host "other", and this host is "gateway". To do: on the manager: opensource-manager enroll 7`,
			},
		},
		"not ready": {
			says(503, `{"data":{"live":true,"ready":false}}`), says(503, `{"error":{"code":"unavailable","message":"x"}}`), "k",
			[]string{answers, clock, "FAIL  : it is not ready … journalctl -u opensource-manager", "WARN  API key: … (status 503)"},
		},
		"another address for people": {
			says(200, `{"data":{"ready":true,"publicUrlMismatch":"PUBLIC_URL is https://m, but this page was asked for as http://127.0.0.1"}}`),
			says(200, rightKey), "k",
			[]string{answers, clock, ready, "OK    PUBLIC_URL: people use another address", theKey},
		},
		"an older manager": {
			says(404, `{"error":{"code":"not_found","message":"x"}}`), says(404, `{"error":{}}`), "k",
			[]string{
				answers, clock, "WARN  : it does not tell its health (status 404): an older manager",
				"WARN  API key: this manager does not say whether it accepts the key (status 404). To do: sudo opensource-agent tells",
			},
		},
		"an older manager with a page for every path": {
			says(404, `{}`), html, "k",
			[]string{answers, clock, "WARN  : it does not tell its health", "WARN  API key: this manager does not say"},
		},
		"a sign-in page": {html, html, "k", []string{answers, clock, `FAIL  : its answer is not JSON but "text/html" … To do: let /api/v1/ through`}},
		"a redirect": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://new.example/", http.StatusMovedPermanently)
			}, html, "k",
			[]string{answers, clock, `FAIL  : it redirects to "https://new.example/", which is not followed. To do: set MANAGER_URL`},
		},
		"a wrong key": {
			says(200, healthy), says(401, `{"error":{"code":"unauthorized","message":"x"}}`), "k",
			[]string{answers, clock, ready, "FAIL  API key: the manager does not know it … To do: on the manager: opensource-manager enroll 7; then give the command that it prints: sudo opensource-agent enroll --manager URL --token T --force"},
		},
		"no key on the manager's own host": {
			says(200, healthy), says(401, `{"error":{}}`), "",
			[]string{answers, clock, ready, "OK    API key: none, as it may be on the manager's own host"},
		},
		"the key of another site": {
			says(200, healthy), says(200, `{"data":{"name":"edge","role":"agent","siteId":8}}`), "k",
			[]string{answers, clock, ready, `FAIL  API key: "edge" is the key of site 8, and SITE_ID is 7 … or correct SITE_ID`},
		},
		"an administrator's key": {
			says(200, healthy), says(200, `{"data":{"name":"root","role":"admin","siteId":null}}`), "k",
			[]string{answers, clock, ready, `WARN  API key: "root" is an administrator's`},
		},
		"a viewer's key": {
			says(200, healthy), says(200, `{"data":{"name":"eye","role":"viewer","siteId":null}}`), "k",
			[]string{answers, clock, ready, `FAIL  API key: "eye" has the role "viewer", which may not check in`},
		},
		"a clock that is ahead": {
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(-2*time.Hour-30*time.Second).UTC().Format(http.TimeFormat))
				says(200, healthy)(w, r)
			}, says(200, rightKey), "k",
			[]string{answers, "WARN  clock: it is 2h0m … ahead of the manager's. To do: timedatectl", ready, theKey},
		},
		"a clock that is behind": {
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(24*time.Hour).UTC().Format(http.TimeFormat))
				says(200, healthy)(w, r)
			}, says(200, rightKey), "k",
			[]string{answers, "WARN  clock: it is 2 … behind the manager's", ready, theKey},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &fakeManager{health: test.health, session: test.session}
			server := httptest.NewServer(fake)
			defer server.Close()
			o := at(t, server.URL+"/prefix")
			o.Manager.Key = test.key
			wantLines(t, manager(t.Context(), o), test.want...)
			if slices.ContainsFunc(fake.asked, func(asked string) bool { return !strings.HasPrefix(asked, "GET ") }) {
				t.Errorf("the manager may have recorded %q", fake.asked)
			}
			if test.key != "" && !strings.HasSuffix(fake.asked[0], " Bearer "+test.key) {
				t.Errorf("asked %q", fake.asked)
			}
		})
	}
}

func TestTheKeyIsACredentialOfTheService(t *testing.T) {
	server := httptest.NewServer(&fakeManager{health: says(200, healthy), session: says(401, "{}")})
	defer server.Close()
	o := at(t, server.URL+"/prefix")
	o.Manager.Key, o.Units = "", fakeUnits{credential: "api-key"}
	found := manager(t.Context(), o)
	wantLines(t, found[len(found)-1:], "OK    API key: only the service sees it, as the systemd credential api-key")
}

func TestManagerElsewhereNeedsAKey(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "manager.example"}
	answers401 := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 401, Header: http.Header{}, Body: http.NoBody}, nil
	})
	m := &Manager{URL: u, Transport: answers401}
	wantLines(t, list(m.key(t.Context(), 7)), "FAIL  : none is set. To do: on the manager: opensource-manager enroll 7; ")
	wantLines(t, list(m.key(t.Context(), 0)), "FAIL  : none is set. To do: on the manager: opensource-manager enroll N; then give the command that it prints: sudo opensource-agent enroll --manager URL --token T")
	m.Transport = roundTrip(func(*http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(rightKey))}, nil
	})
	wantLines(t, list(m.key(t.Context(), 0)), `OK    : "edge", of the agent of site 7`)
	mismatch := "PUBLIC_URL is https://other"
	wantLines(t, publicURL(&mismatch, u), "WARN  : the manager says: PUBLIC_URL is https://other. To do: set MANAGER_URL")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestNoManager(t *testing.T) {
	wantLines(t, manager(t.Context(), &Options{}), "WARN  : not asked … To do: see the settings above")
}

func TestManagerThatCannotBeReached(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	quiet := log.New(io.Discard, "", 0)
	secure := httptest.NewUnstartedServer(says(200, healthy))
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(says(200, healthy))
	defer plain.Close()
	trusting := x509.NewCertPool()
	trusting.AddCert(secure.Certificate())

	for name, test := range map[string]struct {
		address string
		roots   *x509.CertPool
		want    string
	}{
		"nobody listens":         {"http://" + nobody, nil, "FAIL  : no connection to " + nobody + " … refused. To do: systemctl status opensource-manager"},
		"nobody answers":         {"http://" + silent.Addr().String(), nil, "FAIL  : " + silent.Addr().String() + " did not answer in time … To do: look for a firewall"},
		"an unknown authority":   {secure.URL, x509.NewCertPool(), "FAIL  : the certificate of … authority that is not trusted … To do: set MANAGER_CA_FILE"},
		"another name":           {"https://wrong.test", trusting, "FAIL  : the certificate is not one of wrong.test … To do: use a name in MANAGER_URL"},
		"no TLS":                 {strings.Replace(plain.URL, "http:", "https:", 1), nil, "FAIL  : … does not speak TLS … To do: MANAGER_URL may have to begin with http://"},
		"TLS, asked without it":  {strings.Replace(secure.URL, "https:", "http:", 1), nil, "OK    : http"},
		"a trusted authority":    {secure.URL, trusting, "OK    : https://127.0.0.1"},
		"a name that is nowhere": {"", nil, "FAIL  : there is no address for m.example: … To do: correct MANAGER_URL, or the name servers"},
		"nobody listens there":   {"http://192.0.2.1", nil, "FAIL  : no connection to 192.0.2.1: … To do: is the manager running, on that port"},
		"through a dead proxy":   {"", nil, "FAIL  : no connection … proxyconnect … To do: correct HTTPS_PROXY"},
	} {
		t.Run(name, func(t *testing.T) {
			o := at(t, test.address)
			transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: test.roots}}
			o.Manager.Transport = transport
			switch name {
			case "another name":
				transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, network, secure.Listener.Addr().String())
				}
			case "a name that is nowhere":
				o.Manager.Transport = failing(&net.DNSError{Err: "no such host", Name: "m.example", IsNotFound: true})
			case "nobody listens there":
				o.Manager.Transport = failing(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")})
			case "through a dead proxy":
				o.Manager.Transport = failing(&net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New("connection refused")})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			found := manager(ctx, o)
			wantLines(t, found[:1], test.want)
		})
	}
}

func failing(err error) http.RoundTripper {
	return roundTrip(func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("dial: %w", err) })
}

func TestManagersCertificate(t *testing.T) {
	now := time.Now()
	for left, want := range map[time.Duration]string{
		24 * time.Hour:      "WARN  : it ends on ",
		40 * 24 * time.Hour: "OK    : trusted, and valid until ",
	} {
		state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{NotAfter: now.Add(left)}}}
		wantLines(t, tlsFinding(state, now), want)
	}
	if found := tlsFinding(nil, now); found != nil {
		t.Errorf("without TLS: %v", found)
	}
}
