package api_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/servertest"
)

type object = map[string]any

// inventory is a site with one record of every kind.
type inventory struct {
	site, node, container, domain, http, transport, dns, volume int64
}

func fill(t *testing.T, s *servertest.Server) inventory {
	t.Helper()
	var i inventory
	i.site = s.Create(t, "/sites", object{
		"name": "lab", "internalDomain": "lab.internal", "dhcpRange": "198.51.100.100,198.51.100.200",
		"subnetMask": "255.255.255.0", "gateway": "198.51.100.1", "dnsForwarders": "9.9.9.9",
	})
	i.node = s.Create(t, fmt.Sprintf("/sites/%d/nodes", i.site), object{"name": "pve1", "ipv4Address": "198.51.100.10"})
	i.container = s.Create(t, fmt.Sprintf("/sites/%d/containers", i.site), object{
		"nodeId": i.node, "hostname": "web", "owner": "alice",
		"ipv4Address": "198.51.100.101", "macAddress": "02:00:00:00:00:01",
	})
	i.domain = s.Create(t, "/external-domains", object{"name": "example.com", "defaultSiteId": i.site})
	services := fmt.Sprintf("/containers/%d/services", i.container)
	i.http = s.Create(t, services, object{"type": "http", "internalPort": 8080, "externalHostname": "app", "externalDomainId": i.domain})
	i.transport = s.Create(t, services, object{"type": "transport", "internalPort": 22, "protocol": "tcp"})
	i.dns = s.Create(t, services, object{"type": "dns", "internalPort": 5060, "recordType": "SRV", "dnsName": "_sip._tcp"})
	i.volume = s.Create(t, fmt.Sprintf("/containers/%d/volumes", i.container), object{"name": "data", "mountPath": "/data", "mode": "rw"})
	return i
}

func (i inventory) records() map[string]int64 {
	return map[string]int64{
		"sites": i.site, "nodes": i.node, "containers": i.container, "external-domains": i.domain,
		"services": i.http, "volumes": i.volume,
	}
}

func TestEveryRecordIsShownListedAndDeleted(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)

	for collection, id := range i.records() {
		path := fmt.Sprintf("/%s/%d", collection, id)
		record := servertest.Data[object](t, s.Call(t, "GET", path, nil))
		if record["id"] != float64(id) {
			t.Errorf("GET %s: %v", path, record)
		}
		for _, name := range []string{"createdAt", "updatedAt"} {
			if at, _ := record[name].(string); !strings.HasSuffix(at, "Z") {
				t.Errorf("GET %s: %s %q is not in UTC", path, name, at)
			}
		}
		if missing := s.Call(t, "GET", fmt.Sprintf("/%s/%d", collection, 999), nil); missing.Status != 404 {
			t.Errorf("GET %s/999: status %d", collection, missing.Status)
		}
	}
	for path, want := range map[string]int{
		"/sites": 1, fmt.Sprintf("/sites/%d/nodes", i.site): 1, fmt.Sprintf("/sites/%d/containers", i.site): 1,
		fmt.Sprintf("/containers/%d/services", i.container): 3, fmt.Sprintf("/containers/%d/services?type=dns", i.container): 1,
		fmt.Sprintf("/containers/%d/volumes", i.container): 1, fmt.Sprintf("/containers/%d/volumes?status=ready", i.container): 0,
		"/external-domains": 1, "/external-domains?name=other.test": 0, "/agents": 0, "/users": 0, "/api-keys": 1,
		fmt.Sprintf("/sites/%d/containers?hostname=web&owner=alice&nodeId=%d", i.site, i.node): 1,
	} {
		if list := servertest.Data[[]object](t, s.Call(t, "GET", path, nil)); len(list) != want {
			t.Errorf("GET %s: %d records, want %d", path, len(list), want)
		}
	}
	for _, path := range []string{"/sites/999/nodes", "/sites/999/containers", "/containers/999/services", "/containers/999/volumes", "/sites/999/snapshot"} {
		if answer := s.Call(t, "GET", path, nil); answer.Status != 404 {
			t.Errorf("GET %s: status %d", path, answer.Status)
		}
	}

	for _, path := range []string{"volumes", "services", "containers", "nodes", "external-domains", "sites"} {
		url := fmt.Sprintf("/%s/%d?cascade=true", path, i.records()[path])
		if path == "volumes" || path == "services" {
			url = strings.TrimSuffix(url, "?cascade=true")
		}
		if answer := s.Call(t, "DELETE", url, nil); answer.Status != 204 || len(answer.Body) > 0 {
			t.Errorf("DELETE %s: status %d %s", url, answer.Status, answer.Body)
		}
		if answer := s.Call(t, "DELETE", url, nil); answer.Status != 404 {
			t.Errorf("second DELETE %s: status %d", url, answer.Status)
		}
	}
}

func TestNewRecordTellsWhereItIs(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	answer := s.Call(t, "POST", "/sites", object{"name": "Lab"})
	if got := answer.Header.Get("Location"); answer.Status != 201 || got != "/api/v1/sites/1" {
		t.Errorf("status %d, Location %q", answer.Status, got)
	}
}

func TestPatchLeavesWhatIsAbsentAndClearsNull(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	path := fmt.Sprintf("/containers/%d", i.container)

	patched := servertest.Data[object](t, s.Call(t, "PATCH", path, object{"owner": "bob"}))
	if patched["owner"] != "bob" || patched["macAddress"] != "02:00:00:00:00:01" || patched["hostname"] != "web" {
		t.Errorf("absent fields did not stay: %v", patched)
	}
	patched = servertest.Data[object](t, s.Call(t, "PATCH", path, `{"macAddress": null}`))
	if patched["macAddress"] != nil || patched["ipv4Address"] != "198.51.100.101" {
		t.Errorf("null did not clear: %v", patched)
	}
	if fault := servertest.Error(t, s.Call(t, "PATCH", path, `{"hostname": null}`)); fault.Fields["hostname"] == "" {
		t.Errorf("a name was cleared: %v", fault)
	}
	if same := servertest.Data[object](t, s.Call(t, "PATCH", path, `{}`)); same["owner"] != "bob" {
		t.Errorf("an empty change changed: %v", same)
	}

	domain := fmt.Sprintf("/external-domains/%d", i.domain)
	if cleared := servertest.Data[object](t, s.Call(t, "PATCH", domain, `{"defaultSiteId": null}`)); cleared["defaultSiteId"] != nil {
		t.Errorf("null did not clear the default site: %v", cleared)
	}
	service := fmt.Sprintf("/services/%d", i.http)
	if secured := servertest.Data[object](t, s.Call(t, "PATCH", service, `{"authRequired": true, "type": "http"}`)); secured["authRequired"] != true {
		t.Errorf("service was not changed: %v", secured)
	}
	if fault := servertest.Error(t, s.Call(t, "PATCH", service, `{"type": "dns"}`)); fault.Fields["type"] == "" {
		t.Errorf("the type of a service was changed: %v", fault)
	}
	for path, change := range map[string]string{
		fmt.Sprintf("/sites/%d", i.site): `{"name": "attic"}`, fmt.Sprintf("/nodes/%d", i.node): `{"type": "none"}`,
		fmt.Sprintf("/volumes/%d", i.volume): `{"mode": "ro"}`,
	} {
		if answer := s.Call(t, "PATCH", path, change); answer.Status != 200 {
			t.Errorf("PATCH %s: %d %s", path, answer.Status, answer.Body)
		}
		if answer := s.Call(t, "PATCH", strings.TrimRight(path, "0123456789")+"999", change); answer.Status != 404 {
			t.Errorf("PATCH of a record that is not there: %d %s", answer.Status, answer.Body)
		}
	}
}

func TestBodiesAreReadStrictly(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	containers, services := fmt.Sprintf("/sites/%d/containers", i.site), fmt.Sprintf("/containers/%d/services", i.container)
	volumes := fmt.Sprintf("/containers/%d/volumes", i.container)

	for _, test := range []struct {
		name, path, body string
		status           int
		field            string
	}{
		{"malformed", "/sites", `{"name":`, 400, ""},
		{"two values", "/sites", `{"name":"a"}{}`, 400, ""},
		{"empty", "/sites", ``, 400, ""},
		{"a list", "/sites", `[]`, 422, "body"},
		{"null", "/sites", `null`, 422, "body"},
		{"required field missing", "/sites", `{}`, 422, "name"},
		{"required field null", "/sites", `{"name":null}`, 422, "name"},
		{"unknown field", "/sites", `{"name":"a","colour":"red"}`, 422, "colour"},
		{"field in other case", "/sites", `{"name":"a","Gateway":"198.51.100.1"}`, 422, "Gateway"},
		{"host path from a client", volumes, `{"name":"b","mountPath":"/b","mode":"rw","hostPath":"/etc"}`, 422, "hostPath"},
		{"number for text", "/sites", `{"name":5}`, 422, "name"},
		{"text for number", services, `{"type":"transport","internalPort":"22","protocol":"tcp"}`, 422, "internalPort"},
		{"boolean for number", containers, `{"nodeId":true,"hostname":"a"}`, 422, "nodeId"},
		{"text for boolean", services, `{"type":"http","internalPort":80,"externalHostname":"b","externalDomainId":1,"authRequired":"true"}`, 422, "authRequired"},
		{"fraction", services, `{"type":"transport","internalPort":22.5,"protocol":"tcp"}`, 422, "internalPort"},
		{"whole number as a fraction", services, `{"type":"transport","internalPort":22.0,"protocol":"tcp"}`, 422, "internalPort"},
		{"huge number", services, `{"type":"transport","internalPort":1e300,"protocol":"tcp"}`, 422, "internalPort"},
		{"number beyond 64 bits", containers, `{"nodeId":99999999999999999999,"hostname":"a"}`, 422, "nodeId"},
		{"reserved port", services, `{"type":"transport","internalPort":22,"protocol":"tcp","externalPort":443}`, 422, "externalPort"},
		{"mode as number", volumes, `{"name":"b","mountPath":"/b","mode":755}`, 422, "mode"},
		{"mode as octal text", volumes, `{"name":"b","mountPath":"/b","mode":"0755"}`, 422, "mode"},
		{"mode in capitals", volumes, `{"name":"b","mountPath":"/b","mode":"RW"}`, 422, "mode"},
		{"underscore in a name", containers, fmt.Sprintf(`{"nodeId":%d,"hostname":"web_1"}`, i.node), 422, "hostname"},
		{"injection", services, `{"type":"http","internalPort":80,"externalHostname":"app; return 200 owned; #","externalDomainId":1}`, 422, "externalHostname"},
		{"taken name", containers, fmt.Sprintf(`{"nodeId":%d,"hostname":"WEB"}`, i.node), 409, "hostname"},
		{"taken address", containers, fmt.Sprintf(`{"nodeId":%d,"hostname":"b","ipv4Address":"198.51.100.101"}`, i.node), 409, "ipv4Address"},
		{"taken public name", services, fmt.Sprintf(`{"type":"http","internalPort":80,"externalHostname":"app","externalDomainId":%d}`, i.domain), 409, "externalHostname"},
		{"no such node", containers, `{"nodeId":999,"hostname":"b"}`, 422, "nodeId"},
		{"agent key without site", "/api-keys", `{"name":"k","role":"agent"}`, 422, "siteId"},
		{"agent key of no site", "/api-keys", `{"name":"k","role":"agent","siteId":999}`, 422, "siteId"},
		{"admin key with site", "/api-keys", `{"name":"k","role":"admin","siteId":1}`, 422, "siteId"},
		{"unknown role", "/api-keys", `{"name":"k","role":"root"}`, 422, "role"},
		{"nameless key", "/api-keys", `{"name":" ","role":"admin"}`, 422, "name"},
		{"short password", "/users", `{"name":"u","role":"admin","password":"short"}`, 422, "password"},
		{"agent as a person", "/users", `{"name":"u","role":"agent","password":"long enough to do"}`, 422, "role"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := s.Call(t, "POST", test.path, test.body)
			fault := servertest.Error(t, answer)
			if answer.Status != test.status {
				t.Fatalf("status %d, want %d: %s", answer.Status, test.status, answer.Body)
			}
			if test.field != "" && fault.Fields[test.field] == "" {
				t.Errorf("field %s is not named: %s", test.field, answer.Body)
			}
			for _, leak := range []string{"json:", "unmarshal", "invalid character", "EOF", "SQL", "UNIQUE"} {
				if strings.Contains(string(answer.Body), leak) {
					t.Errorf("answer tells about the inside: %s", answer.Body)
				}
			}
		})
	}
	if list := servertest.Data[[]object](t, s.Call(t, "GET", containers, nil)); len(list) != 1 {
		t.Errorf("a refused request left a record: %v", list)
	}
}

func TestOnlyJSONBodiesAreRead(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for contentType, status := range map[string]int{
		"application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "text/plain": 415,
		"application/json; charset=utf-8": 201,
	} {
		answer := s.Do(t, "POST", "/api/v1/sites", `{"name":"a"}`, http.Header{"X-Api-Key": {s.AdminKey}, "Content-Type": {contentType}})
		if answer.Status != status {
			t.Errorf("%s: status %d, want %d: %s", contentType, answer.Status, status, answer.Body)
		}
	}
	large := s.Call(t, "POST", "/sites", `{"name":"`+strings.Repeat("a", 2<<20)+`"}`)
	if fault := servertest.Error(t, large); large.Status != 413 {
		t.Errorf("2 MiB: status %d %v", large.Status, fault)
	}
}

func TestListsHavePages(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for n := range 7 {
		s.Create(t, "/sites", object{"name": fmt.Sprintf("site-%d", n)})
	}
	var page struct {
		Data []struct{ Name string }
		Meta struct {
			Total         int64
			Limit, Offset int
		}
	}
	answer := s.Call(t, "GET", "/sites?limit=3&offset=1&sort=-name", nil)
	if err := json.Unmarshal(answer.Body, &page); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range page.Data {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"site-5", "site-4", "site-3"}, names); diff != "" {
		t.Error(diff)
	}
	if page.Meta.Total != 7 || page.Meta.Limit != 3 || page.Meta.Offset != 1 {
		t.Errorf("meta %+v", page.Meta)
	}
	if answer := s.Call(t, "GET", "/sites", nil); !strings.Contains(string(answer.Body), `"limit":50`) {
		t.Errorf("default limit: %s", answer.Body)
	}
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=501": "limit", "limit=-1": "limit", "limit=ten": "limit", "offset=-1": "offset",
		"sort=colour": "sort", "sort=name%3BDROP": "sort", "color=red": "color",
	} {
		answer := s.Call(t, "GET", "/sites?"+query, nil)
		if fault := servertest.Error(t, answer); answer.Status != 422 || fault.Fields[field] == "" {
			t.Errorf("%s: status %d %s", query, answer.Status, answer.Body)
		}
	}
}

func TestDeletingWhatIsInUse(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	for _, path := range []string{fmt.Sprintf("/sites/%d", i.site), fmt.Sprintf("/nodes/%d", i.node), fmt.Sprintf("/containers/%d", i.container), fmt.Sprintf("/external-domains/%d", i.domain)} {
		answer := s.Call(t, "DELETE", path, nil)
		if fault := servertest.Error(t, answer); answer.Status != 409 || fault.Code != "in_use" {
			t.Errorf("DELETE %s: %d %s", path, answer.Status, answer.Body)
		}
	}
	if answer := s.Call(t, "DELETE", fmt.Sprintf("/sites/%d?cascade=maybe", i.site), nil); answer.Status != 422 {
		t.Errorf("cascade=maybe: %d %s", answer.Status, answer.Body)
	}
	if answer := s.Call(t, "DELETE", fmt.Sprintf("/sites/%d?cascade=true", i.site), nil); answer.Status != 204 {
		t.Errorf("cascade: %d %s", answer.Status, answer.Body)
	}
	if answer := s.Call(t, "GET", fmt.Sprintf("/services/%d", i.http), nil); answer.Status != 404 {
		t.Errorf("a service outlived its site: %d", answer.Status)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for _, path := range []string{"/api", "/api/", "/api/v1", "/api/v1/", "/api/v1/nope", "/api/v2/sites", "/api/v1/sites/", "/api/v1/docs"} {
		answer := s.Do(t, "GET", path, nil, http.Header{"X-Api-Key": {s.AdminKey}})
		if fault := servertest.Error(t, answer); answer.Status != 404 || fault.Code != "not_found" {
			t.Errorf("GET %s: %d %s", path, answer.Status, answer.Body)
		}
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD"} {
		answer := s.Call(t, method, "/sites", nil)
		if answer.Status != 405 || answer.Header.Get("Allow") == "" {
			t.Errorf("%s /sites: %d Allow %q", method, answer.Status, answer.Header.Get("Allow"))
		}
	}
	for _, id := range []string{"abc", "0", "-1", "1.5", "99999999999999999999", "%00", "1%2f2"} {
		if answer := s.Call(t, "GET", "/sites/"+id, nil); answer.Status != 404 {
			t.Errorf("GET /sites/%s: %d %s", id, answer.Status, answer.Body)
		}
	}
}

// everyOperation lists method and path of all that is described.
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
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	viewer := s.Key(t, auth.NewKey{Name: "v", Role: auth.RoleViewer})
	agent := s.Key(t, auth.NewKey{Name: "a", Role: auth.RoleAgent, SiteID: i.site})
	open := []string{"GET /health", "POST /session", "POST /agents"}
	personal := []string{"GET /session", "DELETE /session"}

	for _, operation := range everyOperation(t, s) {
		name, path := operation[0]+" "+operation[1], "/api/v1"+operation[1]
		if slices.Contains(open, name) {
			continue
		}
		try := func(key string) int {
			header := http.Header{}
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
		if reading := operation[0] == "GET"; reading && (got == 401 || got == 403) || !reading && got != 403 {
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
	if diff := cmp.Diff(object{"name": "deploy", "role": "viewer", "siteId": nil}, who); diff != "" {
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
	if shown := servertest.Data[object](t, s.Call(t, "GET", fmt.Sprintf("/users/%d", first), nil)); shown["name"] != "ada" || len(shown) != 5 {
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

// breakDatabase takes away what nearly every request needs.
func breakDatabase(t *testing.T, s *servertest.Server) {
	t.Helper()
	db, err := sql.Open("sqlite3", s.Config.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"goose_db_version", "sites", "agents"} {
		if _, err := db.Exec("PRAGMA foreign_keys=off; ALTER TABLE " + table + " RENAME TO gone_" + table); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFaultsOfTheManagerAreNotShown(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	breakDatabase(t, s)
	for _, path := range []string{"/sites", "/agents", "/sites/1"} {
		answer := s.Call(t, "GET", path, nil)
		fault := servertest.Error(t, answer)
		if answer.Status < 500 || strings.Contains(fault.Message, "table") {
			t.Errorf("GET %s: %d %s", path, answer.Status, answer.Body)
		}
		if id := answer.Header.Get("X-Request-Id"); id == "" || !strings.Contains(s.Log.String(), id) {
			t.Errorf("request %q is not in the log", id)
		}
	}
	health := s.Do(t, "GET", "/api/v1/health", nil, nil)
	if health.Status != 503 || !strings.Contains(string(health.Body), `"ready":false`) {
		t.Errorf("health: %d %s", health.Status, health.Body)
	}
}

func TestHealth(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	health := servertest.Data[object](t, s.Do(t, "GET", "/api/v1/health", nil, nil))
	if diff := cmp.Diff(object{"live": true, "ready": true, "schemaVersion": float64(1), "publicUrlMismatch": nil}, health); diff != "" {
		t.Error(diff)
	}
}
