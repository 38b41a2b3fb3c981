package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/servertest"
)

// setupCode makes a code as the command line does.
func setupCode(t *testing.T, s *servertest.Server) string {
	t.Helper()
	code, err := auth.NewSetupCode(t.Context(), s.Store)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// TestFirstRun: whoever has never seen the manager brings a site online in the
// browser alone.
func TestFirstRun(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	code := setupCode(t, s)
	b := browse(t, s, "")
	b.open(t, "/")
	b.reads(t, "Set up this manager")
	looked(t, b, "setup")
	b.fill(t, "code", "WRONG")
	b.fill(t, "name", "ada")
	b.fill(t, "password", password)
	b.fill(t, "again", "correct mule")
	b.press(t, "Create the account")
	b.reads(t, "this is not the same as the one above")
	b.forgive() // Chromium reports the status
	b.fill(t, "password", password)
	b.fill(t, "again", password)
	b.press(t, "Create the account")
	b.reads(t, "this is not the setup code")
	looked(t, b, "setup-refused")
	b.forgive() // Chromium reports the status
	b.fill(t, "code", strings.ToLower(code))
	b.fill(t, "password", password)
	b.fill(t, "again", password)
	b.press(t, "Create the account")
	b.reads(t, "Next comes your first site")
	b.fill(t, "name", "lab")
	b.press(t, "Create the site")
	b.reads(t, "Next comes its agent")
	looked(t, b, "enroll")
	b.press(t, "Show the command")
	b.reads(t, "Waiting for the command to be run")
	looked(t, b, "enrollment")

	command := eval[string](t, b, `document.getElementById("command").textContent`)
	if install := eval[string](t, b, `document.getElementById("install").textContent`); install != "sudo apt install ./opensource-agent_*.deb" {
		t.Errorf("the package is installed by %q", install)
	}
	token := regexp.MustCompile(`^sudo opensource-agent enroll --manager '([^']+)' --token (\S+)$`).FindStringSubmatch(command)
	if token == nil || token[1] != s.URL {
		t.Fatalf("the command is %q", command)
	}
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := checkin.Client{URL: base}
	enrolled, err := client.Enroll(t.Context(), checkin.EnrollRequest{Token: token[2], Hostname: "gateway"})
	if err != nil {
		t.Fatal(err)
	}
	b.reads(t, "The host gateway ran the command and has its own key.")
	looked(t, b, "enrolled")
	client.Key = enrolled.Key
	if _, err := client.CheckIn(t.Context(), checkin.Request{SiteID: enrolled.SiteID, Hostname: "gateway"}, ""); err != nil {
		t.Fatal(err)
	}
	b.reads(t, "gateway is online. The site is connected.")
	looked(t, b, "connected")
	b.press(t, "Look at the agent")
	b.reads(t, "gateway")
}

func TestSetupIsOver(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	code := setupCode(t, s)
	signIn(t, s)
	if page := get(t, s, "/setup", ""); page.Status != http.StatusSeeOther || page.Header.Get("Location") != "/sign-in" {
		t.Errorf("%d %s", page.Status, page.Body)
	}
	refused := submit(t, s, "/setup", "", url.Values{"code": {code}, "name": {"eve"}, "password": {password}, "again": {password}})
	if refused.Status != http.StatusSeeOther || refused.Header.Get("Location") != "/sign-in" || len(refused.Header.Values("Set-Cookie")) > 0 {
		t.Errorf("%d %v", refused.Status, refused.Header)
	}
	if _, err := s.Store.UserByName(t.Context(), "eve"); err == nil {
		t.Error("a stranger has an account")
	}
}

func TestSetupIsRefused(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	former, code := setupCode(t, s), setupCode(t, s)
	try := func(code, name, password string) servertest.Answer {
		return submit(t, s, "/setup", "", url.Values{"code": {code}, "name": {name}, "password": {password}, "again": {password}})
	}
	// One that was copied from the log before the manager was started again:
	shows(t, try(former, "ada", password), http.StatusUnauthorized, "this is not the setup code", "each start of the manager makes another", "sudo opensource-manager setup-code")
	shows(t, try("", "ada", password), http.StatusUnauthorized, "this is not the setup code")
	short := try(code, "ada", "short")
	shows(t, short, http.StatusUnprocessableEntity, "at least 10 characters", `value="ada"`)
	if strings.Contains(string(short.Body), `value="short"`) {
		t.Error("the password was sent back")
	}
	shows(t, try(code, "<b>\x00", password), http.StatusUnprocessableEntity, `id="field-name-fault"`)
	if has, err := s.Store.HasUsers(t.Context()); err != nil || has {
		t.Errorf("%v, %v", has, err)
	}
	if done := try(code, "ada", password); done.Status != http.StatusSeeOther || done.Header.Get("Location") != "/sites/new" {
		t.Errorf("%d %s", done.Status, done.Body)
	}
	if twice := try(code, "ada", password); twice.Status != http.StatusSeeOther || twice.Header.Get("Location") != "/sign-in" {
		t.Errorf("a second click: %d %s", twice.Status, twice.Body)
	}
}

func TestGuessingTheSetupCode(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	setupCode(t, s)
	for range 100 {
		answer := submit(t, s, "/setup", "", url.Values{"code": {"A"}, "name": {"eve"}, "password": {password}, "again": {password}})
		if answer.Status == http.StatusTooManyRequests {
			if answer.Header.Get("Retry-After") == "" {
				t.Error("it does not say when to come back")
			}
			return
		}
	}
	t.Error("one may guess for ever")
}

func TestEnrollmentPages(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	s.Create(t, "/sites", object{"name": "lab"})
	shows(t, submit(t, s, "/sites/1/enroll", cookie, url.Values{"hostname": {"<b>"}, "expiresIn": {"1h"}}), 422, `id="field-hostname-fault"`)
	shows(t, submit(t, s, "/sites/1/enroll", cookie, url.Values{"expiresIn": {"1s"}}), 422, `id="field-expiresIn-fault"`)
	made := submit(t, s, "/sites/1/enroll", cookie, url.Values{"hostname": {"gateway"}, "expiresIn": {"1h"}})
	if made.Status != http.StatusSeeOther || made.Header.Get("Location") != "/enrollments/1" {
		t.Fatalf("%d %s", made.Status, made.Body)
	}
	token := made.Header.Get("Set-Cookie")
	if !strings.Contains(token, "Path=/enrollments/1;") || !strings.Contains(token, "HttpOnly") || !strings.Contains(token, "Max-Age=600") {
		t.Errorf("the token is kept as %q", token)
	}
	pair, _, _ := strings.Cut(token, ";")
	shows(t, get(t, s, "/enrollments/1", cookie+"; "+pair), 200, "opensource-agent enroll", "PUBLIC_URL is not set", "Only the manager's own host reaches that")
	other := get(t, s, "/enrollments/1", cookie)
	shows(t, other, 200, "is known nowhere else")
	shows(t, get(t, s, "/sites/1/enroll", cookie), 200, "Commands that nobody has used yet", "gateway")
	if revoked := submit(t, s, "/enrollments/1/revoke", cookie, nil); revoked.Status != http.StatusSeeOther {
		t.Errorf("%d %s", revoked.Status, revoked.Body)
	}
	shows(t, get(t, s, "/enrollments/1", cookie), 200, "The command was revoked.")
	viewer := signInViewer(t, s)
	for _, path := range []string{"/sites/1/enroll", "/enrollments/1"} {
		shows(t, get(t, s, path, viewer), http.StatusForbidden, "Only an administrator may do this.")
	}
	if strings.Contains(string(get(t, s, "/sites/1", viewer).Body), "Connect an agent") {
		t.Error("a viewer is offered what they may not do")
	}
}

// TestPasswordManagersKnowTheFirstAccount: what they may keep, and what not.
func TestPasswordManagersKnowTheFirstAccount(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	setup := string(get(t, s, "/setup", "").Body)
	for field, want := range map[string]string{"code": "off", "name": "username", "password": "new-password", "again": "new-password"} {
		input := regexp.MustCompile(`<input [^>]*name="` + field + `"[^>]*>`).FindString(setup)
		if !strings.Contains(input, `autocomplete="`+want+`"`) {
			t.Errorf("%s: %s", field, input)
		}
	}
}

// TestAViewerSeesWhyNot who was led by a sign-in to what is for administrators.
func TestAViewerSeesWhyNot(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	signInViewer(t, s)
	sent := submit(t, s, "/sign-in", "", url.Values{"name": {"eve"}, "password": {password}, "next": {"/audit?q=x"}})
	if sent.Status != http.StatusSeeOther || sent.Header.Get("Location") != "/audit?q=x" {
		t.Fatalf("%d %v", sent.Status, sent.Header)
	}
	shows(t, get(t, s, "/audit?q=x", sessionOf(t, sent)), http.StatusForbidden,
		"Only an administrator may do this. You are signed in as eve, who may look at everything, and change nothing.", `href="/agents"`, "Sign out")
}

// TestAHostThatComesBack was an agent before: what it did then is no check-in with
// its new key.
func TestAHostThatComesBack(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	s.Create(t, "/sites", object{"name": "lab"})
	first := enrolledBy(t, s, cookie, "/enrollments/1")
	if _, err := first.CheckIn(t.Context(), checkin.Request{SiteID: 1, Hostname: "gateway"}, ""); err != nil {
		t.Fatal(err)
	}
	shows(t, get(t, s, "/enrollments/1", cookie), 200, "The agent has checked in.")
	again := enrolledBy(t, s, cookie, "/enrollments/2")
	shows(t, get(t, s, "/enrollments/2", cookie), 200, "Waiting for the first check-in")
	if _, err := again.CheckIn(t.Context(), checkin.Request{SiteID: 1, Hostname: "gateway"}, ""); err != nil {
		t.Fatal(err)
	}
	shows(t, get(t, s, "/enrollments/2", cookie), 200, "The agent has checked in.", "is online")
}

// enrolledBy makes a command for the site, which gets the address, and does on the
// host gateway what it says.
func enrolledBy(t *testing.T, s *servertest.Server, cookie, path string) checkin.Client {
	t.Helper()
	made := submit(t, s, "/sites/1/enroll", cookie, url.Values{"expiresIn": {"1h"}})
	pair, _, _ := strings.Cut(made.Header.Get("Set-Cookie"), ";")
	token := regexp.MustCompile(`--token (ose_\w+)`).FindSubmatch(get(t, s, path, cookie+"; "+pair).Body)
	base, err := url.Parse(s.URL)
	if token == nil || err != nil {
		t.Fatalf("%d %s, %v", made.Status, made.Body, err)
	}
	client := checkin.Client{URL: base}
	enrolled, err := client.Enroll(t.Context(), checkin.EnrollRequest{Token: string(token[1]), Hostname: "gateway"})
	if err != nil {
		t.Fatal(err)
	}
	client.Key = enrolled.Key
	return client
}
