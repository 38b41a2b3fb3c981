package api_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/servertest"
)

func TestPageShowsEveryOperation(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	answer := s.Call(t, "GET", "/docs", nil)
	page := string(answer.Body)
	if answer.Status != 200 || answer.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", answer.Status, answer.Header)
	}
	for _, o := range s.Describe(t).Operations {
		if !strings.Contains(page, `<details id="`+o.ID+`">`) || !strings.Contains(page, "</b> "+o.Path+"</code>") {
			t.Errorf("%s %s is not on the page", o.Method, o.Path)
		}
	}
	for _, want := range []string{"precondition_failed", "If-Match", "&#34;externalHostname&#34;: &#34;app&#34;", "proxmox"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %s", want)
		}
	}
	// Nothing that the content security policy forbids, nothing from elsewhere.
	for _, forbidden := range []string{"<script", "<style", " style=", " onclick", "http://", "https://", "<no value>", "%!"} {
		for _, place := range regexp.MustCompile(`(?s)<(?:link|a|script|style|img)[^>]*>|<[^>]* (?:style|on\w+)=`).FindAllString(page, -1) {
			if strings.Contains(place, forbidden) {
				t.Errorf("the page has %s", place)
			}
		}
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "%!") || strings.Contains(page, "no value") {
		t.Error("the page has a script, or a mistake of its template")
	}
	if !strings.Contains(answer.Header.Get("Content-Security-Policy"), "default-src 'self'") {
		t.Errorf("policy %q", answer.Header.Get("Content-Security-Policy"))
	}
}

// Every link of the page leads somewhere, behind a prefix too.
func TestLinksOfThePage(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) {
		c.PublicURL, _ = url.Parse("https://ops.example.com/net")
	}})
	const at = "/net/api/v1/docs"
	with := http.Header{"X-Api-Key": {s.AdminKey}}
	page := string(s.Do(t, "GET", at, nil, with).Body)
	links := regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(links) < 10 {
		t.Fatalf("links %v", links)
	}
	base := &url.URL{Path: at}
	for _, link := range links {
		target, err := base.Parse(link[1])
		switch {
		case err != nil:
			t.Errorf("%s: %v", link[1], err)
		case target.Fragment != "" && !strings.Contains(page, `id="`+target.Fragment+`"`):
			t.Errorf("nothing on the page is %s", link[1])
		case target.Fragment == "" && strings.HasPrefix(target.Path, "/net/api/"):
			if answer := s.Do(t, "GET", target.Path, nil, with); answer.Status != 200 {
				t.Errorf("%s leads to %s: %d", link[1], target.Path, answer.Status)
			}
		case !strings.HasPrefix(target.Path, "/net/"):
			t.Errorf("%s leads out of the prefix", link[1])
		}
	}
	stranger := s.Do(t, "GET", at, nil, nil)
	if stranger.Status != 303 || stranger.Header.Get("Location") != "/net/sign-in" {
		t.Errorf("stranger: %d %q", stranger.Status, stranger.Header.Get("Location"))
	}
	if wrong := s.Do(t, "GET", at, nil, http.Header{"X-Api-Key": {"osk_wrong"}}); wrong.Status != 401 {
		t.Errorf("wrong key: %d", wrong.Status)
	}
}
