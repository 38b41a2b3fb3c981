package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

var aKey = regexp.MustCompile(`osk_[0-9a-f]{16}_[0-9a-f]{64}`)

// keyOn is the key that a page shows.
func keyOn(t *testing.T, page servertest.Answer) string {
	t.Helper()
	key := aKey.FindString(string(page.Body))
	if page.Status != 201 || key == "" || page.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v %s", page.Status, page.Header, page.Body)
	}
	return key
}

func works(t *testing.T, s *servertest.Server, key string) bool {
	t.Helper()
	return s.Do(t, "GET", "/api/v1/sites", nil, http.Header{"X-Api-Key": {key}}).Status == 200
}

func TestAPIKeysAreManagedInTheBrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	s.Create(t, "/sites", object{"name": "lab"})
	made := submit(t, s, "/api-keys/new", cookie, url.Values{"name": {"backup"}, "role": {"viewer"}, "expiresAt": {"90d"}})
	first := keyOn(t, made)
	shows(t, made, 201, "The key was created.", "Authorization: Bearer "+first, `data-copy="secret"`, `href="/api-keys/2"`)
	if !works(t, s, first) {
		t.Error("the key that was shown does not work")
	}
	shows(t, get(t, s, "/api-keys", cookie), 200, `href="/api-keys/2">backup`, first[:21]+"…", "expires in 90 days", "by ada")
	shows(t, get(t, s, "/api-keys/2", cookie), 200, "Viewer: reads everything but secrets", `href="/api-keys/2/rotate"`)

	agent := submit(t, s, "/api-keys/new?site=1", cookie, url.Values{"name": {"agent of lab"}, "role": {"agent"}, "siteId": {"1"}})
	shows(t, agent, 201, "/etc/opensource-agent/agent.env", "API_KEY="+keyOn(t, agent))

	edit := form(t, get(t, s, "/api-keys/2/edit", cookie))
	edit.Set("name", "backup of pve1")
	shows(t, then(t, s, cookie, submit(t, s, "/api-keys/2/edit", cookie, edit)), 200, "The API key was saved. Name: backup of pve1 (was: backup).")
	shows(t, then(t, s, cookie, submit(t, s, "/api-keys/2/edit", cookie, edit)), 200, "Nothing was changed of the API key.")
	edit.Set("name", "mine")
	shows(t, submit(t, s, "/api-keys/2/edit", cookie, edit), 409, "Changed by somebody else meanwhile", "Name</a>: backup of pve1")

	rotated := submit(t, s, "/api-keys/2/rotate", cookie, url.Values{"overlap": {"2h"}})
	second := keyOn(t, rotated)
	shows(t, rotated, 201, "There is a new key.", "The old one, "+first[:21]+"…, works until ")
	if second == first || !works(t, s, first) || !works(t, s, second) {
		t.Error("one of the keys does not work beside the other")
	}
	shows(t, get(t, s, "/api-keys/2", cookie), 200, "expires soon")
	shows(t, get(t, s, "/api-keys/4/revoke", cookie), 200, "Whoever uses this key is refused from now on", "Revoke the key")
	shows(t, then(t, s, cookie, submit(t, s, "/api-keys/4/revoke", cookie, nil)), 200, "The API key was revoked.", "revoked")
	if works(t, s, second) {
		t.Error("a revoked key works")
	}
	wantOn(t, string(get(t, s, "/api-keys/4", cookie).Body), nil, []string{"/revoke", "/rotate"})
	shows(t, submit(t, s, "/api-keys/4/rotate", cookie, url.Values{"overlap": {"1h"}}), 409, "is revoked or expired: create a new one")
}

func TestKeysThatWorkNoMoreAreListedOnRequest(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	old := time.Now().Add(time.Hour)
	for name, change := range map[string]func(*store.APIKey){
		"still used":  func(*store.APIKey) {},
		"will expire": func(k *store.APIKey) { k.ExpiresAt = &old },
		"thrown away": func(k *store.APIKey) { now := time.Now().UTC(); k.RevokedAt = &now },
		"run out":     func(k *store.APIKey) { now := time.Now().UTC(); k.ExpiresAt = &now },
	} {
		key := store.APIKey{Name: name, Role: "viewer", Prefix: strings.ReplaceAll(name, " ", ""), Hash: []byte(name), CreatedAt: time.Now().UTC()}
		change(&key)
		if err := s.Store.CreateAPIKey(t.Context(), &key); err != nil {
			t.Fatal(err)
		}
	}
	works, ended := []string{">still used<", ">will expire<"}, []string{">thrown away<", ">run out<"}
	page := func(query string) string { return string(get(t, s, "/api-keys"+query, cookie).Body) }
	wantOn(t, page(""), append(works, `href="?state=ended"`, "Show 2 revoked or expired keys"), ended)
	wantOn(t, page("?q=away&role=viewer"), []string{">thrown away<"}, works) // nothing else is like that
	wantOn(t, page("?q=still&sort=-name"), works[:1], ended)
	wantOn(t, page("?role=viewer&sort=-name"), append(works, `href="?role=viewer&amp;sort=-name&amp;state=ended"`), ended)
	wantOn(t, page("?state=ended"), ended, append(works, "Show 2"))
	wantOn(t, page("?state=all"), append(works, ended...), []string{"Show 2"})
	wantOn(t, page("?state=odd"), works, ended)
	if _, err := s.Store.RevokeAPIKey(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	wantOn(t, page("?role=admin"), []string{"test admin", "revoked"}, nil)
	wantOn(t, page("?role=agent"), []string{"Nothing here is like that"}, nil)
}

func TestFaultsOfKeysStandAtTheirFields(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	s.Create(t, "/sites", object{"name": "lab"})
	for name, test := range map[string]struct {
		path         string
		typed        url.Values
		field, fault string
	}{
		"no name":              {"/api-keys/new", url.Values{"role": {"viewer"}}, "name", "a name has 1 to 100 characters"},
		"long name":            {"/api-keys/new", url.Values{"role": {"viewer"}, "name": {strings.Repeat("x", 101)}}, "name", "1 to 100 characters"},
		"no role":              {"/api-keys/new", url.Values{"name": {"x"}}, "role", "is not a role"},
		"agent without a site": {"/api-keys/new", url.Values{"name": {"x"}, "role": {"agent"}}, "siteId", "needs the site"},
		"site that is gone":    {"/api-keys/new", url.Values{"name": {"x"}, "role": {"agent"}, "siteId": {"7"}}, "siteId", "there is no site 7"},
		"viewer with a site":   {"/api-keys/new", url.Values{"name": {"x"}, "role": {"viewer"}, "siteId": {"1"}}, "siteId", "only agent keys"},
		"end that is none":     {"/api-keys/new", url.Values{"name": {"x"}, "role": {"viewer"}, "expiresAt": {"<b>soon</b>"}}, "expiresAt", "is neither a time such as"},
		"end that was":         {"/api-keys/new", url.Values{"name": {"x"}, "role": {"viewer"}, "expiresAt": {"2020-01-01"}}, "expiresAt", "is past"},
		"edited into the past": {"/api-keys/1/edit", url.Values{"name": {"x"}, "expiresAt": {"2020-01-01"}}, "expiresAt", "is past"},
		"overlap of words":     {"/api-keys/1/rotate", url.Values{"overlap": {"a day"}}, "overlap", "is not a time span"},
		"overlap of months":    {"/api-keys/1/rotate", url.Values{"overlap": {"90d"}}, "overlap", "0 to 30 days"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasSuffix(test.path, "/edit") {
				test.typed.Set("version", form(t, get(t, s, test.path, cookie)).Get("version"))
			}
			refused := submit(t, s, test.path, cookie, test.typed)
			shows(t, refused, 422, "Nothing was saved", `id="field-`+test.field+`-fault"`, test.fault)
			wantOn(t, string(refused.Body), nil, []string{"<b>soon", "osk_"})
		})
	}
	if keys, total, err := s.Store.ListAPIKeys(t.Context(), store.APIKeyFilter{}, store.ListOptions{}); err != nil || total != 1 {
		t.Errorf("refused forms made keys: %v %v", keys, err)
	}
}

func TestViewersSeeNoSecretOfKeys(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	viewer := signInViewer(t, s)
	for _, path := range []string{"/api-keys", "/api-keys/1"} {
		page := get(t, s, path, viewer)
		shows(t, page, 200)
		wantOn(t, string(page.Body), nil, []string{"/new", "/edit", "/rotate", "/revoke", s.AdminKey})
	}
	for _, path := range []string{"/api-keys/new", "/api-keys/1/edit", "/api-keys/1/rotate", "/api-keys/1/revoke"} {
		shows(t, get(t, s, path, viewer), 403, "Only an administrator may do this")
		shows(t, submit(t, s, path, viewer, url.Values{"name": {"mine"}, "role": {"admin"}, "overlap": {"1h"}}), 403)
	}
	cookie := signIn(t, s)
	for _, path := range []string{"/api-keys/9", "/api-keys/x", "/api-keys/9/edit", "/api-keys/9/rotate", "/api-keys/9/revoke"} {
		shows(t, get(t, s, path, cookie), 404)
	}
	shows(t, get(t, s, "/api-keys/1", cookie), 200)
}

func TestAPIKeysInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	s.Create(t, "/sites", object{"name": "lab"})
	s.Create(t, "/sites", object{"name": strings.Repeat("unbroken", 12)})
	s.Create(t, "/api-keys", object{"name": `<img src=x onerror="document.title='owned'">`, "role": "agent", "siteId": 2, "expiresAt": time.Now().Add(time.Hour)})
	s.Create(t, "/api-keys", object{"name": strings.Repeat("long", 25), "role": "viewer"})
	s.Create(t, "/api-keys", object{"name": "مفتاح النسخ", "role": "viewer"})
	b := browse(t, s, signIn(t, s))
	b.open(t, "/api-keys")
	looked(t, b, "keys")
	b.press(t, "New API key")
	looked(t, b, "key-new")
	b.press(t, "Create the key")
	b.forgive() // the browser tells the status of the refused form
	b.until(t, `document.activeElement.classList.contains("faults")`)
	looked(t, b, "key-faults")
	b.fill(t, "name", "backup")
	b.press(t, "Create the key")
	b.reads(t, "Copy it now")
	looked(t, b, "key-once")
	key := eval[string](t, b, `document.getElementById("secret").textContent`)
	if !works(t, s, key) {
		t.Errorf("%q does not work", key)
	}
	// A reload leads to the page of the key, and makes no other one.
	eval[bool](t, b, `(window.isOld = true, location.reload(), true)`)
	b.until(t, `!window.isOld && document.readyState === "complete"`)
	b.reads(t, "Begins with")
	if html := eval[string](t, b, "document.documentElement.outerHTML"); aKey.MatchString(html) {
		t.Error("the key is shown again")
	}
	looked(t, b, "key")
	b.press(t, "Rotate…")
	looked(t, b, "key-rotate")
	b.press(t, "Make the new key")
	b.reads(t, "The old one")
	looked(t, b, "key-rotated")
	b.press(t, "I have copied it")
	b.press(t, "Revoke…")
	looked(t, b, "key-revoke")
	b.press(t, "Revoke the key")
	b.reads(t, "The API key was revoked.")
	b.open(t, "/api-keys?q=backup")
	looked(t, b, "keys-found")
	if _, total, err := s.Store.ListAPIKeys(t.Context(), store.APIKeyFilter{}, store.ListOptions{}); err != nil || total != 6 {
		t.Errorf("there are %d keys (%v)", total, err)
	}
	if title := eval[string](t, b, "document.title"); title == "owned" {
		t.Error("markup was run")
	}
}

// TestAnAPIKeyByKeyboard makes and revokes a key without a mouse.
func TestAnAPIKeyByKeyboard(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	b := browse(t, s, signIn(t, s))
	b.open(t, "/api-keys/new")
	press := func(key string) { b.do(t, chromedp.KeyEvent(key)) }
	tabTo := func(selector string) {
		for range 40 {
			if eval[bool](t, b, "document.activeElement.matches(\""+selector+"\")") {
				return
			}
			press(kb.Tab)
		}
		t.Fatalf("no tab leads to %s", selector)
	}
	tabTo("[name=name]")
	press("backup")
	press(kb.Enter)
	b.reads(t, "Copy it now")
	tabTo("main a.button[href='/api-keys/2']")
	press(kb.Enter)
	b.reads(t, "Begins with")
	tabTo("[href='/api-keys/2/revoke']")
	press(kb.Enter)
	b.reads(t, "is refused from now on")
	tabTo("button.danger")
	press(kb.Enter)
	b.reads(t, "The API key was revoked.")
}
