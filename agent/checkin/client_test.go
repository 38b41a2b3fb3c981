package checkin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// manager answers every check-in with the handler; the client points at it.
func manager(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/prefix/")
	if err != nil {
		t.Fatal(err)
	}
	return &Client{URL: base, Key: "secret-key", UserAgent: "opensource-agent/test"}
}

func TestCheckInSendsWhatTheContractSays(t *testing.T) {
	var got *http.Request
	var body []byte
	client := manager(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("ETag", `"tag"`)
		_, _ = w.Write(example(t, "answer.json"))
	})
	answer, err := client.CheckIn(t.Context(), Request{SiteID: 1, Hostname: "agent", Services: map[string]ServiceReport{}}, `"old"`)
	if err != nil {
		t.Fatal(err)
	}
	if answer.NotModified || answer.ETag != `"tag"` || answer.Snapshot.Site.Name != "lab" || len(answer.Data) == 0 {
		t.Errorf("answer = %+v", answer)
	}
	if got.Method != "POST" || got.URL.Path != "/prefix/api/v1/agents" ||
		got.Header.Get("Authorization") != "Bearer secret-key" || got.Header.Get("If-None-Match") != `"old"` ||
		got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("request = %s %s %v", got.Method, got.URL, got.Header)
	}
	if want := `{"siteId":1,"hostname":"agent","currentTime":0,"ipv4Address":null,"services":{}}`; string(body) != want {
		t.Errorf("body = %s, want %s", body, want)
	}
}

func TestCheckInNotModified(t *testing.T) {
	for _, tag := range []string{`"mine"`, `W/"mine"`, ""} {
		client := manager(t, func(w http.ResponseWriter, _ *http.Request) {
			if tag != "" {
				w.Header().Set("ETag", tag)
			}
			w.WriteHeader(http.StatusNotModified)
		})
		answer, err := client.CheckIn(t.Context(), Request{}, `"mine"`)
		if err != nil || !answer.NotModified || answer.ETag != `"mine"` {
			t.Errorf("tag %s: %+v, %v", tag, answer, err)
		}
	}
}

func TestCheckInRefusesWrongAnswers(t *testing.T) {
	reply := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	good := string(example(t, "answer.json"))
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		status  int
		words   []string
	}{
		{"login page", reply(200, "text/html", "<html>sign in"), 200, []string{"text/html", "<html>sign in"}},
		{"other JSON", reply(200, "application/json", `{"error":"x"}`), 200, []string{"no data"}},
		{"data null", reply(200, "application/json", `{"data":null}`), 200, []string{"snapshot"}},
		{"cut off", reply(200, "application/json", good[:len(good)/2]), 200, []string{"not complete JSON"}},
		{"two values", reply(200, "application/json", good+good), 200, []string{"not complete JSON"}},
		{"empty", reply(200, "application/json", ""), 200, []string{"not complete JSON"}},
		{"unknown site", reply(404, "application/json", `{"error":{"code":"site_not_found","message":"no site 9"}}`), 404, []string{"404", "no site 9"}},
		{"bad gateway", reply(502, "text/html", "<h1>502"), 502, []string{"502", "<h1>502"}},
		{"no content", reply(204, "application/json", ""), 204, []string{"204"}},
		{"another tag's 304", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"other"`)
			w.WriteHeader(http.StatusNotModified)
		}, 304, []string{"another tag"}},
		{"body shorter than promised", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, good)
		}, 200, []string{"unexpected EOF"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := manager(t, test.handler).CheckIn(t.Context(), Request{}, `"mine"`)
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Status != test.status {
				t.Fatalf("error = %v", err)
			}
			for _, word := range test.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not contain %q", err, word)
				}
			}
			if strings.Contains(err.Error(), "secret-key") {
				t.Errorf("the key is in %q", err)
			}
		})
	}
}

func TestRefusedCredentialsComeWithAHint(t *testing.T) {
	for _, test := range []struct {
		status int
		key    string
		want   string
	}{
		{401, "", "opensource-agent enroll, or set API_KEY"},
		{401, "secret-key", "revoked"},
		{403, "secret-key", "key of this site"},
		{404, "secret-key", ""},
	} {
		client := manager(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, `{"error":{"code":"x","message":"no"}}`)
		})
		client.Key = test.key
		_, err := client.CheckIn(t.Context(), Request{}, "")
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret-key") || strings.Contains(err.Error(), "API_KEY") != (test.want != "") {
			t.Errorf("%d with key %q: %v", test.status, test.key, err)
		}
	}
}

func TestCheckInRefusesAnUnasked304(t *testing.T) {
	client := manager(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	if answer, err := client.CheckIn(t.Context(), Request{}, ""); err == nil {
		t.Errorf("accepted as %+v", answer)
	}
}

func TestCheckInBoundsTheAnswer(t *testing.T) {
	client := manager(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range 500 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	_, err := client.CheckIn(t.Context(), Request{}, "")
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("error = %v", err)
	}
}

func TestCheckInFollowsNoRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed, with %v", r.Header)
	}))
	defer elsewhere.Close()
	client := manager(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/login", http.StatusTemporaryRedirect)
	})
	_, err := client.CheckIn(t.Context(), Request{}, "")
	if err == nil || !strings.Contains(err.Error(), elsewhere.URL) || !strings.Contains(err.Error(), "MANAGER_URL") {
		t.Errorf("error = %v", err)
	}
}

func TestCheckInEndsWithItsContext(t *testing.T) {
	entered := make(chan struct{})
	client := manager(t, func(_ http.ResponseWriter, r *http.Request) {
		// The server notices a closed connection once the body has been read.
		_, _ = io.Copy(io.Discard, r.Body)
		close(entered)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	_, err := client.CheckIn(ctx, Request{}, "")
	var refused *RefusedError
	if err == nil || errors.As(err, &refused) || !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if Timeout > 10*time.Second {
		t.Error("a check-in may take ten seconds at most")
	}
}

func TestInvalidTagIsNotKept(t *testing.T) {
	client := manager(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", "unquoted")
		_, _ = w.Write(example(t, "answer.json"))
	})
	answer, err := client.CheckIn(t.Context(), Request{}, "")
	if err != nil || answer.ETag != "" {
		t.Errorf("answer.ETag = %q, %v", answer.ETag, err)
	}
}

func FuzzParseSnapshot(f *testing.F) {
	f.Add([]byte(`{"site":null,"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}`))
	f.Add([]byte(`{"site":{"id":1,"nodes":[{"containers":[]}]},"nginx":{"httpServices":[{}],"streamServices":[{}],"externalDomains":[{}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		snapshot, err := ParseSnapshot(body)
		if err != nil {
			return
		}
		if snapshot.Site != nil && snapshot.Site.Nodes == nil || snapshot.NGINX.HTTPServices == nil {
			t.Errorf("a missing list was accepted: %q", body)
		}
		if snapshot.Site != nil {
			snapshot.Site.ParseNetwork()
		}
	})
}

// A certificate that is not valid at this time is told from one of a stranger,
// with what to do about it.
func TestCertificatesOutsideTheirTime(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		from, to time.Time
		want     string
	}{
		"not yet valid":    {now.AddDate(1, 0, 0), now.AddDate(2, 0, 0), "is this host's clock behind?"},
		"expired":          {now.AddDate(-2, 0, 0), now.AddDate(-1, 0, 0), "renew the manager's certificate"},
		"of the right day": {now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0), "unknown authority (if that is a private one, give its certificate: enroll --ca-file, else MANAGER_CA_FILE)"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{selfSigned(t, test.from, test.to)}}
			server.StartTLS()
			t.Cleanup(server.Close)
			base, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			client := &Client{URL: base, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()}}}
			_, err = client.CheckIn(t.Context(), Request{}, "")
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "timedatectl") == (name == "of the right day") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// selfSigned makes a certificate of 127.0.0.1 that is valid between two times.
func selfSigned(t *testing.T, from, to time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTheManagersClockIsTold(t *testing.T) {
	const theirs = "Tue, 01 Dec 2026 12:00:00 GMT"
	for _, status := range []int{http.StatusNotModified, http.StatusUnauthorized} {
		client := manager(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", theirs)
			w.WriteHeader(status)
		})
		answer, err := client.CheckIn(t.Context(), Request{}, `"mine"`)
		var refused *RefusedError
		if errors.As(err, &refused) {
			answer.Date = refused.Date
		}
		if got := answer.Date.Format(http.TimeFormat); got != theirs {
			t.Errorf("status %d: %s", status, got)
		}
	}
}
