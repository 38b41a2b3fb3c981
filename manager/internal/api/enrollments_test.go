package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

const nonce = "0123456789abcdef0123456789abcdef"

// enrolling is a manager with a site.
type enrolling struct {
	*servertest.Server
	site int64
}

func newEnrolling(t *testing.T) enrolling {
	t.Helper()
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) {
		c.PublicURL = &url.URL{Scheme: "https", Host: "manager.example.com", Path: "/m"}
	}})
	return enrolling{s, s.Create(t, "/sites", object{"name": "lab"})}
}

type madeToken struct {
	ID             int64
	Token, Command string
	ExpiresAt      time.Time
}

func (e enrolling) token(t *testing.T, body object) madeToken {
	t.Helper()
	return servertest.Data[madeToken](t, e.Call(t, "POST", fmt.Sprintf("/sites/%d/enrollments", e.site), body))
}

func (e enrolling) enroll(t *testing.T, token, hostname, nonce string) servertest.Answer {
	t.Helper()
	body := object{"token": token, "hostname": hostname, "fromTheFuture": true}
	if nonce != "" {
		body["nonce"] = nonce
	}
	return e.Do(t, "POST", "/api/v1/enroll", body, nil)
}

type enrolled struct {
	SiteID        int64
	Hostname, Key string
}

func (e enrolling) checkIn(t *testing.T, key, hostname string) servertest.Answer {
	t.Helper()
	return e.Do(t, "POST", "/api/v1/agents", object{"siteId": e.site, "hostname": hostname}, http.Header{"Authorization": {"Bearer " + key}})
}

func wantFault(t *testing.T, answer servertest.Answer, status int, code string) {
	t.Helper()
	if fault := servertest.Error(t, answer); answer.Status != status || fault.Code != code {
		t.Errorf("%d %s, want %d %s", answer.Status, answer.Body, status, code)
	}
}

// The Host header is whatever the client says, and may lead a host to somebody
// else's manager.
func TestNoInstallCommandOfTheHostHeader(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	s.Create(t, "/sites", object{"name": "lab"})
	answer := s.Call(t, "POST", "/sites/1/enrollments", nil) // no body is needed
	made := servertest.Data[struct {
		Token         string
		Command, Note *string
	}](t, answer)
	if answer.Status != 201 || made.Token == "" || made.Command != nil || made.Note == nil || !strings.Contains(*made.Note, "PUBLIC_URL is not set") {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
}

func TestTokenBecomesTheKeyOfOneHost(t *testing.T) {
	e := newEnrolling(t)
	made := e.token(t, object{})
	if left := time.Until(made.ExpiresAt); left < 59*time.Minute || left > time.Hour {
		t.Errorf("it is good for %s", left)
	}
	if want := "sudo opensource-agent enroll --manager 'https://manager.example.com/m' --token " + made.Token; !strings.Contains(made.Command, want) {
		t.Errorf("%s does not contain %s", made.Command, want)
	}
	got := servertest.Data[enrolled](t, e.enroll(t, made.Token, "Gateway", nonce))
	if got.SiteID != e.site || got.Hostname != "gateway" || got.Key == "" {
		t.Fatalf("%+v", got)
	}
	if answer := e.checkIn(t, got.Key, "GATEWAY"); answer.Status != 200 {
		t.Errorf("check-in: %d %s", answer.Status, answer.Body)
	}
	wantFault(t, e.checkIn(t, got.Key, "other"), 403, "wrong_host")
	for _, free := range []string{e.AdminKey, e.Key(t, auth.NewKey{Name: "a", Role: auth.RoleAgent, SiteID: e.site})} {
		if answer := e.checkIn(t, free, "other"); answer.Status != 200 {
			t.Errorf("a key of no host: %d %s", answer.Status, answer.Body)
		}
	}
	who := servertest.Data[object](t, e.Do(t, "GET", "/api/v1/session", nil, http.Header{"X-Api-Key": {got.Key}}))
	if who["role"] != "agent" || who["hostname"] != "gateway" {
		t.Errorf("%v", who)
	}
	wantFault(t, e.enroll(t, made.Token, "gateway", ""), 409, "enrollment_used")
	wantFault(t, e.enroll(t, made.Token, "other", nonce), 409, "enrollment_used")
	wantFault(t, e.Call(t, "DELETE", fmt.Sprintf("/enrollments/%d", made.ID), nil), 409, "conflict")

	shown := e.Call(t, "GET", fmt.Sprintf("/enrollments/%d", made.ID), nil)
	if row := servertest.Data[object](t, shown); row["usedBy"] != "gateway" || row["usedAt"] == nil || row["apiKeyId"] == nil {
		t.Errorf("%s", shown.Body)
	}
	list := e.Call(t, "GET", fmt.Sprintf("/sites/%d/enrollments", e.site), nil)
	for _, secret := range []string{made.Token, got.Key} {
		if strings.Contains(string(shown.Body)+string(list.Body)+e.Log.String(), secret) {
			t.Error("a secret is shown")
		}
	}
}

func TestTokensThatDoNot(t *testing.T) {
	e := newEnrolling(t)
	revoked, only := e.token(t, object{}), e.token(t, object{"hostname": "Gateway", "expiresIn": "7d"})
	if got := e.Call(t, "DELETE", fmt.Sprintf("/enrollments/%d", revoked.ID), nil); got.Status != 204 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	wantFault(t, e.enroll(t, revoked.Token, "gateway", nonce), 401, "enrollment_revoked")
	wantFault(t, e.enroll(t, only.Token, "other", nonce), 403, "wrong_host")
	wantFault(t, e.enroll(t, only.Token, "a b", nonce), 422, "validation_failed")
	wantFault(t, e.enroll(t, only.Token, "gateway", "short"), 422, "validation_failed")
	if got := e.enroll(t, only.Token, "gateway", nonce); got.Status != 201 {
		t.Errorf("the host it is for: %d %s", got.Status, got.Body)
	}
	for _, body := range []object{{"expiresIn": "10s"}, {"expiresIn": "8d"}, {"expiresIn": "soon"}, {"hostname": "a b"}, {"expiresIn": 60}} {
		answer := e.Call(t, "POST", fmt.Sprintf("/sites/%d/enrollments", e.site), body)
		if fault := servertest.Error(t, answer); answer.Status != 422 || len(fault.Fields) != 1 {
			t.Errorf("%v: %d %s", body, answer.Status, answer.Body)
		}
	}
	wantFault(t, e.Call(t, "POST", "/sites/99/enrollments", object{}), 404, "not_found")
	wantFault(t, e.Call(t, "GET", "/sites/99/enrollments", nil), 404, "not_found")

	last := "0"
	if strings.HasSuffix(only.Token, "0") {
		last = "1"
	}
	for _, wrong := range []string{"", "x", e.AdminKey, only.Token[:len(only.Token)-1] + last, strings.ToUpper(only.Token), only.Token + "0", strings.Repeat("x", 10<<10)} {
		wantFault(t, e.enroll(t, wrong, "gateway", nonce), 401, "unauthorized")
	}
	if got := e.Do(t, "GET", "/api/v1/session", nil, http.Header{"X-Api-Key": {revoked.Token}}); got.Status != 401 {
		t.Errorf("a token is taken for a key: %d", got.Status)
	}
}

func TestWrongTokensAreLimitedAndRightOnesAreNot(t *testing.T) {
	e := newEnrolling(t)
	made := e.token(t, object{})
	refused := 0
	for range 150 {
		if answer := e.enroll(t, "wrong", "gateway", nonce); answer.Status == 429 {
			refused++
			if servertest.Error(t, answer).Code != "too_many_requests" || answer.Header.Get("Retry-After") == "" {
				t.Errorf("%v %s", answer.Header, answer.Body)
			}
		}
	}
	if refused == 0 {
		t.Error("wrong tokens without end")
	}
	if got := e.enroll(t, made.Token, "gateway", nonce); got.Status != 201 {
		t.Errorf("a right one: %d %s", got.Status, got.Body)
	}
}

// TestOneOfManyHostsGetsTheKey: a token is for one of them, however many ask at
// once.
func TestOneOfManyHostsGetsTheKey(t *testing.T) {
	e := newEnrolling(t)
	made := e.token(t, object{})
	var mu sync.Mutex
	var running sync.WaitGroup
	statuses := map[int]int{}
	for n := range 20 {
		running.Go(func() {
			answer := e.enroll(t, made.Token, fmt.Sprint("host", n), strings.Repeat(fmt.Sprint(n%10), 40))
			mu.Lock()
			defer mu.Unlock()
			statuses[answer.Status]++
		})
	}
	running.Wait()
	if statuses[201] != 1 || statuses[409] != 19 {
		t.Errorf("%v", statuses)
	}
	keys, _, err := e.Store.ListAPIKeys(t.Context(), store.APIKeyFilter{Role: "agent"}, store.ListOptions{})
	if err != nil || len(keys) != 1 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

// TestSameHostMayAskAgain: the answer may be lost on the way. The lost key is
// worth nothing.
func TestSameHostMayAskAgain(t *testing.T) {
	e := newEnrolling(t)
	made := e.token(t, object{})
	lost := servertest.Data[enrolled](t, e.enroll(t, made.Token, "gateway", nonce))
	got := servertest.Data[enrolled](t, e.enroll(t, made.Token, "gateway", nonce))
	if got.Key == lost.Key {
		t.Fatal("keys are kept")
	}
	if a, b := e.checkIn(t, lost.Key, "gateway").Status, e.checkIn(t, got.Key, "gateway").Status; a != 401 || b != 200 {
		t.Errorf("the lost key: %d, the new one: %d", a, b)
	}
	wantFault(t, e.enroll(t, made.Token, "gateway", "another"+nonce), 409, "enrollment_used")
}

func TestEnrollingAgainEndsTheFormerKey(t *testing.T) {
	e := newEnrolling(t)
	former := servertest.Data[enrolled](t, e.enroll(t, e.token(t, object{}).Token, "gateway", nonce))
	other := servertest.Data[enrolled](t, e.enroll(t, e.token(t, object{}).Token, "other", nonce))
	now := servertest.Data[enrolled](t, e.enroll(t, e.token(t, object{}).Token, "gateway", nonce))
	for host, key := range map[string]string{"gateway": now.Key, "other": other.Key} {
		if got := e.checkIn(t, key, host); got.Status != 200 {
			t.Errorf("%s: %d %s", host, got.Status, got.Body)
		}
	}
	if got := e.checkIn(t, former.Key, "gateway"); got.Status != 200 {
		t.Errorf("a pass that was under way: %d", got.Status)
	}
	keys, _, err := e.Store.ListAPIKeys(t.Context(), store.APIKeyFilter{Hostname: "gateway"}, store.ListOptions{})
	if err != nil || len(keys) != 2 || keys[0].ExpiresAt == nil || time.Until(*keys[0].ExpiresAt) > 5*time.Minute || keys[1].ExpiresAt != nil {
		t.Errorf("%+v, %v", keys, err)
	}
}

func TestRotatedKeyOverTheAPI(t *testing.T) {
	e := newEnrolling(t)
	host := servertest.Data[enrolled](t, e.enroll(t, e.token(t, object{}).Token, "gateway", nonce))
	keys, _, err := e.Store.ListAPIKeys(t.Context(), store.APIKeyFilter{Hostname: "gateway"}, store.ListOptions{})
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	path := fmt.Sprintf("/api-keys/%d", keys[0].ID)
	for _, bad := range []object{{"overlap": "31d"}, {"overlap": "-1h"}, {"overlap": "x"}, {"overlap": 5}} {
		wantFault(t, e.Call(t, "POST", path+"/rotate", bad), 422, "validation_failed")
	}
	next := servertest.Data[struct {
		Key, Hostname string
		ID            int64
	}](t, e.Call(t, "POST", path+"/rotate", nil))
	if next.Hostname != "gateway" || next.Key == host.Key {
		t.Errorf("%+v", next)
	}
	for name, key := range map[string]string{"old": host.Key, "new": next.Key} {
		if got := e.checkIn(t, key, "gateway"); got.Status != 200 {
			t.Errorf("the %s key: %d", name, got.Status)
		}
		wantFault(t, e.checkIn(t, key, "other"), 403, "wrong_host")
	}
	if got := e.Call(t, "POST", path+"/rotate", object{"overlap": "0s"}); got.Status != 201 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := e.checkIn(t, host.Key, "gateway"); got.Status != 401 {
		t.Errorf("without overlap: %d", got.Status)
	}
	wantFault(t, e.Call(t, "POST", path+"/rotate", object{}), 409, "conflict")
}

func TestExpiryOfKeys(t *testing.T) {
	e := newEnrolling(t)
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for _, bad := range []any{time.Now().Add(-time.Hour), "tomorrow", 5} {
		answer := e.Call(t, "POST", "/api-keys", object{"name": "k", "role": "viewer", "expiresAt": bad})
		if fault := servertest.Error(t, answer); answer.Status != 422 || fault.Fields["expiresAt"] == "" {
			t.Errorf("%v: %d %s", bad, answer.Status, answer.Body)
		}
	}
	made := servertest.Data[struct {
		ID        int64
		ExpiresAt time.Time
	}](t, e.Call(t, "POST", "/api-keys", object{"name": "k", "role": "viewer", "expiresAt": soon}))
	if !made.ExpiresAt.Equal(soon) {
		t.Errorf("%v", made)
	}
	path := fmt.Sprintf("/api-keys/%d", made.ID)
	changed := servertest.Data[object](t, e.Call(t, "PATCH", path, object{"name": "renamed"}))
	if changed["name"] != "renamed" || changed["expiresAt"] == nil {
		t.Errorf("%v", changed)
	}
	if changed := servertest.Data[object](t, e.Call(t, "PATCH", path, object{"expiresAt": nil})); changed["expiresAt"] != nil || changed["name"] != "renamed" {
		t.Errorf("%v", changed)
	}
	wantFault(t, e.Call(t, "PATCH", path, object{"name": ""}), 422, "validation_failed")
	wantFault(t, e.Call(t, "PATCH", path, object{"role": "admin"}), 422, "validation_failed")
	wantFault(t, e.Call(t, "PATCH", "/api-keys/99", object{}), 404, "not_found")
}
