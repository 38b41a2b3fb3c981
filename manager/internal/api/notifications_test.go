package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

func TestNotificationTargets(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	s.Create(t, "/sites", object{"name": "lab"})
	got := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.URL.Path + " " + string(body)
	}))
	defer hook.Close()

	answer := s.Call(t, "POST", "/notification-targets", object{
		"name": "ops", "url": "generic+" + hook.URL + "/SECRETSECRET?template=json", "kinds": []string{"stuck", "offline"}, "siteIds": []int{1},
	})
	made := servertest.Data[object](t, answer)
	if answer.Status != 201 || made["service"] != "generic" || fmt.Sprint(made["kinds"], made["siteIds"]) != "[offline stuck] [1]" || made["enabled"] != true || made["severity"] != "warning" {
		t.Errorf("%d %v", answer.Status, made)
	}
	tested := servertest.Data[object](t, s.Call(t, "POST", "/notification-targets/1/test", nil))
	if tested["delivered"] != true || tested["error"] != nil {
		t.Errorf("%v", tested)
	}
	if body := <-got; !strings.Contains(body, "/SECRETSECRET") || !strings.Contains(body, "This is a test") {
		t.Errorf("received %s", body)
	}
	changed := servertest.Data[object](t, s.Call(t, "PATCH", "/notification-targets/1", object{"url": "generic+http://127.0.0.1:1/SECRETSECRET", "siteIds": nil, "severity": "error", "enabled": false}))
	if fmt.Sprint(changed["siteIds"]) != "[]" || changed["severity"] != "error" || changed["enabled"] != false || changed["urlSetAt"] == made["urlSetAt"] {
		t.Errorf("%v", changed)
	}
	if tested = servertest.Data[object](t, s.Call(t, "POST", "/notification-targets/1/test", nil)); tested["delivered"] != false || !strings.Contains(fmt.Sprint(tested["error"]), "refused") {
		t.Errorf("%v", tested)
	}
	viewer := s.Key(t, auth.NewKey{Name: "v", Role: auth.RoleViewer})
	for _, key := range []string{s.AdminKey, viewer} {
		for _, path := range []string{"/notification-targets", "/notification-targets/1", "/audit"} {
			if shown := s.Do(t, "GET", "/api/v1"+path, nil, http.Header{"X-Api-Key": {key}}); strings.Contains(string(shown.Body), "SECRET") {
				t.Errorf("%s shows the URL: %s", path, shown.Body)
			}
		}
	}
	if strings.Contains(s.Log.String(), "SECRET") {
		t.Error("the URL is in the log")
	}
	entries, _, err := s.Store.ListAudit(t.Context(), store.AuditFilter{Resource: "notification_target"}, store.ListOptions{})
	if err != nil || len(entries) != 2 || strings.Contains(fmt.Sprint(entries), "SECRET") || entries[0].After["urlSetAt"] == nil {
		t.Errorf("audit: %+v, %v", entries, err)
	}
	if got := s.Call(t, "DELETE", "/notification-targets/1", nil); got.Status != 204 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

func TestRefusedNotificationTargets(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	s.Create(t, "/notification-targets", object{"name": "ops", "url": "ntfy://ntfy.example.com/alerts"})
	for _, test := range []struct {
		body  object
		field string
		code  int
	}{
		{object{"name": "x"}, "url", 422},
		{object{"url": "ntfy://ntfy.example.com/a"}, "name", 422},
		{object{"name": "x", "url": "https://example.com/SECRETSECRET"}, "url", 422},
		{object{"name": "x", "url": "file:///etc/passwd"}, "url", 422},
		{object{"name": "x", "url": nil}, "url", 422},
		{object{"name": "x", "url": "ntfy://h/t", "kinds": []string{"rain"}}, "kinds", 422},
		{object{"name": "x", "url": "ntfy://h/t", "siteIds": []int{7}}, "siteIds", 422},
		{object{"name": "x", "url": "ntfy://h/t", "severity": "info"}, "severity", 422},
		{object{"name": "x", "url": "ntfy://h/t", "lastError": "x"}, "lastError", 422},
		{object{"name": "OPS", "url": "ntfy://h/t"}, "name", 409},
	} {
		answer := s.Call(t, "POST", "/notification-targets", test.body)
		fault := servertest.Error(t, answer)
		if answer.Status != test.code || fault.Fields[test.field] == "" || strings.Contains(string(answer.Body), "SECRET") {
			t.Errorf("%v: %d %s", test.body, answer.Status, answer.Body)
		}
	}
	for _, body := range []object{{"siteId": 7, "until": "2126-12-01T06:00:00Z"}, {"siteId": 1, "until": "2020-12-01T06:00:00Z"}, {"siteId": 1, "until": "tomorrow"}, {"siteId": 1}} {
		if answer := s.Call(t, "POST", "/notification-silences", body); answer.Status != 422 {
			t.Errorf("%v: %d %s", body, answer.Status, answer.Body)
		}
	}
}
