package pass

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
)

func TestRoundsAreBounded(t *testing.T) {
	s := newSite(t)
	n := 0
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		n++
		snapshot := lab()
		snapshot.Site.Name = checkin.Text(fmt.Sprintf("lab%d", n))
		data, etag, _ := checkin.Encode(snapshot)
		answerSnapshot(w, r, data, etag)
	})
	s.pass(Settled)
	if _, statuses := s.take(); len(statuses) != maxRounds+1 {
		t.Errorf("%d check-ins, want %d rounds and one last report", len(statuses), maxRounds)
	}
}

func TestASnapshotAnsweredAgainIsSettled(t *testing.T) {
	for name, tag := range map[string]string{"a tag": `"always"`, "no tag": "", "a tag that is none": "always"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			data, _, _ := checkin.Encode(lab())
			s.respond(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del("If-None-Match")
				answerSnapshot(w, r, data, tag)
			})
			s.pass(Settled)
			if _, statuses := s.take(); len(statuses) != 2 {
				t.Errorf("%d check-ins, want 2", len(statuses))
			}
			s.pass(Settled)
			if _, statuses := s.take(); len(statuses) > 2 {
				t.Errorf("%d check-ins in a later pass, want 2 at most", len(statuses))
			}
		})
	}
}

func TestManagersThatDifferDoNotMakeASiteFlap(t *testing.T) {
	s := newSite(t)
	n := 0
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		n++
		snapshot := lab()
		snapshot.NGINX.HTTPServices[0].ExternalHostname = []string{"one", "other"}[n%2]
		data, etag, _ := checkin.Encode(snapshot)
		answerSnapshot(w, r, data, etag)
	})
	s.pass(Settled)
	if _, statuses := s.take(); len(statuses) != 3 {
		t.Errorf("answers = %v, want one of each and one more", statuses)
	}
	if !strings.Contains(s.read("etc/nginx/nginx.conf"), "one.example.com") || !strings.Contains(s.read("var/lib/opensource-agent/snapshot.json"), `"one"`) {
		t.Error("what is remembered is not what is in force")
	}
}

func TestWeakTagIsSentBack(t *testing.T) {
	s := newSite(t)
	data, etag, _ := checkin.Encode(lab())
	s.respond(func(w http.ResponseWriter, r *http.Request) { answerSnapshot(w, r, data, "W/"+etag) })
	s.pass(Settled)
	s.take()
	s.pass(Settled)
	if _, statuses := s.take(); len(statuses) != 1 || statuses[0] != 304 {
		t.Errorf("answers = %v, want one 304", statuses)
	}
}

func TestRefusedAnswersChangeNothing(t *testing.T) {
	other := lab()
	other.Site.ID = 2
	otherData, otherTag, _ := checkin.Encode(other)
	nullData, nullTag, _ := checkin.Encode(checkin.Bootstrap())
	reply := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("ETag", `"wrong"`)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"another site":      func(w http.ResponseWriter, r *http.Request) { answerSnapshot(w, r, otherData, otherTag) },
		"no site":           func(w http.ResponseWriter, r *http.Request) { answerSnapshot(w, r, nullData, nullTag) },
		"login page":        reply(200, "text/html", "<html>"),
		"unknown site":      reply(404, "application/json", `{"error":{"code":"site_not_found","message":"no such site"}}`),
		"key refused":       reply(401, "application/json", `{"error":{"code":"unauthorized","message":"bad key"}}`),
		"list missing":      reply(200, "application/json", `{"data":{"site":{"id":1,"nodes":[]},"nginx":{"httpServices":[]}}}`),
		"null list":         reply(200, "application/json", `{"data":{"site":{"id":1,"nodes":null},"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}}`),
		"cut off":           reply(200, "application/json", `{"data":{"site":`),
		"error as data":     reply(200, "application/json", `{"error":"x"}`),
		"moved":             reply(302, "text/html", ""),
		"internal error":    reply(500, "application/json", `{"error":{"code":"internal_error","message":"x"}}`),
		"something unasked": reply(204, "application/json", ""),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.publish(lab())
			s.pass(Settled)
			s.take()
			before, etag := s.files(), s.etag
			s.respond(answer)
			s.pass(ManagerAway)
			if diff := cmp.Diff(before, s.files()); diff != "" {
				t.Errorf("files were written (-before +after):\n%s", diff)
			}
			s.publish(lab())
			s.pass(Settled)
			if _, statuses := s.take(); statuses[len(statuses)-1] != 304 || s.etag != etag {
				t.Errorf("the tag of the refused answer was kept: %v", statuses)
			}
		})
	}
}

func TestBootstrapIsObeyedByAFreshAgent(t *testing.T) {
	s := newSite(t)
	s.publish(checkin.Bootstrap())
	s.pass(Settled)
	requests, _ := s.take()
	if r := last(t, requests).Services["dnsmasq"]; r.Outcome != checkin.OutcomeSkipped || r.Message == "" {
		t.Errorf("dnsmasq: %+v", r)
	}
	s.publish(lab())
	s.pass(Settled)
}

func TestBootstrapIsNotObeyedAfterAnUpgrade(t *testing.T) {
	s := newSite(t)
	s.write("var/lib/opensource-agent/state.json", `{"etag":"\"abc\"","lastApply":{"nginx":"success","dnsmasq":"success"}}`)
	const earlier = "# 100 services\n"
	s.write("etc/nginx/nginx.conf", earlier)
	s.publish(checkin.Bootstrap())
	for range 2 { // our own state forgets it no more than theirs
		s.pass(ManagerAway)
		if got := s.read("etc/nginx/nginx.conf"); got != earlier {
			t.Fatalf("nginx.conf was overwritten:\n%s", got)
		}
	}
	s.publish(lab())
	s.pass(Settled)
}

func TestManagerAwayFromTheStart(t *testing.T) {
	s := newSite(t)
	s.server.Close()
	s.pass(ManagerAway)
	if _, err := os.Stat(filepath.Join(s.root, "etc/nginx")); !os.IsNotExist(err) {
		t.Errorf("something was written without a snapshot: %v", err)
	}
}

func TestASilentManagerDoesNotKeepThePass(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.write("etc/nginx/nginx.conf", "edited")
	entered := make(chan struct{})
	release := make(chan struct{})
	s.server.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(entered)
		<-release
	})
	defer close(release)
	s.pass(ManagerAway) // after checkin.Timeout
	<-entered
	if s.read("etc/nginx/nginx.conf") == "edited" {
		t.Error("the edit was not repaired")
	}
}
