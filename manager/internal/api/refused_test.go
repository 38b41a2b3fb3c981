package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/servertest"
)

func TestRefusedServiceLeavesTheSnapshot(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	tag := func() string {
		t.Helper()
		answer := s.Call(t, "GET", fmt.Sprintf("/sites/%d/snapshot", i.site), nil)
		if answer.Status != 200 || answer.Header.Get("ETag") == "" {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		return answer.Header.Get("ETag")
	}
	before := tag()
	taken := servertest.Data[object](t, s.Call(t, "GET", fmt.Sprintf("/services/%d", i.transport), nil))["externalPort"]
	services := fmt.Sprintf("/containers/%d/services", i.container)
	for _, body := range []object{
		{"type": "transport", "internalPort": 22, "protocol": "tcp", "externalPort": taken},
		{"type": "transport", "internalPort": 22, "protocol": "tcp", "externalPort": 443},
		{"type": "transport", "internalPort": 22, "protocol": "tcp", "externalPort": 65536},
		{"type": "transport", "internalPort": 22, "protocol": "sctp"},
		{"type": "transport", "internalPort": 0, "protocol": "udp"},
		{"type": "transport", "internalPort": 22, "protocol": "tcp", "externalHostname": "app"},
	} {
		if answer := s.Call(t, "POST", services, body); answer.Status != 409 && answer.Status != 422 {
			t.Errorf("%v: %d %s", body, answer.Status, answer.Body)
		}
		if answer := s.Call(t, "PATCH", fmt.Sprintf("/services/%d", i.transport), `{"externalPort":80}`); answer.Status != 422 {
			t.Errorf("PATCH: %d %s", answer.Status, answer.Body)
		}
		if after := tag(); after != before {
			t.Errorf("%v: the snapshot has changed", body)
		}
	}
	s.Create(t, services, object{"type": "transport", "internalPort": 22, "protocol": "udp"})
	if tag() == before {
		t.Error("a service that was taken is not in the snapshot")
	}
}

func TestDeletedServiceFreesItsName(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	other := s.Create(t, fmt.Sprintf("/sites/%d/containers", i.site), object{"nodeId": i.node, "hostname": "other"})
	again := func() servertest.Answer {
		t.Helper()
		return s.Call(t, "POST", fmt.Sprintf("/containers/%d/services", other), object{
			"type": "http", "internalPort": 80, "externalHostname": "app", "externalDomainId": i.domain,
		})
	}
	domain := func() servertest.Answer {
		t.Helper()
		return s.Call(t, "POST", "/external-domains", object{"name": "app.example.com"})
	}
	for _, answer := range []servertest.Answer{again(), domain()} {
		if answer.Status != 409 {
			t.Errorf("in use: %d %s", answer.Status, answer.Body)
		}
	}
	if answer := s.Call(t, "DELETE", fmt.Sprintf("/services/%d", i.http), nil); answer.Status != 204 {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	taken := again()
	if taken.Status != 201 {
		t.Fatalf("for a service: %d %s", taken.Status, taken.Body)
	}
	s.Call(t, "DELETE", fmt.Sprintf("/services/%v", servertest.Data[object](t, taken)["id"]), nil)
	if answer := domain(); answer.Status != 201 {
		t.Errorf("for a domain: %d %s", answer.Status, answer.Body)
	}
}

func TestWrongModesOfAVolume(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	path := fmt.Sprintf("/volumes/%d", fill(t, s).volume)
	before := servertest.Data[object](t, s.Call(t, "GET", path, nil))
	for _, mode := range []string{
		`"0755"`, `"755"`, `"493"`, `"0o755"`, `"0x1ed"`, `"RW"`, `"Ro"`, `"rwx"`, `"rwxr-xr-x"`, `" rw"`, `"rw "`, `"rw\n"`, `"r"`, `"w"`, `"rw,ro"`, `""`,
		`755`, `0`, `-1`, `4.5`, `1e3`, `true`, `null`, `["rw"]`, `{"rw":true}`,
	} {
		answer := s.Call(t, "PATCH", path, `{"mode":`+mode+`,"mountPath":"/else"}`)
		if fault := servertest.Error(t, answer); answer.Status != 422 || fault.Fields["mode"] == "" {
			t.Errorf("%s: %d %s", mode, answer.Status, answer.Body)
		}
	}
	if diff := cmp.Diff(before, servertest.Data[object](t, s.Call(t, "GET", path, nil))); diff != "" {
		t.Error(diff)
	}
}

// TestKeysAreRefusedAlike: nobody learns from an answer which keys there are.
func TestKeysAreRefusedAlike(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	key := s.Key(t, auth.NewKey{Name: "a", Role: auth.RoleAgent, SiteID: i.site})
	revoked := servertest.Data[object](t, s.Call(t, "POST", "/api-keys", object{"name": "gone", "role": "admin"}))
	s.Call(t, "DELETE", fmt.Sprintf("/api-keys/%v", revoked["id"]), nil)
	prefix, secret, _ := strings.Cut(strings.TrimPrefix(key, "osk_"), "_")
	keys := map[string]string{
		"unknown":       "osk_" + strings.Repeat("0", len(prefix)) + "_" + secret,
		"wrong":         "osk_" + prefix + "_" + strings.Repeat("0", len(secret)),
		"cut":           key[:len(key)-1],
		"only a prefix": "osk_" + prefix,
		"revoked":       revoked["key"].(string),
		"junk":          "junk",
		"empty":         "",
	}
	for _, request := range []struct{ method, path, body string }{
		{"GET", "/api/v1/sites", ""},
		{"PATCH", "/api/v1/sites/999", `{"name":"a"}`},
		{"POST", "/api/v1/agents", fmt.Sprintf(`{"siteId":%d,"hostname":"agent"}`, i.site)},
		{"POST", "/api/v1/agents", `{"siteId":999,"hostname":"agent"}`},
	} {
		var first *servertest.Answer
		for name, key := range keys {
			for _, header := range []http.Header{{"X-Api-Key": {key}}, {"Authorization": {"Bearer " + key}}} {
				answer := s.Do(t, request.method, request.path, request.body, header)
				answer.Header.Del("Date")
				answer.Header.Del("X-Request-Id")
				if first == nil {
					first = &answer
				}
				if diff := cmp.Diff(*first, answer); diff != "" || answer.Status != 401 {
					t.Errorf("%s %s with the key that is %s: %d\n%s", request.method, request.path, name, answer.Status, diff)
				}
			}
		}
	}
}
