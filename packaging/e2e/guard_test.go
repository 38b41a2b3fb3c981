//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"opensource.internal/e2e/internal/browser"
	"opensource.internal/e2e/internal/wait"
)

// massRemoval deletes most services of the site at once: nothing of it happens
// until an administrator confirms it, by one of the ways to do so.
func massRemoval(confirm func(*testing.T, *site, agent)) func(*testing.T, *site) {
	return func(t *testing.T, s *site) { removeMost(t, s, confirm) }
}

// confirmByAPI confirms as a script would.
func confirmByAPI(t *testing.T, s *site, held agent) {
	etag := strings.Trim(held.Guard.ETag, `"`)
	if err := s.manager.call("POST", fmt.Sprintf("/sites/%d/confirm-removals", s.id), object{"etag": etag}, nil); err != nil {
		t.Fatal(err)
	}
}

// confirmInBrowser confirms as a person would.
func confirmInBrowser(t *testing.T, s *site, held agent) {
	page := browser.Open(t, s.manager.URL+"/agents")
	page.Type(t, "name", "admin")
	page.Type(t, "password", password)
	page.Click(t, "", "Sign in")
	page.Click(t, held.Hostname, "Look and confirm…")
	page.WaitFor(t, s.host("many7")+".example.test")
	page.Click(t, "", "Confirm the removal")
	page.WaitFor(t, "Confirmed by admin")
}

func removeMost(t *testing.T, s *site, confirm func(*testing.T, *site, agent)) {
	names := make([]string, 8)
	ids := make([]int64, len(names))
	for i := range names {
		host := fmt.Sprintf("many%d", i)
		names[i], ids[i] = s.host(host)+".example.test", s.http(t, host, s.domain, 8081)
	}
	s.wantPass(t, 0)
	running := s.Read(t, "/etc/nginx/nginx.conf")
	for _, id := range ids {
		s.manager.remove(t, fmt.Sprintf("/services/%d", id))
	}
	s.wantPass(t, 4)
	s.wantPass(t, 4)
	wantServed := func() {
		t.Helper()
		for _, name := range names {
			if err := s.serves(name, s.backend(8081)); err != nil {
				t.Error(err)
			}
		}
		s.wantServed(t)
	}
	wantServed()

	agent, err := s.manager.agent(s.id)
	if err != nil {
		t.Fatal(err)
	}
	// The site's first services, of HTTP, TCP and UDP, stay.
	if g := agent.Guard; g == nil || g.Removed != 8 || g.Total != 11 || g.ETag == "" || g.ETag != agent.Services["nginx"].ReceivedETag || g.ETag == agent.Running.ETag {
		t.Errorf("reported: %+v, running %+v, nginx %+v", g, agent.Running, agent.Services["nginx"])
	}
	if page := html.UnescapeString(s.manager.page(t)); !strings.Contains(page, "8 of 11 services") {
		t.Errorf("/agents does not tell of it:\n%s", page)
	}
	if told, _ := s.Try("opensource-agent", "status"); !strings.Contains(told, "removes 8 of the 11 services in force here") {
		t.Errorf("status does not tell of it:\n%s", told)
	}
	s.Write(t, "/etc/nginx/nginx.conf", "nonsense;\n", 0o644)
	s.wantPass(t, 4)
	if s.Read(t, "/etc/nginx/nginx.conf") != running {
		t.Error("what runs is not looked after any more")
	}
	wantServed()

	confirm(t, s, agent)
	s.wantPass(t, 0)
	s.wantServed(t)
	for _, name := range names {
		if strings.Contains(s.Read(t, "/etc/nginx/nginx.conf"), name) {
			t.Errorf("%s is still there", name)
		}
	}
	wait.For(t, 5*time.Second, "the end of the guard", func() error {
		if agent, err = s.manager.agent(s.id); err == nil && agent.Guard != nil {
			err = errors.New("it is still reported")
		}
		return err
	})
}
