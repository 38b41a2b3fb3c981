package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"opensource.internal/manager/servertest"
)

// browser runs Debian's chromium, headless and without a sandbox (tests run as
// root). It signs in by a proxy that adds the cookie.
type browser struct {
	path string
	url  string
}

func newBrowser(t *testing.T, s *servertest.Server, cookie string) browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: chromium is not installed, so no page was looked at in a browser")
	}
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	manager := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		if cookie != "" {
			r.Out.Header.Set("Cookie", cookie)
		}
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if inFrame := r.URL.Query().Get("frame"); inFrame != "" {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<body style="margin:0"><iframe src="%s?framed=1" style="border:0;width:390px;height:5980px"></iframe>`, inFrame)
			return
		}
		framed := httptest.NewRecorder()
		manager.ServeHTTP(framed, r)
		for name, values := range framed.Header() {
			w.Header()[name] = values
		}
		if r.URL.Query().Get("framed") != "" {
			w.Header().Del("Content-Security-Policy") // it allows no frames
		}
		w.WriteHeader(framed.Code)
		_, _ = w.Write(framed.Body.Bytes())
	}))
	t.Cleanup(proxy.Close)
	return browser{path, proxy.URL}
}

func (b browser) run(t *testing.T, path string, more ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--no-first-run", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
	}, more...)
	command := exec.CommandContext(ctx, b.path, append(args, b.url+path)...)
	output, err := command.Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return string(output)
}

// dom is the page after scripts have run for a while.
func (b browser) dom(t *testing.T, path string) string {
	return b.run(t, path, "--dump-dom", "--virtual-time-budget=12000")
}

func TestHostileTextInABrowser(t *testing.T) {
	s, cookie := populated(t)
	dom := newBrowser(t, s, cookie).dom(t, "/agents")
	if strings.Contains(dom, "<img") || strings.Contains(dom, "<title>owned") {
		t.Error("markup of an agent became part of the page")
	}
	for _, literal := range []string{
		"&lt;script&gt;document.title=\"owned\"&lt;/script&gt;", "&lt;img src=x onerror=\"document.title='owned'\"&gt;",
		"&lt;b&gt;bold&lt;/b&gt;",
	} {
		if !strings.Contains(dom, literal) {
			t.Errorf("%s is not in the page", literal)
		}
	}
	if !strings.Contains(dom, `role="status"`) || !strings.Contains(dom, ">live<") {
		t.Error("the script does not run: the page does not say that it is live")
	}
}

func TestPageSaysWhenItIsNotLive(t *testing.T) {
	s, cookie := populated(t)
	b := newBrowser(t, s, cookie)
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	behind := httputil.NewSingleHostReverseProxy(target)
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/agents/list" {
			http.Error(w, "gone", http.StatusBadGateway)
			return
		}
		r.Header.Set("Cookie", cookie)
		behind.ServeHTTP(w, r)
	}))
	defer cut.Close()
	b.url = cut.URL
	if dom := b.dom(t, "/agents"); !strings.Contains(dom, "not live: the manager does not answer") {
		t.Error("a lost connection is not told")
	}
}

// TestRefreshKeepsWhatAPersonIsAbout: the list is replaced every few seconds, and
// neither the focus of the keyboard nor what was opened gets lost by that.
func TestRefreshKeepsWhatAPersonIsAbout(t *testing.T) {
	s, cookie := everyState(t)
	b := newBrowser(t, s, cookie)
	target, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	for name, element := range map[string]string{
		"a link": `[id$="-removals"]`, "something that was opened": `[id$="-facts"] summary`,
	} {
		script := fmt.Sprintf(`<script>addEventListener("load", () => {
			const before = document.querySelector(%q);
			before.focus();
			if (before.closest("details")) before.closest("details").open = true;
			setTimeout(() => {
				const now = document.querySelector(%[1]q);
				document.body.dataset.seen = [
					before.isConnected ? "not refreshed" : "refreshed",
					document.activeElement === now ? "focused" : "not focused",
					now.closest("details") && !now.closest("details").open ? "closed" : "as it was",
				].join(", ");
			}, 8000);
		});</script>`, element)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.ModifyResponse = func(r *http.Response) error {
			if r.Request.URL.Path != "/agents" {
				return nil
			}
			page, err := io.ReadAll(r.Body)
			r.Header.Del("Content-Security-Policy") // it allows no script in a page
			r.Header.Del("Content-Length")
			r.Body = io.NopCloser(strings.NewReader(string(page) + script))
			r.ContentLength = -1
			return err
		}
		server := httptest.NewServer(proxy)
		dom := browser{b.path, server.URL}.dom(t, "/agents")
		server.Close()
		if _, seen, _ := strings.Cut(dom, `data-seen="`); !strings.HasPrefix(seen, `refreshed, focused, as it was"`) {
			t.Errorf("%s: %.60s", name, seen)
		}
	}
}

// TestScreenshots leaves pictures in the folder SCREENSHOTS names, to be looked
// at.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		t.Skip("SCREENSHOTS names no folder")
	}
	s, cookie := populated(t)
	states, statesCookie := everyState(t)
	held := newHeldBackSite(t, nil)
	heldBrowser := newBrowser(t, held.Server, signIn(t, held.Server))
	fresh, empty := servertest.Start(t, servertest.Options{}), servertest.Start(t, servertest.Options{})
	pages := map[string]struct {
		browser browser
		path    string
	}{
		"agents":  {newBrowser(t, s, cookie), "/agents"},
		"sign-in": {newBrowser(t, s, ""), "/sign-in"},
		"first":   {newBrowser(t, fresh, ""), "/sign-in"},
		"empty":   {newBrowser(t, empty, signIn(t, empty)), "/agents"},
		"states":  {newBrowser(t, states, statesCookie), "/agents"},
		"held":    {heldBrowser, "/agents"},
		"confirm": {heldBrowser, held.removals},
	}
	for name, page := range pages {
		for look, args := range map[string][]string{
			"light": {"--window-size=1280,3800"},
			"dark":  {"--window-size=1280,3800", "--force-dark-mode", "--blink-settings=preferredColorScheme=0"},
			"phone": {"--window-size=500,6000"}, // 390 pixels in a frame: windows are not made as narrow
		} {
			file, path := filepath.Join(folder, name+"-"+look+".png"), page.path
			if look == "phone" {
				path = "/?frame=" + page.path
			}
			page.browser.run(t, path, append(args, "--screenshot="+file)...)
			if info, err := os.Stat(file); err != nil || info.Size() == 0 {
				t.Errorf("no picture of %s: %v", name, err)
			}
		}
	}
}
