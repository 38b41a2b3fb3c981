package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
)

func TestNotifyTargets(t *testing.T) {
	s := newShell(t)
	if _, err := s.store().CreateSite(t.Context(), inventory.Site{Name: "lab"}); err != nil {
		t.Fatal(err)
	}
	var got string
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.URL.Path + " " + string(body)
	}))
	defer hook.Close()
	url := "generic+" + hook.URL + "/SECRETSECRET?template=json"
	if out := s.must(url+"\n", "notify", "add", "ops", "--site", "1", "--kind", "offline,stuck"); out != "created notification target 1 (ops, generic)\n" {
		t.Errorf("%q", out)
	}
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("generic+http://127.0.0.1:1/SECRETSECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	added := decode[show.NotificationTarget](t, s.must("", "notify", "add", "broken", "--severity", "error", "--url-file", file, "--json"))
	if added.ID != 2 || added.Service != "generic" || added.Severity != "error" || !added.Enabled {
		t.Errorf("%+v", added)
	}
	if out := s.must("", "notify", "test", "OPS"); out != "delivered a test message to ops\n" || !strings.Contains(got, "/SECRETSECRET") || !strings.Contains(got, "test") {
		t.Errorf("%q, got %q", out, got)
	}
	failed := s.run("", "notify", "test", "2")
	if failed.code != exitFault || !strings.Contains(failed.stderr, "broken was not reached") || !strings.Contains(failed.stderr, "refused") {
		t.Errorf("%+v", failed)
	}
	list := s.must("", "notify", "targets")
	for _, part := range []string{"ops     generic  offline,stuck", "1      delivered ", "everything (errors)", "failed 20"} {
		if !strings.Contains(list, part) {
			t.Errorf("%q is not in\n%s", part, list)
		}
	}
	all := decode[[]show.NotificationTarget](t, s.must("", "notify", "targets", "--json"))
	if len(all) != 2 || all[0].SiteIDs[0] != 1 || all[1].Failures != 1 {
		t.Errorf("%+v", all)
	}
	for _, shown := range []string{list, failed.stderr, fmt.Sprint(all)} {
		if strings.Contains(shown, "SECRET") {
			t.Errorf("the URL is shown: %s", shown)
		}
	}
	if out := s.must("", "notify", "remove", "broken"); out != "removed notification target 2 (broken)\n" {
		t.Errorf("%q", out)
	}
	for _, args := range [][]string{{"notify", "remove", "broken"}, {"notify", "test", "99"}, {"notify", "silence", "7", "--for", "1h"}, {"notify", "unsilence", "1"}} {
		if r := s.run("", args...); r.code != exitFault || r.stderr == "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestNotifyMistakes(t *testing.T) {
	s := newShell(t)
	s.store()
	for _, args := range [][]string{
		{"notify"},
		{"notify", "add"},
		{"notify", "add", "ops", "--url-file", "/nonexistent"},
		{"notify", "add", "ops", "--severity", "info"},
		{"notify", "silence", "1"},
		{"notify", "silence", "1", "--for", "2h", "--until", "2126-01-01T00:00:00Z"},
		{"notify", "silence", "1", "--until", "tomorrow"},
		{"notify", "silence", "1", "--for", "-1h"},
	} {
		if r := s.run("", args...); r.code != exitUsage || r.stderr == "" {
			t.Errorf("%v: exit %d, stderr %q", args, r.code, r.stderr)
		}
	}
	for url, field := range map[string]string{"": "url: is required", "https://example.com/SECRETSECRET": "url: ", "logger://": "url: "} {
		r := s.run(url, "notify", "add", "ops")
		if r.code != exitUsage || !strings.Contains(r.stderr, field) || strings.Contains(r.stderr, "SECRET") {
			t.Errorf("%q: %+v", url, r)
		}
	}
	if r := s.run("ntfy://ntfy.example.com/x", "notify", "add", "ops", "--kind", "rain", "--site", "9"); r.code != exitUsage || !strings.Contains(r.stderr, "kinds: ") {
		t.Errorf("%+v", r)
	}
	if r := s.run("ntfy://ntfy.example.com/x", "notify", "add", "ops", "--site", "9"); r.code != exitUsage || !strings.Contains(r.stderr, `--site: there is no site "9"`) {
		t.Errorf("%+v", r)
	}
}

func TestNotifySilences(t *testing.T) {
	s := newShell(t)
	if _, err := s.store().CreateSite(t.Context(), inventory.Site{Name: "lab"}); err != nil {
		t.Fatal(err)
	}
	if out := s.must("", "notify", "silence", "1", "--for", "2h", "--reason", "moving"); !strings.HasPrefix(out, "nobody is told of site \"lab\" until ") {
		t.Errorf("%q", out)
	}
	replaced := decode[show.NotificationSilence](t, s.must("", "notify", "silence", "1", "--until", "2126-01-01T00:00:00+01:00", "--json"))
	if want := time.Date(2125, 12, 31, 23, 0, 0, 0, time.UTC); !replaced.Until.Equal(want) || replaced.Reason != nil {
		t.Errorf("%+v", replaced)
	}
	if list := decode[[]show.NotificationSilence](t, s.must("", "notify", "silences", "--json")); len(list) != 1 || !reflect.DeepEqual(list[0], replaced) {
		t.Errorf("%+v", list)
	}
	if out := s.must("", "notify", "silences"); !strings.Contains(out, "2125-12-31 23:00 UTC") {
		t.Errorf("%q", out)
	}
	s.must("", "notify", "silence", "LAB", "--for", "7d")
	if out := s.must("", "notify", "unsilence", "lab"); out != "site \"lab\" is no longer silenced\n" {
		t.Errorf("%q", out)
	}
	if list := decode[[]show.NotificationSilence](t, s.must("", "notify", "silences", "--json")); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}
