package dashboard_test

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/servertest"
)

func explained(c *config.Config) {
	c.Explained = []config.Setting{{Name: "LISTEN", Value: "127.0.0.1:3000", From: "the default"}, {Name: "DATABASE_URL", Value: "postgres://manager:xxxxx@db.example/<b>manager</b>", From: "/etc/opensource-manager/manager.env"}}
}

func TestHealthAndSettings(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: explained})
	cookie := signIn(t, s)
	page := get(t, s, "/settings", cookie)
	shows(t, page, 200, "version test", "can be read and written", "that of this program", "PUBLIC_URL is not set", "set it to what browsers use",
		"LISTEN", "/etc/opensource-manager/manager.env", "postgres://manager:xxxxx@")
	wantOn(t, string(page.Body), nil, []string{"<b>manager"})
	viewer := get(t, s, "/settings", signInViewer(t, s))
	shows(t, viewer, 200, "can be read and written")
	wantOn(t, string(viewer.Body), nil, []string{"DATABASE_URL", "127.0.0.1:3000"})
}

func TestHealthTellsWhatIsWrong(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) {
		c.PublicURL = &url.URL{Scheme: "https", Host: "manager.example.com"}
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	}})
	cookie := signIn(t, s)
	shows(t, get(t, s, "/settings", cookie), 200, "the proxy must send X-Forwarded-Proto", "trusted: 192.0.2.0/24")
	proxied := s.Do(t, "GET", "/settings", nil, http.Header{"Cookie": {cookie}, "Accept": {"text/html"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"manager.example.com"}})
	shows(t, proxied, 200, "the proxy must send X-Forwarded-Proto") // 127.0.0.1 is none that is trusted
}

func TestWhoDoesThePeriodicTasks(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	b := browse(t, s, signIn(t, s))
	b.open(t, "/settings")
	for range 3 { // the lease is taken beside the start
		if eval[bool](t, b, `document.body.innerText.includes("done by this manager")`) {
			break
		}
		b.open(t, "/settings")
	}
	b.reads(t, "done by this manager")
	if _, held, err := s.Store.NewLease("tasks", 1).Renewed(context.Background()); err != nil || !held {
		t.Errorf("held %v: %v", held, err)
	}
}

func TestSettingsInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: explained})
	b := browse(t, s, signIn(t, s))
	b.open(t, "/settings")
	looked(t, b, "settings")
}

// TestTheDescriptionOfTheAPIInABrowser: it looks like the dashboard, is reached from
// there, and leads back.
func TestTheDescriptionOfTheAPIInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	b := browse(t, s, signIn(t, s))
	b.open(t, "/settings")
	b.press(t, "API")
	b.reads(t, "All paths are below")
	b.do(t, chromedp.Click("#get-agents-id summary", chromedp.ByQuery))
	b.reads(t, "lastSeenAt")
	looked(t, b, "api-docs")
	b.press(t, "Back to the agents")
	b.reads(t, "Agents")
}
