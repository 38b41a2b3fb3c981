package dashboard_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/dashboard"
	"opensource.internal/manager/servertest"
)

// notPages are the routes that lead to a page, or to a file.
var notPages = []string{"/", "/sign-in/oidc", dashboard.CallbackPath, "/sites/:id/undo", "/assets/*file"}

// examples are the addresses of the pages at which the parameters are not all 1,
// on the manager that oneOfEach makes.
var examples = map[string]string{
	"/sites/:id/diff":     "/sites/1/diff?from=1&to=2",
	"/sites/:id/pin":      "/sites/1/pin?revision=1",
	"/sites/:id/unpin":    "/sites/2/unpin",
	"/users/:id/password": "/users/2/password", // not one's own
}

// oneOfEach is a manager with one record of every kind, of the id 1.
func oneOfEach(t *testing.T) (s *servertest.Server, cookie string) {
	t.Helper()
	s, cookie = inventory(t)
	call := func(method, path string, body object, want int) {
		t.Helper()
		if answer := s.Call(t, method, path, body); answer.Status != want {
			t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
		}
	}
	tag := func() string { return s.Call(t, "GET", "/sites/1/snapshot", nil).Header.Get("ETag") }
	before := tag()
	call("PATCH", "/services/1", object{"internalPort": 9090}, http.StatusOK)
	now := time.Now()
	checkIn(t, s, checkin.Request{
		SiteID: 1, Hostname: "gateway", CurrentTime: now.Unix(), Running: &checkin.Running{ETag: before, Since: now},
		Guard: &checkin.Guard{Removed: 6, Total: 8, Kind: checkin.GuardServices, ETag: tag()},
		Host:  &checkin.HostInfo{OS: "Debian GNU/Linux 13 (trixie)", NGINX: &checkin.NGINXInfo{Version: "1.26.3"}},
		Services: map[string]checkin.ServiceReport{"nginx": {
			State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRejected, Message: "nginx: [emerg] host not found in nginx.conf:12",
			Drift: []checkin.Drift{{Path: "/etc/nginx/nginx.conf", Diff: "-a\n+b\n"}},
		}},
		Volumes:      map[string]checkin.VolumeReport{"1": {Message: "permission denied"}},
		Certificates: map[string]checkin.Certificate{"example.com": {State: checkin.CertificateExpired, NotAfter: &now}},
	})
	s.Create(t, "/sites/1/enrollments", object{"hostname": "other"})
	s.Create(t, "/users", object{"name": "mara", "role": "viewer", "password": password})
	s.Create(t, "/notification-targets", object{"name": "on call", "url": "ntfy://ntfy.example.com/x"})
	s.Create(t, "/sites", object{"name": "pinned"})
	s.Call(t, "GET", "/sites/2/snapshot", nil) // makes its first revision
	call("POST", "/sites/2/pin", object{"revision": 1, "reason": "moving"}, http.StatusOK)
	return s, cookie
}

// TestEveryPageIsAccessible takes the pages from the routes: one that is added is
// looked at, too, or fails this test until it has an example.
func TestEveryPageIsAccessible(t *testing.T) {
	s, cookie := oneOfEach(t)
	engine := gin.New()
	dashboard.Register(engine, dashboard.Options{})
	b := browse(t, s, cookie)
	fresh := browse(t, servertest.Start(t, servertest.Options{}), "")
	pages := 0
	for _, route := range engine.Routes() {
		if route.Method != http.MethodGet || slices.Contains(notPages, route.Path) {
			continue
		}
		pages++
		path, given := examples[route.Path]
		if !given {
			path = strings.NewReplacer(":id", "1", ":number", "1").Replace(route.Path)
		}
		tab := b
		switch route.Path {
		case "/setup":
			tab = fresh
		case "/sign-in":
			tab = browse(t, s, "")
		default:
			if answer := get(t, s, path, cookie); answer.Status != http.StatusOK {
				t.Errorf("%s needs an example: %s answers %d", route.Path, path, answer.Status)
				continue
			}
		}
		t.Run(path, func(t *testing.T) {
			tab.open(t, path)
			if at := eval[string](t, tab, "location.pathname + location.search"); at != path {
				t.Fatalf("leads to %s", at)
			}
			looked(t, tab, "every"+strings.NewReplacer("/", "-", "?", "-", "&", "-").Replace(path))
		})
	}
	if pages < 50 {
		t.Errorf("%d pages", pages)
	}
}
