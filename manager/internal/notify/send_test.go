package notify_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"opensource.internal/manager/internal/notify"
	"opensource.internal/manager/internal/store"
)

var message = notify.Message{Title: "OpenSource Manager: 1 silent", Body: "Silent (1)\n- web1 (lab): has not checked in"}

// received is a real HTTP server on loopback, and the last request it got.
func received(t *testing.T, status int) (address string, last func() (*http.Request, string)) {
	var request *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(status)
		fmt.Fprint(w, `{"id":"1"}`)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func() (*http.Request, string) { return request, string(body) }
}

func TestWebhook(t *testing.T) {
	address, last := received(t, http.StatusOK)
	if err := notify.Send(t.Context(), "generic+http://"+address+"/hook?template=json", message); err != nil {
		t.Fatal(err)
	}
	request, body := last()
	if request.Method != "POST" || request.URL.Path != "/hook" || !strings.Contains(body, `"title":"OpenSource Manager: 1 silent"`) || !strings.Contains(body, `web1 (lab)`) {
		t.Errorf("%s %s: %s", request.Method, request.URL, body)
	}
}

func TestNtfy(t *testing.T) {
	address, last := received(t, http.StatusOK)
	if err := notify.Send(t.Context(), "ntfy://"+address+"/alerts?scheme=http", message); err != nil {
		t.Fatal(err)
	}
	request, body := last()
	if request.URL.Path != "/alerts" || !strings.Contains(body, "web1 (lab)") || !strings.Contains(fmt.Sprint(request.Header), "1 silent") {
		t.Errorf("%s %v: %s", request.URL, request.Header, body)
	}
}

// mailbox is a small real SMTP server (RFC 5321) that keeps one mail.
func mailbox(t *testing.T) (address string, mail <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	kept := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		say := func(line string) { fmt.Fprintf(conn, "%s\r\n", line) }
		say("220 mail.example.com ready")
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			switch command := strings.ToUpper(strings.Fields(line + " x")[0]); command {
			case "EHLO", "HELO":
				say("250 mail.example.com")
			case "DATA":
				say("354 go on")
				var text strings.Builder
				for {
					line, err := in.ReadString('\n')
					if err != nil || line == ".\r\n" {
						break
					}
					text.WriteString(line)
				}
				kept <- text.String()
				say("250 kept")
			case "QUIT":
				say("221 bye")
				return
			default:
				say("250 ok")
			}
		}
	}()
	return listener.Addr().String(), kept
}

func TestMail(t *testing.T) {
	address, mail := mailbox(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := notify.Send(ctx, "smtp://"+address+"/?from=manager@example.com&to=ops@example.com&encryption=None&auth=None&usestarttls=no", message)
	if err != nil {
		t.Fatal(err)
	}
	text := <-mail
	for _, part := range []string{"Subject: OpenSource Manager: 1 silent", "From: ", "manager@example.com", "To: ops@example.com", "web1 (lab)"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in the mail:\n%s", part, text)
		}
	}
}

// Whatever goes wrong, the error says what, and nothing of the secret.
func TestErrorsTellNoSecret(t *testing.T) {
	refusing, _ := received(t, http.StatusForbidden)
	for _, target := range []string{
		"generic+http://127.0.0.1:1/hooks/SECRETSECRET?key=SECRETSECRET",
		"generic+http://" + refusing + "/hooks/SECRETSECRET?key=SECRETSECRET",
		"ntfy://user:SECRETSECRET@127.0.0.1:1/topic?scheme=http",
		"ntfy://:SECRETSECRET@" + refusing + "/topic?scheme=http",
		"gotify://127.0.0.1:1/ASECRETSECRET.T?disabletls=yes",
		"smtp://user:SECRETSECRET@127.0.0.1:1/?from=a@example.com&to=b@example.com",
		"slack://hook:TSECRETSECRET-BSECRETSECRET-SECRETSECRET",
		"smtp://user:SECRET%zzSECRETSECRET@host/",
		"logger://SECRETSECRET",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := notify.Send(ctx, target, message)
		cancel()
		if err == nil {
			t.Errorf("%s: no error", target)
			continue
		}
		if strings.Contains(err.Error(), "SECRET") || len(err.Error()) < 10 || len(err.Error()) > 600 {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestATargetThatHangsIsGivenUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // it accepts and never answers
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := notify.Send(ctx, "generic+http://"+listener.Addr().String()+"/hook", message); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("%v", err)
	}
}

func TestRefusedTargets(t *testing.T) {
	good := store.NotificationTarget{Name: "ops", URL: "ntfy://ntfy.example.com/alerts"}
	for field, changes := range map[string][]func(*store.NotificationTarget){
		"name": {
			func(n *store.NotificationTarget) { n.Name = " " },
			func(n *store.NotificationTarget) { n.Name = strings.Repeat("x", 101) },
			func(n *store.NotificationTarget) { n.Name = "a\nb" },
		},
		"url": {
			func(n *store.NotificationTarget) { n.URL = "" },
			func(n *store.NotificationTarget) { n.URL = "ops@example.com" },
			func(n *store.NotificationTarget) { n.URL = "https://example.com/hook" },
			func(n *store.NotificationTarget) { n.URL = "file:///etc/passwd" },
			func(n *store.NotificationTarget) { n.URL = "logger://" },
			func(n *store.NotificationTarget) { n.URL = "matrix://user:password@127.0.0.1" },
			func(n *store.NotificationTarget) { n.URL = "exec+http://x" },
			func(n *store.NotificationTarget) { n.URL = "ntfy://example.com/" + strings.Repeat("x", 5000) },
			func(n *store.NotificationTarget) { n.URL = "telegram://nonsense" },
			func(n *store.NotificationTarget) { n.URL = "smtp://%zz" },
		},
		"kinds":    {func(n *store.NotificationTarget) { n.Kinds = store.Words{"offline", "rain"} }},
		"severity": {func(n *store.NotificationTarget) { n.Severity = "info" }},
	} {
		for i, change := range changes {
			target := good
			change(&target)
			err := notify.Check(&target)
			if err == nil || !strings.HasPrefix(err.Error(), field+": ") {
				t.Errorf("%s %d: %v", field, i, err)
			}
		}
	}
	if err := notify.Check(&good); err != nil {
		t.Error(err)
	}
	if _, err := url.Parse(good.URL); err != nil || notify.ServiceName(good.URL) != "ntfy" || notify.ServiceName("generic+https://x") != "generic" {
		t.Error("the service is not named")
	}
}

// TestSilentServer: a server that never answers is sent one message, not one more
// with every try.
func TestSilentServer(t *testing.T) {
	release := make(chan struct{})
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-release
	}))
	defer server.Close()
	w := newWorld(t)
	target := w.target("hook", func(n *store.NotificationTarget) { n.URL = "generic+" + server.URL + "/hook" })
	n := notify.New(notify.Options{Store: w.store, Log: slog.New(slog.DiscardHandler)})
	try := func(timeout time.Duration) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		reason, err := n.Test(ctx, target)
		if err != nil {
			t.Fatal(err)
		}
		return reason
	}
	if reason := try(100 * time.Millisecond); reason != "no answer in time" {
		t.Error(reason)
	}
	if reason := try(10 * time.Second); !strings.Contains(reason, "still being sent") {
		t.Error(reason)
	}
	close(release)
	for late := time.Now().Add(10 * time.Second); try(10*time.Second) != "" && time.Now().Before(late); {
	}
	if reason := try(10 * time.Second); reason != "" || asked.Load() > 3 {
		t.Errorf("%q after %d requests", reason, asked.Load())
	}
}
