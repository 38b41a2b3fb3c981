package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/servertest"
)

func everyOperation(t *testing.T, s *servertest.Server) [][2]string {
	t.Helper()
	var spec struct{ Paths map[string]object }
	answer := s.Call(t, "GET", "/openapi.json", nil)
	if err := json.Unmarshal(answer.Body, &spec); err != nil || answer.Status != 200 {
		t.Fatalf("openapi.json: %d %v", answer.Status, err)
	}
	var all [][2]string
	for path, methods := range spec.Paths {
		for method := range methods {
			all = append(all, [2]string{strings.ToUpper(method), strings.ReplaceAll(path, "{id}", "1")})
		}
	}
	if len(all) < 40 {
		t.Fatalf("only %d operations are described", len(all))
	}
	return all
}

func TestEveryOperationNeedsCredentials(t *testing.T) {
	// Every wrong key comes from another address: they are counted by these.
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}})
	i := fill(t, s)
	viewer := s.Key(t, auth.NewKey{Name: "v", Role: auth.RoleViewer})
	agent := s.Key(t, auth.NewKey{Name: "a", Role: auth.RoleAgent, SiteID: i.site})
	open := []string{"GET /health", "GET /health/live", "GET /health/ready", "POST /session", "POST /agents", "POST /enroll"}
	endless := []string{"GET /live"} // who may listen is a test of its own
	personal := []string{"GET /session", "DELETE /session", "POST /session/password"}

	for n, operation := range everyOperation(t, s) {
		name, path := operation[0]+" "+operation[1], "/api/v1"+operation[1]
		if slices.Contains(open, name) || slices.Contains(endless, name) {
			continue
		}
		try := func(key string) int {
			header := http.Header{"X-Forwarded-For": {fmt.Sprintf("198.51.100.%d", n)}}
			if key != "" {
				header.Set("X-Api-Key", key)
			}
			answer := s.Do(t, operation[0], path, nil, header)
			if answer.Status == 401 || answer.Status == 403 {
				servertest.Error(t, answer)
			}
			return answer.Status
		}
		if got := try(""); got != 401 {
			t.Errorf("%s without credentials: %d", name, got)
		}
		if got := try("osk_wrong"); got != 401 {
			t.Errorf("%s with a wrong key: %d", name, got)
		}
		if slices.Contains(personal, name) {
			continue
		}
		if got := try(agent); got != 403 {
			t.Errorf("%s with an agent key: %d", name, got)
		}
		got := try(viewer)
		if reading := operation[0] == "GET" && name != "GET /audit"; reading && (got == 401 || got == 403) || !reading && got != 403 {
			t.Errorf("%s with a viewer key: %d", name, got)
		}
	}
}

func TestKeysAreShownOnceAndRevokedAtOnce(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	answer := s.Call(t, "POST", "/api-keys", object{"name": "deploy", "role": "viewer"})
	made := servertest.Data[struct {
		ID                      int64
		Key, Prefix, Role, Name string
		CreatedBy               string
	}](t, answer)
	if made.Key == "" || made.Role != "viewer" || made.CreatedBy != "test admin" || !strings.Contains(made.Key, made.Prefix) {
		t.Fatalf("%+v", made)
	}
	with := http.Header{"Authorization": {"bearer " + made.Key}}
	if got := s.Do(t, "GET", "/api/v1/sites", nil, with); got.Status != 200 {
		t.Fatalf("new key: %d", got.Status)
	}
	who := servertest.Data[object](t, s.Do(t, "GET", "/api/v1/session", nil, with))
	if diff := cmp.Diff(object{"name": "deploy", "role": "viewer", "siteId": nil, "hostname": nil}, who); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{"/api-keys", fmt.Sprintf("/api-keys/%d", made.ID)} {
		if shown := s.Call(t, "GET", path, nil); strings.Contains(string(shown.Body), made.Key) {
			t.Errorf("%s shows the key again", path)
		}
	}
	if got := s.Call(t, "DELETE", fmt.Sprintf("/api-keys/%d", made.ID), nil); got.Status != 204 {
		t.Fatalf("revoke: %d %s", got.Status, got.Body)
	}
	if got := s.Do(t, "GET", "/api/v1/sites", nil, with); got.Status != 401 {
		t.Errorf("revoked key: %d", got.Status)
	}
	if got := s.Call(t, "DELETE", "/api-keys/999", nil); got.Status != 404 {
		t.Errorf("revoke a key that is not there: %d", got.Status)
	}
	if strings.Contains(s.Log.String(), made.Key) || strings.Contains(s.Log.String(), s.AdminKey) {
		t.Error("a key is in the log")
	}
}

func TestUsers(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	first := s.Create(t, "/users", object{"name": " Ada ", "role": "admin", "password": "correct horse battery"})
	if shown := servertest.Data[object](t, s.Call(t, "GET", fmt.Sprintf("/users/%d", first), nil)); shown["name"] != "ada" || len(shown) != 8 {
		t.Errorf("%v", shown)
	}
	if again := s.Call(t, "POST", "/users", object{"name": "ADA", "role": "viewer", "password": "correct horse battery"}); again.Status != 409 {
		t.Errorf("same name: %d %s", again.Status, again.Body)
	}
	if last := s.Call(t, "DELETE", fmt.Sprintf("/users/%d", first), nil); last.Status != 409 {
		t.Errorf("the last administrator was deleted: %d", last.Status)
	}
	second := s.Create(t, "/users", object{"name": "eve", "role": "viewer", "password": "correct horse battery"})
	if gone := s.Call(t, "DELETE", fmt.Sprintf("/users/%d", second), nil); gone.Status != 204 {
		t.Errorf("delete user: %d %s", gone.Status, gone.Body)
	}
}
