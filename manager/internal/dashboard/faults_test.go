package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/store/storetest"
	"opensource.internal/manager/servertest"
)

// TestFaultsInABrowser: whatever goes wrong, there is a page that says what, and what
// to do.
func TestFaultsInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) {
		c.PublicURL = &url.URL{Scheme: "https", Host: strings.Repeat("a-long-label.", 15) + "example"}
	}})
	b := browse(t, s, "")
	_ = signIn(t, s)
	for _, test := range []struct {
		name string
		way  func()
		says string
	}{
		{"fault-stranger", func() { b.open(t, "/nope") }, "There is no such page."},
		{"fault-address", func() { b.open(t, "/sign-in") }, "PUBLIC_URL"},
	} {
		test.way()
		b.reads(t, test.says)
		b.forgive()
		looked(t, b, test.name)
	}
}

// TestFaultsOfVisitsInABrowser are those of people who are signed in.
func TestFaultsOfVisitsInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	b, viewer := browse(t, s, signIn(t, s)), browse(t, s, signInViewer(t, s))
	for _, test := range []struct {
		name string
		b    *tab
		way  func(*tab)
		says string
	}{
		{"fault-404", b, func(b *tab) { b.open(t, "/sites/7") }, "may have been deleted meanwhile"},
		{"fault-404-page", b, func(b *tab) { b.open(t, "/nope"); b.reads(t, "Sign out") }, "There is no such page."},
		{"fault-403", viewer, func(b *tab) { b.open(t, "/sites/new") }, "Only an administrator may do this."},
		{"fault-400", b, func(b *tab) { b.open(t, "/agents?sort=report") }, "cannot sort by"},
		{"fault-413", b, func(b *tab) {
			b.open(t, "/sites/new")
			b.fill(t, "name", strings.Repeat("a", 1<<17))
			b.press(t, "Create the site")
		}, "it is larger than 64 KiB"},
		{"fault-sign-in", browse(t, s, ""), func(b *tab) {
			b.open(t, "/sign-in")
			b.fill(t, "name", strings.Repeat("a-long-name", 20))
			b.fill(t, "password", "wrong")
			b.press(t, "Sign in")
		}, "Name or password is wrong."},
		{"fault-503", b, func(b *tab) {
			b.open(t, "/sites/new")
			b.fill(t, "name", "lab")
			unlock := storetest.LockWrites(t, s.Database)
			defer unlock()
			b.press(t, "Create the site")
		}, "The manager's database cannot be used at the moment, so nothing was changed."},
		{"fault-500", b, func(b *tab) {
			if err := s.Store.Close(); err != nil {
				t.Fatal(err)
			}
			b.open(t, "/sites")
		}, "The manager could not do this."},
	} {
		test.way(test.b)
		test.b.reads(t, test.says)
		test.b.forgive() // the browser tells the status
		looked(t, test.b, test.name)
	}
}

// TestAFormFromElsewhere is refused with a page.
func TestAFormFromElsewhere(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	answer := s.Do(t, "POST", "/sites/new", "name=x", http.Header{
		"Cookie": {signIn(t, s)}, "Accept": {"text/html"}, "Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {"cross-site"},
	})
	shows(t, answer, 403, "<h1>")
}
