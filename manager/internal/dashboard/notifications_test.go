package dashboard_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

// hook is a webhook that counts what it gets, and refuses it if it is not well.
type hook struct {
	url  string
	got  chan string
	well chan bool
}

func newHook(t *testing.T) *hook {
	h := &hook{got: make(chan string, 10), well: make(chan bool, 1)}
	h.well <- true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		well := <-h.well
		h.well <- well
		if !well {
			http.Error(w, "gone fishing", http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		h.got <- string(body)
	}))
	t.Cleanup(server.Close)
	h.url = "generic+" + server.URL + "/secret-path?template=json"
	return h
}

func (h *hook) set(well bool) {
	<-h.well
	h.well <- well
}

// received is the next message.
func (h *hook) received(t *testing.T) string {
	t.Helper()
	select {
	case body := <-h.got:
		return body
	case <-time.After(patience):
		t.Fatal("no message came")
		return ""
	}
}

func TestNotificationTargetsAreManagedInTheBrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	h := newHook(t)
	s.Create(t, "/sites", object{"name": "lab"})
	shows(t, get(t, s, "/notifications", cookie), 200, "Nobody is told yet", `href="/notifications/targets/new"`, "No site is silenced")

	refused := submit(t, s, "/notifications/targets/new", cookie, url.Values{"name": {""}, "url": {"gopher://x"}, "severity": {"warning"}, "kinds": {"offline", "apply_failed"}})
	shows(t, refused, 422, "Nothing was saved", `id="field-name-fault"`, `"gopher" is not a service`, `value="apply_failed" checked`)
	shows(t, submit(t, s, "/notifications/targets/new", cookie, url.Values{"name": {"x"}, "url": {h.url}, "severity": {"warning"}, "siteIds": {"9"}}), 422, "there is no site 9")
	typed := url.Values{"name": {"on call"}, "url": {h.url}, "severity": {"error"}, "kinds": {"offline", "apply_failed"}, "siteIds": {"1"}, "enabled": {"on"}}
	created := then(t, s, cookie, submit(t, s, "/notifications/targets/new", cookie, typed))
	shows(t, created, 200, "The target was created.", "nothing sent yet", "silent, apply failed (errors only)", "lab", "webhook")
	shows(t, submit(t, s, "/notifications/targets/new", cookie, typed), 409, `the name "on call" is already in use`)

	shows(t, then(t, s, cookie, submit(t, s, "/notifications/targets/1/test", cookie, nil)), 200, "The test message was delivered.", ">works<")
	if body := h.received(t); !strings.Contains(body, "on call") {
		t.Errorf("the message does not name the target: %s", body)
	}
	h.set(false)
	failed := submit(t, s, "/notifications/targets/1/test", cookie, nil)
	shows(t, failed, 200, "The test message was not delivered", "503", ">failing<")
	h.set(true)

	edit := get(t, s, "/notifications/targets/1/edit", cookie)
	change := url.Values{"version": {form(t, edit).Get("version")}, "name": {"nights"}, "severity": {"warning"}, "enabled": {"on"}}
	shows(t, then(t, s, cookie, submit(t, s, "/notifications/targets/1/edit", cookie, change)), 200,
		"Name: nights (was: on call)", "Kinds: all (was: Apply failed, Silent)", "everything")
	change.Set("name", "days")
	shows(t, submit(t, s, "/notifications/targets/1/edit", cookie, change), 409, "Changed by somebody else meanwhile", "Name</a>: nights")
	shows(t, then(t, s, cookie, submit(t, s, "/notifications/targets/1/test", cookie, nil)), 200, "The test message was delivered.")
	for _, path := range []string{"/notifications", "/notifications/targets/1", "/notifications/targets/1/edit"} {
		wantOn(t, string(get(t, s, path, cookie).Body), nil, []string{"secret-path"})
	}
	wantOn(t, string(failed.Body), nil, []string{"secret-path"})
	shows(t, get(t, s, "/notifications/targets/1/delete", cookie), 200, `Delete the target "nights"?`)
	deleted := submit(t, s, "/notifications/targets/1/delete", cookie, form(t, get(t, s, "/notifications/targets/1/delete", cookie)))
	shows(t, then(t, s, cookie, deleted), 200, `The target "nights" was deleted.`, "Nobody is told yet")
}

func TestSitesAreSilencedInTheBrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	s.Create(t, "/sites", object{"name": "lab"})
	for field, typed := range map[string]url.Values{
		"siteId": {"until": {"2h"}},
		"until":  {"siteId": {"1"}},
		"reason": {"siteId": {"1"}, "until": {"2h"}, "reason": {strings.Repeat("x", 501)}},
	} {
		shows(t, submit(t, s, "/notifications/silences/new", cookie, typed), 422, `id="field-`+field+`-fault"`)
	}
	shows(t, submit(t, s, "/notifications/silences/new", cookie, url.Values{"siteId": {"1"}, "until": {"2020-01-01"}}), 422, "is over already")
	silenced := submit(t, s, "/notifications/silences/new", cookie, url.Values{"siteId": {"1"}, "until": {"2h"}, "reason": {"<b>moving</b>"}})
	page := then(t, s, cookie, silenced)
	shows(t, page, 200, "Nobody is told of the site until ", "in 2 hours", "<bdi>ada</bdi>", `action="/notifications/silences/1/end"`)
	wantOn(t, string(page.Body), []string{"&lt;b&gt;moving"}, []string{"<b>moving"})
	shows(t, then(t, s, cookie, submit(t, s, "/notifications/silences/1/end", cookie, nil)), 200, "The silence was ended", "No site is silenced")
}

func TestWhatATargetWasTold(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) { c.NotifyWindow = time.Millisecond }})
	cookie := signIn(t, s)
	h := newHook(t)
	s.Create(t, "/sites", object{"name": "lab"})
	s.Create(t, "/notification-targets", object{"name": "on call", "url": h.url})
	report := checkin.Request{SiteID: 1, Hostname: "edge", Services: map[string]checkin.ServiceReport{
		"nginx": {State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRejected, Message: "bind() <b>failed</b>"},
	}}
	checkIn(t, s, report)
	if body := h.received(t); !strings.Contains(body, "edge (lab)") {
		t.Fatal(body)
	}
	b := browse(t, s, cookie)
	b.open(t, "/notifications/targets/1")
	b.reads(t, "edge: nginx: the new configuration was refused")
	b.reads(t, "Nothing: it knows everything there is to tell.")
	looked(t, b, "target-told")
}

func TestViewersOnlyLookAtNotifications(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	viewer := signInViewer(t, s)
	h := newHook(t)
	s.Create(t, "/sites", object{"name": "lab"})
	s.Create(t, "/notification-targets", object{"name": "on call", "url": h.url})
	s.Create(t, "/notification-silences", object{"siteId": 1, "until": time.Now().Add(time.Hour)})
	for _, path := range []string{"/notifications", "/notifications/targets/1"} {
		page := get(t, s, path, viewer)
		shows(t, page, 200, "on call")
		wantOn(t, string(page.Body), nil, []string{"/new", "/edit", "/delete", "/test", "/end", "secret-path"})
	}
	for _, path := range []string{"/targets/new", "/targets/1/edit", "/targets/1/delete", "/targets/1/test", "/silences/new", "/silences/1/end"} {
		shows(t, submit(t, s, "/notifications"+path, viewer, url.Values{"name": {"mine"}}), 403, "Only an administrator may do this")
	}
	cookie := signIn(t, s)
	for _, path := range []string{"/targets/9", "/targets/x", "/targets/9/edit", "/targets/9/delete"} {
		shows(t, get(t, s, "/notifications"+path, cookie), 404)
	}
	shows(t, submit(t, s, "/notifications/silences/9/end", cookie, nil), 404)
}

func TestNotificationsInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	b := browse(t, s, signIn(t, s))
	b.open(t, "/notifications")
	looked(t, b, "notifications-empty")
	long := strings.Repeat("unbroken", 12)
	s.Create(t, "/sites", object{"name": long})
	s.Create(t, "/sites", object{"name": "lab"})
	b.press(t, "New target")
	b.press(t, "Create the target")
	b.forgive() // the browser tells the status of the refused form
	b.until(t, `document.activeElement.classList.contains("faults")`)
	looked(t, b, "target-faults")
	b.fill(t, "name", `<img src=x onerror="document.title='owned'">`)
	b.fill(t, "url", newHook(t).url)
	b.do(t, chromedp.Click(`input[value="offline"]`, chromedp.ByQuery), chromedp.Click(`input[name="siteIds"][value="1"]`, chromedp.ByQuery))
	b.press(t, "Create the target")
	b.reads(t, "The target was created.")
	b.press(t, "Send a test message")
	b.reads(t, "The test message was delivered.")
	looked(t, b, "target")
	b.press(t, "Edit")
	if !eval[bool](t, b, `document.querySelector('input[value="offline"]').checked && !document.querySelector('input[value="stuck"]').checked`) {
		t.Error("what was chosen is not shown as chosen")
	}
	looked(t, b, "target-edit")
	down := s.Create(t, "/notification-targets", object{"name": strings.Repeat("long", 25), "url": "generic+http://127.0.0.1:1/x", "enabled": true})
	if err := s.Store.NoteFailure(t.Context(), down, time.Now(), "dial tcp 127.0.0.1:1: connect: connection refused "+long); err != nil {
		t.Fatal(err)
	}
	b.open(t, "/notifications")
	b.press(t, "Silence a site")
	b.fill(t, "siteId", "1")
	b.fill(t, "until", "2h")
	b.fill(t, "reason", "نقل المنزل "+long)
	looked(t, b, "silence-new")
	b.press(t, "Silence the site")
	b.reads(t, "Nobody is told of the site until")
	looked(t, b, "notifications")
	if silences, _, err := s.Store.ListNotificationSilences(t.Context(), store.NotificationSilenceFilter{}, store.ListOptions{}); err != nil || len(silences) != 1 {
		t.Errorf("%v %v", silences, err)
	}
	if title := eval[string](t, b, "document.title"); title == "owned" {
		t.Error("markup was run")
	}
}
