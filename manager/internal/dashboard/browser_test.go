package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/servertest"
)

// patience bounds every wait for something in a browser.
const patience = 20 * time.Second

// tab is a page in Debian's chromium. What the page does wrong fails the test:
// an error on the console, a breach of the content security policy, a request to
// another host.
type tab struct {
	context.Context
	url string

	mu     sync.Mutex
	faults []string
}

// browse opens a tab on a manager, signed in by a cookie unless that is empty.
func browse(t *testing.T, s *servertest.Server, cookie string) *tab {
	t.Helper()
	return browseAt(t, s.URL, cookie)
}

// browseAt opens a tab on an address, with more options of the browser.
func browseAt(t *testing.T, address, cookie string, more ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: chromium is not installed, so no page was looked at in a browser")
	}
	ctx, end := chromedp.NewExecAllocator(t.Context(), append(append(chromedp.DefaultExecAllocatorOptions[:], more...),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(time.Minute))...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); end() }) // waits until it is gone, for the folder's sake
	b := &tab{Context: ctx, url: address}
	chromedp.ListenTarget(ctx, b.hear)
	b.do(t, network.Enable(), log.Enable(), runtime.Enable())
	if name, value, found := strings.Cut(cookie, "="); found {
		b.do(t, network.SetCookie(name, value).WithURL(address))
	}
	t.Cleanup(func() { b.faultless(t) })
	return b
}

// hear notes what a page does wrong.
func (b *tab) hear(event any) {
	fault := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			fault = e.Entry.Text + " " + e.Entry.URL
		}
	case *runtime.EventExceptionThrown:
		fault = e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			for _, said := range e.Args {
				fault += "console: " + string(said.Value) + said.Description
			}
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.url+"/") && !strings.HasPrefix(e.Request.URL, "about:") {
			fault = "a request to another host: " + e.Request.URL
		}
	}
	if fault != "" {
		b.mu.Lock()
		b.faults = append(b.faults, fault)
		b.mu.Unlock()
	}
}

// faultless fails the test by what the page has done wrong so far.
func (b *tab) faultless(t *testing.T) {
	t.Helper()
	for _, fault := range b.forgive() {
		t.Errorf("in the browser: %s", fault)
	}
}

// forgive forgets what a test makes go wrong on purpose, and returns it.
func (b *tab) forgive() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}

func (b *tab) do(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	ctx := b.Context
	if chromedp.FromContext(ctx).Target != nil { // the first call starts the browser, whose life is not bounded
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatalf("browser: %v", err)
	}
}

// open goes to a page and waits until it has been loaded.
func (b *tab) open(t *testing.T, path string) {
	t.Helper()
	b.do(t, chromedp.Navigate(b.url+path))
}

// eval is the value of an expression in the page.
func eval[T any](t *testing.T, b *tab, script string) T {
	t.Helper()
	var value T
	b.do(t, chromedp.Evaluate(script, &value))
	return value
}

// until waits for an expression to become true in the page, whichever page that is
// by then.
func (b *tab) until(t *testing.T, script string) {
	t.Helper()
	var fulfilled bool
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(b.Context, patience)
		err = chromedp.Run(ctx, chromedp.Evaluate(script, &fulfilled)) // fails while one page follows another
		cancel()
		if fulfilled {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatalf("%s does not become true (%v) on\n%s", script, err, eval[string](t, b, "document.body.innerText"))
}

// reads waits until a text is on the page, as people see it.
func (b *tab) reads(t *testing.T, text string) {
	t.Helper()
	quoted, _ := json.Marshal(text)
	b.until(t, fmt.Sprintf("document.body !== null && document.body.innerText.includes(%s)", quoted))
}

// fill types into a field, named by the name it has in its form.
func (b *tab) fill(t *testing.T, field, text string) {
	t.Helper()
	b.do(t, chromedp.SetValue(fmt.Sprintf("[name=%q]", field), text, chromedp.ByQuery))
}

// press clicks the button or link with a text and waits for the page it leads to.
func (b *tab) press(t *testing.T, text string) {
	t.Helper()
	quoted, _ := json.Marshal(text)
	eval[bool](t, b, fmt.Sprintf(`(() => {
		window.isOld = true;
		const found = [...document.querySelectorAll("main a, main button, main summary, header a, header button")].find((e) => e.textContent.trim() === %s);
		if (!found) throw new Error("there is no " + %[1]s);
		found.click();
		return true;
	})()`, quoted))
	b.until(t, `!window.isOld && document.readyState === "complete"`)
}

// pictures leaves pictures of a page in the folder SCREENSHOTS names, at every
// width and in both schemes, to be looked at, and checks that nothing is wider
// than the window.
func (b *tab) pictures(t *testing.T, name string) {
	t.Helper()
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.do(t, emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
			if wide := eval[int64](t, b, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s is %d pixels wide in a window of %d", name, wide, width)
			}
			if folder := os.Getenv("SCREENSHOTS"); folder != "" {
				var picture []byte
				b.do(t, chromedp.FullScreenshot(&picture, 100))
				if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), picture, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	b.do(t, emulation.ClearDeviceMetricsOverride())
}

// checkAccessible has axe-core look for breaches of WCAG 2.2 AA and of good
// practice in the page as it is, at both widths and in both schemes. The policy of
// the page stays as it is: what the test runs is not the page's.
func checkAccessible(t *testing.T, b *tab) {
	t.Helper()
	axe, err := os.ReadFile("testdata/vendor/axe.min.js")
	if err != nil {
		t.Fatalf("run `make assets` first: %v", err)
	}
	b.do(t, chromedp.Evaluate(string(axe)+";0", nil))
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.do(t, emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
			var found []struct {
				ID, Help string
				Nodes    []struct{ HTML, FailureSummary string }
			}
			b.do(t, chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}}).then((found) => found.violations)`, &found,
				func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
			for _, violation := range found {
				for _, node := range violation.Nodes {
					t.Errorf("%d pixels, %s: %s (%s): %s\n%s", width, scheme, violation.Help, violation.ID, node.HTML, node.FailureSummary)
				}
			}
		}
	}
	b.do(t, emulation.ClearDeviceMetricsOverride())
}

// looked does what every page has to stand.
func looked(t *testing.T, b *tab, name string) {
	t.Helper()
	checkAccessible(t, b)
	b.pictures(t, name)
}

func TestEveryPageCanBeRead(t *testing.T) {
	s, cookie := populated(t)
	states, statesCookie := everyState(t)
	held := newHeldBackSite(t, nil)
	fresh, empty := servertest.Start(t, servertest.Options{}), servertest.Start(t, servertest.Options{})
	for name, of := range map[string]struct {
		server       *servertest.Server
		cookie, path string
	}{
		"agents":  {s, cookie, "/agents"},
		"sign-in": {s, "", "/sign-in"},
		"first":   {fresh, "", "/setup"},
		"empty":   {empty, signIn(t, empty), "/agents"},
		"states":  {states, statesCookie, "/agents"},
		"confirm": {held.Server, signIn(t, held.Server), held.removals},
	} {
		t.Run(name, func(t *testing.T) {
			b := browse(t, of.server, of.cookie)
			b.open(t, of.path)
			looked(t, b, name)
		})
	}
}

func TestHostileTextInABrowser(t *testing.T) {
	s, cookie := populated(t)
	b := browse(t, s, cookie)
	b.open(t, "/agents")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	if got := eval[string](t, b, "document.title"); got != "Agents – OpenSource Manager" {
		t.Errorf("the title is %q", got)
	}
	if n := eval[int](t, b, `document.querySelectorAll("main img, main b, main script").length`); n != 0 {
		t.Errorf("%d elements of an agent became part of the page", n)
	}
	b.reads(t, `<script>document.title="owned"</script>`)
}

// TestALivePageFollows: what happens appears without a reload, and neither focus
// nor what was opened, selected or typed is lost by it.
func TestALivePageFollows(t *testing.T) {
	s, cookie := everyState(t)
	b := browse(t, s, cookie)
	b.open(t, "/agents")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	eval[bool](t, b, `(() => {
		window.before = document.querySelector("tr[id^=agent-] a");
		document.querySelector("[name=q]").value = "typed";
		before.focus();
		getSelection().selectAllChildren(before.closest("tr").querySelector("[data-label=Version]"));
		window.selected = String(getSelection());
		return true;
	})()`)
	site := s.Create(t, "/sites", object{"name": "appeared"})
	checkInHealthy(t, s, site, "newcomer")
	b.reads(t, "newcomer")
	kept := eval[[]string](t, b, `[String(before.isConnected), String(document.activeElement === before), String(getSelection()), selected, document.querySelector("[name=q]").value]`)
	if kept[0] != "true" || kept[1] != "true" || kept[2] != kept[3] || kept[4] != "typed" {
		t.Errorf("focus, selection or what was typed is lost: %q", kept)
	}
}

// TestWhatIsOpenStaysOpen while a live page follows.
func TestWhatIsOpenStaysOpen(t *testing.T) {
	s, cookie := everyState(t)
	b := browse(t, s, cookie)
	b.open(t, "/agents/1")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	eval[bool](t, b, `(window.before = document.getElementById("host"), before.open = true)`)
	checkIn(t, s, checkin.Request{
		SiteID: 1, Hostname: "01-well", CurrentTime: time.Now().Unix(), Services: map[string]checkin.ServiceReport{},
		Host: &checkin.HostInfo{OS: "Debian GNU/Linux 14 (forky)"},
	})
	b.reads(t, "forky")
	if !eval[bool](t, b, `before.isConnected && before.open`) {
		t.Error("what was opened is closed")
	}
}

// TestAPageSaysWhenItIsNotLive: a lost connection is told, and mended by itself.
func TestAPageSaysWhenItIsNotLive(t *testing.T) {
	s, cookie := populated(t)
	away := &outage{to: s.URL}
	front := httptest.NewServer(away)
	t.Cleanup(front.Close)
	t.Cleanup(away.end)
	b := browseAt(t, front.URL, cookie)
	b.open(t, "/agents")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	away.begin()
	b.until(t, `document.getElementById("live").textContent.startsWith("Not live: reconnecting, last update ")`)
	site := s.Create(t, "/sites", object{"name": "appeared"})
	checkInHealthy(t, s, site, "newcomer")
	away.end()
	b.reads(t, "newcomer")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	b.forgive() // that it was away
}

// TestAnEndedSessionLeadsToTheSignInPage, and from there back.
func TestAnEndedSessionLeadsToTheSignInPage(t *testing.T) {
	s, cookie := populated(t)
	b := browse(t, s, cookie)
	b.open(t, "/agents?q=web")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	s.Do(t, "POST", "/sign-out", "", http.Header{"Cookie": {cookie}})
	b.until(t, `location.pathname === "/sign-in" && document.readyState === "complete"`)
	b.forgive() // that the session has ended
	b.fill(t, "name", "ada")
	b.fill(t, "password", password)
	b.press(t, "Sign in")
	if got := eval[string](t, b, "location.pathname + location.search"); got != "/agents?q=web" {
		t.Errorf("signed in, but on %s", got)
	}
}

// TestWhatWasTypedOutlivesTheSession: a form that is sent too late is filled again
// after the sign-in, and only for who typed it.
func TestWhatWasTypedOutlivesTheSession(t *testing.T) {
	s, cookie := inventory(t)
	b := browse(t, s, cookie)
	signInAs := func(name string) {
		t.Helper()
		b.until(t, `location.pathname === "/sign-in" && document.readyState === "complete"`)
		b.fill(t, "name", name)
		b.fill(t, "password", password)
		b.press(t, "Sign in")
	}
	end := func() {
		t.Helper()
		if err := chromedp.Run(b.Context, network.ClearBrowserCookies()); err != nil {
			t.Fatal(err)
		}
	}
	const typed = `[...document.querySelectorAll("main form [name]:not([type=hidden])")].map((e) => e.type === "checkbox" ? e.checked : e.value).join("|")`
	const again = "What you had typed is here again. It was not sent yet."

	b.open(t, "/containers/1/services/new?type=http")
	b.fill(t, "externalHostname", "shop")
	b.fill(t, "internalPort", "9090")
	b.do(t, chromedp.SetValue("[name=backendProtocol]", "https", chromedp.ByQuery), chromedp.Click("[name=authRequired]", chromedp.ByQuery))
	end()
	b.press(t, "Add the service")
	signInAs("ada")
	if got := eval[string](t, b, "location.pathname + location.search"); got != "/containers/1/services/new?type=http" {
		t.Fatalf("signed in, but on %s", got)
	}
	b.reads(t, again)
	if got := eval[string](t, b, typed); got != "shop|1|9090|https|true" {
		t.Errorf("the form has %s", got)
	}
	looked(t, b, "typed-again")
	b.press(t, "Add the service")
	b.reads(t, "The service was added")

	// What was sent is not put back into another form of the same address.
	b.open(t, "/containers/1/services/new?type=http")
	if got := eval[string](t, b, typed); strings.Contains(got, "shop") {
		t.Errorf("a new form has %s", got)
	}

	// A password is not kept, nor is anything for another person.
	b.open(t, "/account")
	b.fill(t, "currentPassword", password)
	end()
	b.press(t, "Change the password")
	signInAs("ada")
	if got := eval[string](t, b, typed+` + sessionStorage.length`); strings.Contains(got, password) {
		t.Error("a password was kept")
	}
	signInViewer(t, s)
	b.open(t, "/sites/1/edit")
	b.fill(t, "gateway", "192.0.2.77")
	end()
	b.press(t, "Save")
	signInAs("eve")
	if text := eval[string](t, b, `document.documentElement.innerHTML + JSON.stringify({...sessionStorage})`); strings.Contains(text, "192.0.2.77") {
		t.Error("what one person typed is shown to another")
	}
	b.forgive() // eve may not edit
}

// TestALivePageKeepsWhatIsTyped when the session ends, or another version answers.
func TestALivePageKeepsWhatIsTyped(t *testing.T) {
	s, cookie := populated(t)
	b := browse(t, s, cookie)
	b.open(t, "/agents")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	b.fill(t, "q", "gate")
	s.Do(t, "POST", "/sign-out", "", http.Header{"Cookie": {cookie}})
	b.until(t, `location.pathname === "/sign-in" && document.readyState === "complete"`)
	b.forgive() // that the session has ended
	b.fill(t, "name", "ada")
	b.fill(t, "password", password)
	b.press(t, "Sign in")
	b.until(t, `location.pathname === "/agents" && document.querySelector("[name=q]").value === "gate"`)
}

// TestAnotherVersionIsTakenByItself: the manager was upgraded while a page was
// open.
func TestAnotherVersionIsTakenByItself(t *testing.T) {
	s, cookie := populated(t)
	var upgraded atomic.Bool
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host
			p.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(answer *http.Response) error {
			if !upgraded.Load() || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
				return nil
			}
			body, err := io.ReadAll(answer.Body)
			body = regexp.MustCompile(`data-version="[^"]*"`).ReplaceAll(body, []byte(`data-version="newer"`))
			answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			answer.Header.Del("Content-Length")
			return err
		},
	})
	t.Cleanup(front.Close)
	b := browseAt(t, front.URL, cookie)
	b.open(t, "/agents")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	b.fill(t, "q", "gate")
	eval[bool](t, b, `window.isOld = true`)
	checkInHealthy(t, s, 1, "before") // nothing new: the page stays
	b.reads(t, "before")
	if !eval[bool](t, b, `window.isOld`) {
		t.Error("the page was loaded again without a reason")
	}
	upgraded.Store(true)
	checkInHealthy(t, s, 1, "newcomer")
	b.until(t, `!window.isOld && document.readyState === "complete" && document.querySelector("[name=q]").value === "gate"`)
	b.reads(t, "newcomer")

	// Two versions side by side do not make it load again and again.
	eval[bool](t, b, `window.isOld = true`)
	upgraded.Store(false)
	checkInHealthy(t, s, 1, "latest")
	b.reads(t, "latest")
	if !eval[bool](t, b, `window.isOld`) {
		t.Error("the page is loaded again and again")
	}
}

// outage is a proxy that can be away.
type outage struct {
	to string

	mu     sync.Mutex
	away   bool
	ctx    context.Context // ends at the next outage
	cancel func()
}

func (o *outage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	if o.ctx == nil {
		o.ctx, o.cancel = context.WithCancel(context.Background())
	}
	ctx, away := o.ctx, o.away
	o.mu.Unlock()
	if away {
		http.Error(w, "away", http.StatusBadGateway)
		return
	}
	target, _ := url.Parse(o.to) // of a server that runs
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host }}
	within, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	defer func() { _ = recover() }() // an answer that is cut off
	proxy.ServeHTTP(w, r.WithContext(within))
}

func (o *outage) begin() { o.set(true) }
func (o *outage) end()   { o.set(false) }

func (o *outage) set(away bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = away
	if o.cancel != nil {
		o.cancel()
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
}
