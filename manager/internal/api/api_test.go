package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/store/storetest"
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
		// Names are found as people write them, whatever form they are kept in.
		fmt.Sprintf("/sites/%d/containers?hostname=WEB&owner=Alice", i.site): 1, fmt.Sprintf("/sites/%d/nodes?name=PVE1", i.site): 1,
		"/external-domains?name=Example.COM.": 1, "/sites?name=LAB": 1,
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
	for _, path := range []string{"/api", "/api/", "/api/v1", "/api/v1/", "/api/v1/nope", "/api/v2/sites", "/api/v1/sites/"} {
		answer := s.Do(t, "GET", path, nil, http.Header{"X-Api-Key": {s.AdminKey}})
		if fault := servertest.Error(t, answer); answer.Status != 404 || fault.Code != "not_found" {
			t.Errorf("GET %s: %d %s", path, answer.Status, answer.Body)
		}
	}
	for _, id := range []string{"abc", "0", "-1", "1.5", "99999999999999999999", "%00", "1%2f2"} {
		if answer := s.Call(t, "GET", "/sites/"+id, nil); answer.Status != 404 {
			t.Errorf("GET /sites/%s: %d %s", id, answer.Status, answer.Body)
		}
	}
}

// everyOperation lists method and path of all that is described.
// breakDatabase takes away what nearly every request needs.
func breakDatabase(t *testing.T, s *servertest.Server) {
	t.Helper()
	db := storetest.Raw(t, s.Database)
	for _, table := range []string{"goose_db_version", "sites", "agents"} {
		if _, err := db.Exec("ALTER TABLE " + table + " RENAME TO gone_" + table); err != nil {
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

// That the manager lives does not depend on its database, that it is ready
// does. A cookie changes nothing about it: sessions are in the database.
func TestLivenessAndReadiness(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := http.Header{"Cookie": {"opensource_manager_session=stale"}}
	ok := object{"read": "ok", "write": "ok", "schema": "ok", "changes": "ok"}
	if diff := cmp.Diff(object{"ready": true, "checks": ok}, servertest.Data[object](t, s.Do(t, "GET", "/api/v1/health/ready", nil, nil))); diff != "" {
		t.Error(diff)
	}
	breakDatabase(t, s)
	ready := s.Do(t, "GET", "/api/v1/health/ready", nil, nil)
	if ready.Status != 503 || !strings.Contains(string(ready.Body), `{"ready":false,"checks":{"read":"failed","write":"ok","schema":"failed","changes":"ok"}}`) {
		t.Errorf("ready: %d %s", ready.Status, ready.Body)
	}
	if !strings.Contains(s.Log.String(), `msg="not ready" check=read`) {
		t.Error("the log does not say why")
	}
	if err := s.Store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "HEAD"} {
		live := s.Do(t, method, "/api/v1/health/live", nil, cookie)
		if live.Status != 200 || live.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("live without a database: %d %s", live.Status, live.Body)
		}
	}
	if got := servertest.Data[object](t, s.Do(t, "GET", "/api/v1/health/live", nil, cookie)); got["live"] != true {
		t.Errorf("%v", got)
	}
	ready = s.Do(t, "GET", "/api/v1/health/ready", nil, nil)
	if ready.Status != 503 || !strings.Contains(string(ready.Body), `"changes":"failed"`) {
		t.Errorf("ready without a database: %d %s", ready.Status, ready.Body)
	}
}

func TestHealth(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	health := servertest.Data[object](t, s.Do(t, "GET", "/api/v1/health", nil, nil))
	schema, err := s.Store.SchemaVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object{"live": true, "ready": true, "schemaVersion": float64(schema), "publicUrlMismatch": nil}, health); diff != "" {
		t.Error(diff)
	}
}
