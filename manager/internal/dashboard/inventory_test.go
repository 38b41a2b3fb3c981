package dashboard_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/servertest"
)

// inventory is a manager with one record of each kind, all of which have id 1,
// but for services: 1 in the web, 2 a port, 3 an SRV record.
func inventory(t *testing.T) (s *servertest.Server, cookie string) {
	t.Helper()
	s = servertest.Start(t, servertest.Options{})
	s.Create(t, "/sites", object{"name": "lab", "internalDomain": "lab.internal", "externalIp": "203.0.113.10"})
	s.Create(t, "/sites/1/nodes", object{"name": "pve1", "ipv4Address": "192.0.2.10", "type": "proxmox"})
	s.Create(t, "/sites/1/containers", object{
		"nodeId": 1, "hostname": "web", "ipv4Address": "192.0.2.101", "macAddress": "02:00:00:00:00:01", "owner": "alice",
	})
	s.Create(t, "/external-domains", object{"name": "example.com", "defaultSiteId": 1})
	s.Create(t, "/containers/1/services", object{"type": "http", "internalPort": 8080, "externalHostname": "app", "externalDomainId": 1})
	s.Create(t, "/containers/1/services", object{"type": "transport", "internalPort": 22, "protocol": "tcp"})
	s.Create(t, "/containers/1/services", object{"type": "dns", "internalPort": 5060, "dnsName": "_sip._tcp"})
	s.Create(t, "/containers/1/volumes", object{"name": "data", "mountPath": "/var/lib/data", "mode": "rw"})
	return s, signIn(t, s)
}

// then is the page that a form has led to, with what it says was done.
func then(t *testing.T, s *servertest.Server, cookie string, sent servertest.Answer) servertest.Answer {
	t.Helper()
	if sent.Status != 303 {
		t.Fatalf("%d %s", sent.Status, sent.Body)
	}
	done, _, _ := strings.Cut(sent.Header.Get("Set-Cookie"), ";")
	return get(t, s, sent.Header.Get("Location"), cookie+"; "+done)
}

// TestAWebServiceInFewSteps leads from a site without anything to a service that
// is served, along the buttons.
func TestAWebServiceInFewSteps(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	s.Create(t, "/sites", object{"name": "lab"})
	shows(t, get(t, s, "/sites/1/containers", cookie), 200, "This site has no container yet", `href="/sites/1/containers/new"`)
	shows(t, get(t, s, "/sites/1/containers/new", cookie), 200, "this site has none yet", `href="/sites/1/nodes/new?then=%2Fsites%2F1%2Fcontainers%2Fnew"`)
	sent := submit(t, s, "/sites/1/nodes/new?then=%2Fsites%2F1%2Fcontainers%2Fnew", cookie, url.Values{"name": {"pve1"}, "type": {"proxmox"}})
	shows(t, then(t, s, cookie, sent), 200, `The node "pve1" was created.`, `href="/sites/1/revisions"`, "<h1>New container</h1>", `>pve1</option>`)
	sent = submit(t, s, "/sites/1/containers/new", cookie, url.Values{
		"nodeId": {"1"}, "hostname": {"WEB"}, "ipv4Address": {"192.0.2.101"}, "macAddress": {"02-00-00-00-00-0A"},
	})
	shows(t, then(t, s, cookie, sent), 200, `The container "web" was created.`, "02:00:00:00:00:0a", `href="/containers/1/services/new"`)
	shows(t, get(t, s, "/containers/1/services/new", cookie), 200, "there is none yet", `href="/domains/new?then=%2Fcontainers%2F1%2Fservices%2Fnew"`)
	sent = submit(t, s, "/domains/new?then=%2Fcontainers%2F1%2Fservices%2Fnew", cookie, url.Values{"name": {"bücher.example"}})
	shows(t, then(t, s, cookie, sent), 200, "The domain bücher.example (xn--bcher-kva.example) was created.", `<option value="1" selected>`)
	sent = submit(t, s, "/containers/1/services/new", cookie, url.Values{"externalHostname": {"app"}, "externalDomainId": {"1"}, "internalPort": {"8080"}, "backendProtocol": {"http"}})
	shows(t, then(t, s, cookie, sent), 200, "The service was added: Web https://app.xn--bcher-kva.example.", `data-copy="service-1-address"`)
	for i, elsewhere := range []string{"//evil.example", "https://evil.example", "/\\evil.example"} {
		sent = submit(t, s, "/sites/1/nodes/new?"+url.Values{"then": {elsewhere}}.Encode(), cookie, url.Values{"name": {fmt.Sprintf("n%d", i)}, "type": {"none"}})
		if location := sent.Header.Get("Location"); !strings.HasPrefix(location, "/nodes/") {
			t.Errorf("%s leads to %q", elsewhere, location)
		}
	}
}

// TestWhatIsAllocatedIsShown with buttons that copy it.
func TestWhatIsAllocatedIsShown(t *testing.T) {
	s, cookie := inventory(t)
	sent := submit(t, s, "/containers/1/services/new?type=transport", cookie, url.Values{"protocol": {"tcp"}, "internalPort": {"5432"}})
	shows(t, then(t, s, cookie, sent), 200, "The service was added: TCP 203.0.113.10:2001.", `id="service-2-address">203.0.113.10:2000<`)
	shows(t, get(t, s, "/services/2", cookie), 200, `id="reached">203.0.113.10:2000<`, `data-copy="reached"`)
	shows(t, get(t, s, "/services/3", cookie), 200, "_sip._tcp.lab.internal")
	sent = submit(t, s, "/containers/1/services/new?type=dns", cookie, url.Values{"dnsName": {"_xmpp._tcp"}, "internalPort": {"5222"}})
	shows(t, then(t, s, cookie, sent), 200, "SRV _xmpp._tcp.lab.internal")
	sent = submit(t, s, "/containers/1/volumes/new", cookie, url.Values{"name": {"Logs"}, "mountPath": {"/logs"}, "mode": {"ro"}})
	shows(t, then(t, s, cookie, sent), 200, "waits for the agent", `id="path">/mnt/volumes/site-1/alice/web/logs<`, `pct set CTID -mp0 /mnt/volumes/site-1/alice/web/logs,mp=/logs,ro=1`)
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: "gateway", Services: map[string]checkin.ServiceReport{}, Volumes: map[string]checkin.VolumeReport{
		"1": {Applied: true}, "2": {Applied: false, Message: "mkdir <b>/mnt</b>: permission denied"},
	}})
	shows(t, get(t, s, "/containers/1", cookie), 200, `<span class="badge good">ready</span>`, `<span class="badge bad">failed</span>`, "mkdir <b>/mnt</b>: permission denied")
	shows(t, get(t, s, "/volumes/2", cookie), 200, "mkdir <b>/mnt</b>: permission denied")
}

// TestWhatAgentsRefuseIsShownAtTheService, and only there: other kinds of record
// have ids of their own.
func TestWhatAgentsRefuseIsShownAtTheService(t *testing.T) {
	s, cookie := inventory(t)
	wantOn(t, string(get(t, s, "/containers/1", cookie).Body), nil, []string{`data-label="Agent"`})
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: "gateway", Services: map[string]checkin.ServiceReport{
		"nginx": {State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeApplied, Quarantined: []checkin.QuarantinedItem{
			{Kind: checkin.KindHTTP, ID: 1, Name: "app.example.com", Reason: "host not found in <b>upstream</b>", KeptPrevious: true},
			{Kind: checkin.KindDomain, ID: 2, Name: "example.com", Reason: "not about a service"},
		}},
		"dnsmasq": {State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeApplied, Quarantined: []checkin.QuarantinedItem{{Kind: checkin.KindSRV, ID: 3, Name: "_sip._tcp", Reason: "bad target"}}},
	}})
	container := get(t, s, "/containers/1", cookie)
	shows(t, container, 200, "The previous version is kept by gateway", "host not found in <b>upstream</b>", "Left out by gateway", "bad target")
	wantOn(t, string(container.Body), nil, []string{"not about a service", "<b>upstream"})
	shows(t, get(t, s, "/services/1", cookie), 200, "The previous version is kept by gateway, which says:")
	wantOn(t, string(get(t, s, "/services/2", cookie).Body), nil, []string{"which says"})
}

func TestEveryFaultStandsAtItsField(t *testing.T) {
	s, cookie := inventory(t)
	s.Create(t, "/sites/1/containers", object{"nodeId": 1, "hostname": "db", "ipv4Address": "192.0.2.102", "macAddress": "02:00:00:00:00:02"})
	long := strings.Repeat("long-label.", 22) // 242 characters
	for name, test := range map[string]struct {
		path   string
		typed  url.Values
		status int
		field  string
		fault  string
	}{
		"node without a name":     {"/sites/1/nodes/new", url.Values{"type": {"none"}}, 422, "name", "is required"},
		"node as a container":     {"/sites/1/nodes/new", url.Values{"type": {"none"}, "name": {"web"}}, 409, "name", `the name "web" is already in use in this site`},
		"node with markup":        {"/nodes/1/edit", url.Values{"type": {"none"}, "name": {`<img src=x onerror=alert(1)>`}}, 422, "name", "img src=x"},
		"node of no type":         {"/nodes/1/edit", url.Values{"type": {"vmware"}, "name": {"pve1"}}, 422, "type", "is not a type of node"},
		"container as a node":     {"/sites/1/containers/new", url.Values{"nodeId": {"1"}, "hostname": {"PVE1"}}, 409, "hostname", `the name "pve1" is already in use`},
		"taken address":           {"/sites/1/containers/new", url.Values{"nodeId": {"1"}, "hostname": {"new"}, "ipv4Address": {"192.0.2.10"}}, 409, "ipv4Address", "192.0.2.10 is already in use"},
		"taken MAC":               {"/containers/2/edit", url.Values{"nodeId": {"1"}, "hostname": {"db"}, "macAddress": {"02:00:00:00:00:01"}}, 409, "macAddress", "02:00:00:00:00:01 is already in use"},
		"bad MAC":                 {"/containers/2/edit", url.Values{"nodeId": {"1"}, "hostname": {"db"}, "macAddress": {"02"}}, 422, "macAddress", "02"},
		"no node":                 {"/sites/1/containers/new", url.Values{"nodeId": {""}, "hostname": {"new"}}, 422, "nodeId", "is required"},
		"a node that is gone":     {"/sites/1/containers/new", url.Values{"nodeId": {"77"}, "hostname": {"new"}}, 422, "nodeId", "there is no node 77"},
		"a node that is no id":    {"/sites/1/containers/new", url.Values{"nodeId": {"x"}, "hostname": {"new"}}, 422, "nodeId", "is not a whole number"},
		"taken name in the web":   {"/containers/2/services/new?type=http", url.Values{"externalHostname": {"app"}, "externalDomainId": {"1"}, "internalPort": {"80"}}, 409, "externalHostname", "app.example.com is already in use"},
		"name too long":           {"/containers/2/services/new?type=http", url.Values{"externalHostname": {long + "label"}, "externalDomainId": {"1"}, "internalPort": {"80"}}, 422, "externalHostname", "more than 253"},
		"port that is none":       {"/services/1/edit", url.Values{"externalHostname": {"app"}, "externalDomainId": {"1"}, "internalPort": {"http"}}, 422, "internalPort", `"http" is not a whole number`},
		"port too high":           {"/services/1/edit", url.Values{"externalHostname": {"app"}, "externalDomainId": {"1"}, "internalPort": {"65536"}}, 422, "internalPort", "65536"},
		"domain that is none":     {"/services/1/edit", url.Values{"externalHostname": {"app"}, "externalDomainId": {""}, "internalPort": {"80"}}, 422, "externalDomainId", "is required"},
		"taken port":              {"/containers/2/services/new?type=transport", url.Values{"protocol": {"tcp"}, "internalPort": {"22"}, "externalPort": {"2000"}}, 409, "externalPort", "tcp port 2000 is already in use"},
		"reserved port":           {"/services/2/edit", url.Values{"protocol": {"tcp"}, "internalPort": {"22"}, "externalPort": {"443"}}, 422, "externalPort", "port 443 is reserved"},
		"record that is none":     {"/containers/2/services/new?type=dns", url.Values{"dnsName": {"_sip,_tcp\n"}, "internalPort": {"22"}}, 422, "dnsName", "_sip,_tcp"},
		"relative mount":          {"/containers/1/volumes/new", url.Values{"name": {"logs"}, "mountPath": {"logs"}, "mode": {"rw"}}, 422, "mountPath", "logs"},
		"volume with a slash":     {"/containers/1/volumes/new", url.Values{"name": {"../etc"}, "mountPath": {"/logs"}, "mode": {"rw"}}, 422, "name", "../etc"},
		"volume that is there":    {"/containers/1/volumes/new", url.Values{"name": {"data"}, "mountPath": {"/logs"}, "mode": {"rw"}}, 409, "name", `already has a volume "data"`},
		"bad domain":              {"/domains/new", url.Values{"name": {"not a domain"}}, 422, "name", "not a domain"},
		"domain of look-alikes":   {"/domains/new", url.Values{"name": {"exаmple.com"}}, 422, "name", "mixes letters of several scripts"},
		"domain that is there":    {"/domains/new", url.Values{"name": {"Example.COM."}}, 409, "name", "example.com is already in use"},
		"domain of a site gone":   {"/domains/1/edit", url.Values{"name": {"example.com"}, "defaultSiteId": {"9"}}, 422, "defaultSiteId", "there is no site 9"},
		"sign-in server of words": {"/domains/1/edit", url.Values{"name": {"example.com"}, "authServer": {"javascript:alert(1)"}}, 422, "authServer", "javascript"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasSuffix(test.path, "/edit") {
				test.typed.Set("version", form(t, get(t, s, test.path, cookie)).Get("version"))
			}
			refused := submit(t, s, test.path, cookie, test.typed)
			shows(t, refused, test.status, "Nothing was saved", `href="#field-`+test.field+`"`, `id="field-`+test.field+`-fault"`, test.fault)
			if strings.Contains(string(refused.Body), "<img src=x") {
				t.Error("what was typed became markup")
			}
			for field, typed := range test.typed {
				if kept := form(t, refused); kept.Has(field) && kept.Get(field) != typed[0] {
					t.Errorf("%s: %q became %q", field, typed[0], kept.Get(field))
				}
			}
		})
	}
}

func TestWhatChangedIsSaidAndUndoneByRevisions(t *testing.T) {
	s, cookie := inventory(t)
	edit := func(path string, values url.Values) servertest.Answer {
		mine := form(t, get(t, s, path, cookie))
		for name, value := range values {
			mine[name] = value
		}
		return then(t, s, cookie, submit(t, s, path, cookie, mine))
	}
	shows(t, edit("/nodes/1/edit", url.Values{"type": {"none"}, "ipv4Address": {"192.0.2.11"}}), 200,
		"The node was saved. IPv4 address: 192.0.2.11 (was: 192.0.2.10); Type: Another host (was: Proxmox VE host).", `href="/sites/1/revisions"`)
	shows(t, edit("/containers/1/edit", url.Values{"nodeId": {"1"}, "owner": {""}}), 200, "The container was saved. Owner: not set (was: alice).")
	shows(t, edit("/services/1/edit", url.Values{"externalDomainId": {"1"}, "backendProtocol": {"https"}, "authRequired": {"on"}}), 200,
		"The container speaks: HTTPS (was: HTTP); Only for people who have signed in: yes (was: no).")
	shows(t, edit("/volumes/1/edit", url.Values{"mode": {"ro"}}), 200, "Mode: Only read (was: Read and write)")
	shows(t, edit("/domains/1/edit", url.Values{"defaultSiteId": {""}, "name": {"example.net"}}), 200,
		"The domain was saved. Name: example.net (was: example.com); Site: None of its own (was: lab).", `href="/sites/1/revisions"`)
	same := edit("/volumes/1/edit", url.Values{"mode": {"ro"}})
	shows(t, same, 200, "Nothing was changed of the volume.")
	wantOn(t, string(same.Body), nil, []string{"/sites/1/revisions"})
	shows(t, edit("/sites/1/edit", url.Values{"publishing": {"manual"}, "gateway": {"192.0.2.1"}}), 200, "The site was saved. Gateway: 192.0.2.1 (was: not set); Publishing: Changes wait until they are published", `href="/sites/1/pending"`)
	shows(t, edit("/nodes/1/edit", url.Values{"type": {"none"}, "ipv4Address": {""}}), 200, "IPv4 address: not set (was: 192.0.2.11)", "Agents do not get it yet", `href="/sites/1/pending"`)
}

func TestEveryEditorIsToldOfAnother(t *testing.T) {
	s, cookie := inventory(t)
	for _, test := range []struct {
		page, record, field, typed string
		other                      object
		told                       string
		choices                    url.Values
	}{
		{"/nodes/1/edit", "/nodes/1", "name", "mine", object{"ipv4Address": "192.0.2.77"}, `IPv4 address</a>: 192.0.2.77`, url.Values{"type": {"proxmox"}}},
		{"/containers/1/edit", "/containers/1", "hostname", "mine-too", object{"owner": "bob"}, `Owner</a>: bob`, url.Values{"nodeId": {"1"}}},
		{"/services/1/edit", "/services/1", "externalHostname", "mine", object{"authRequired": true}, `signed in</a>: yes`, url.Values{"externalDomainId": {"1"}, "backendProtocol": {"http"}}},
		{"/services/2/edit", "/services/2", "internalPort", "23", object{"externalPort": 2500}, `External port</a>: 2500`, url.Values{"protocol": {"tcp"}}},
		{"/volumes/1/edit", "/volumes/1", "mountPath", "/mine", object{"mode": "ro"}, `Mode</a>: Only read`, url.Values{"mode": {"rw"}}},
		{"/domains/1/edit", "/external-domains/1", "name", "mine.example", object{"authServer": "http://192.0.2.20:4180"}, `Sign-in server</a>: http://192.0.2.20:4180`, url.Values{"defaultSiteId": {"1"}}},
	} {
		mine := form(t, get(t, s, test.page, cookie))
		for name, value := range test.choices {
			mine[name] = value
		}
		mine.Set(test.field, test.typed)
		if answer := s.Call(t, "PATCH", test.record, test.other); answer.Status != 200 {
			t.Fatal(answer.Status)
		}
		late := submit(t, s, test.page, cookie, mine)
		shows(t, late, 409, "Changed by somebody else meanwhile", test.told, `value="`+test.typed+`"`)
		again := form(t, late)
		for name, value := range test.choices {
			again[name] = value
		}
		if saved := submit(t, s, test.page, cookie, again); saved.Status != 303 {
			t.Errorf("%s: %d %s", test.page, saved.Status, saved.Body)
		}
	}
}

func TestDeletingNamesWhatVanishes(t *testing.T) {
	s, cookie := inventory(t)
	shows(t, get(t, s, "/nodes/1/delete", cookie), 200, "<bdi>web</bdi>", "Web https://app.example.com", "TCP 203.0.113.10:2000", "/mnt/volumes/site-1/alice/web/data", "files in the volumes stay",
		`href="/api/v1/sites/1/manifest"`)
	shows(t, get(t, s, "/containers/1/delete", cookie), 200, "SRV _sip._tcp.lab.internal", "/mnt/volumes/site-1/alice/web/data")
	asked := get(t, s, "/domains/1/delete", cookie)
	shows(t, asked, 200, "<bdi>app.example.com</bdi>")
	s.Create(t, "/containers/1/services", object{"type": "http", "internalPort": 8080, "externalHostname": "late", "externalDomainId": 1})
	shows(t, submit(t, s, "/domains/1/delete", cookie, form(t, asked)), 409, "has changed since you looked", "late.example.com")
	for _, gone := range []struct{ path, done string }{
		{"/volumes/1", `The volume "data" was deleted.`},
		{"/services/2", "The service TCP 203.0.113.10:2000 was deleted."},
		{"/domains/1", "The domain example.com was deleted."},
		{"/nodes/1", `The node "pve1" was deleted.`},
	} {
		sent := submit(t, s, gone.path+"/delete", cookie, form(t, get(t, s, gone.path+"/delete", cookie)))
		shows(t, then(t, s, cookie, sent), 200, gone.done)
		shows(t, get(t, s, gone.path, cookie), 404, "may have been deleted meanwhile")
	}
	shows(t, get(t, s, "/containers/1", cookie), 404)
}

func TestViewersOnlyLookAtTheInventory(t *testing.T) {
	s, _ := inventory(t)
	viewer := signInViewer(t, s)
	for _, path := range []string{"/sites/1/nodes", "/nodes/1", "/sites/1/containers", "/containers/1", "/services/1", "/volumes/1", "/domains", "/domains/1"} {
		page := get(t, s, path, viewer)
		shows(t, page, 200)
		wantOn(t, string(page.Body), nil, []string{"/new", "/edit", "/delete"})
	}
	for _, path := range []string{
		"/sites/1/nodes/new", "/nodes/1/edit", "/nodes/1/delete", "/sites/1/containers/new", "/containers/1/edit", "/containers/1/delete",
		"/containers/1/services/new", "/services/1/edit", "/services/1/delete", "/containers/1/volumes/new", "/volumes/1/edit", "/volumes/1/delete",
		"/domains/new", "/domains/1/edit", "/domains/1/delete",
	} {
		shows(t, get(t, s, path, viewer), 403, "Only an administrator may do this")
		shows(t, submit(t, s, path, viewer, url.Values{"name": {"mine"}}), 403, "Only an administrator may do this")
	}
}

func TestLongListsAreSearchedSortedAndLeafedThrough(t *testing.T) {
	s, cookie := inventory(t)
	s.Create(t, "/sites/1/nodes", object{"name": "pve2"})
	for i := range 120 {
		s.Create(t, "/sites/1/containers", object{"nodeId": 2, "hostname": fmt.Sprintf("c%03d", i)})
	}
	first := get(t, s, "/sites/1/containers", cookie)
	shows(t, first, 200, "1 to 50 of 121", `href="?page=2"`)
	wantOn(t, string(first.Body), nil, []string{"Previous"})
	shows(t, get(t, s, "/sites/1/containers?page=3", cookie), 200, "101 to 121 of 121", "c119", `href="?page=2"`)
	shows(t, get(t, s, "/sites/1/containers?page=9", cookie), 200, "There is no page 9 of this list", `href="?page=3"`)
	shows(t, get(t, s, "/sites/1/containers?sort=-hostname", cookie), 200, `aria-sort="descending"`, `href="?page=2&sort=-hostname"`, `href="?sort=hostname"`)
	found := get(t, s, "/sites/1/containers?q=C11&sort=hostname", cookie)
	shows(t, found, 200, "1 to 10 of 10", "c110", `value="C11"`, `href="?q=C11&sort=-hostname"`)
	shows(t, get(t, s, "/sites/1/containers?node=1", cookie), 200, "1 to 1 of 1", `<option value="1" selected>pve1</option>`)
	shows(t, get(t, s, "/nodes/2?page=3", cookie), 200, "101 to 120 of 120")
	shows(t, get(t, s, "/nodes/2/delete", cookie), 200, "Containers (120)", "60 more</summary>", "<bdi>c119</bdi>")
	for i := range 60 {
		s.Create(t, "/sites", object{"name": fmt.Sprintf("site %02d", i)})
	}
	shows(t, get(t, s, "/sites?page=2", cookie), 200, "51 to 61 of 61", "site 59", `href="?sort=name"`)
	shows(t, get(t, s, "/sites?q=%00%ff", cookie), 200)
	for _, odd := range []string{"?q=%00%ff", "?q=" + strings.Repeat("%25", 300), "?page=-1", "?page=99999999999999999999", "?page=x&sort=password", "?sort=-", "?node=x", "?q=%3Cimg+src%3Dx%3E"} {
		shows(t, get(t, s, "/sites/1/containers"+odd, cookie), 200)
	}
}

// TestASiteIsHadAsAFile by whoever may look at it, signed in as they are.
func TestASiteIsHadAsAFile(t *testing.T) {
	s, _ := inventory(t)
	viewer := signInViewer(t, s)
	shows(t, get(t, s, "/sites/1", viewer), 200, `<a download="lab.yaml" href="/api/v1/sites/1/manifest">`)
	file := get(t, s, "/api/v1/sites/1/manifest", viewer)
	shows(t, file, 200, "hostname: web", "externalHostname: app")
	if got := file.Header.Get("Content-Type"); got != "application/yaml" {
		t.Errorf("a browser gets %s", got)
	}
}

func TestPagesOfTheInventoryThatAreNotThere(t *testing.T) {
	s, cookie := inventory(t)
	for _, path := range []string{
		"/nodes/9", "/nodes/x", "/nodes/9/edit", "/nodes/9/delete", "/sites/9/nodes", "/sites/9/nodes/new", "/containers/9", "/containers/9/edit",
		"/containers/9/services/new", "/containers/9/volumes/new", "/sites/9/containers", "/sites/9/containers/new", "/services/9", "/services/9/edit",
		"/services/9/delete", "/volumes/9", "/volumes/9/edit", "/volumes/9/delete", "/domains/9", "/domains/9/edit", "/domains/9/delete",
	} {
		shows(t, get(t, s, path, cookie), 404, "There is no such page")
	}
}

func TestTheInventoryInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	b := browse(t, s, signIn(t, s))
	s.Create(t, "/sites", object{"name": "lab", "internalDomain": "lab.internal"})
	b.open(t, "/domains")
	looked(t, b, "domains-empty")
	b.open(t, "/sites/1/containers")
	looked(t, b, "containers-empty")
	b.press(t, "New container")
	looked(t, b, "container-needs-node")
	b.press(t, "Create the first node")
	b.fill(t, "name", "pve1")
	b.press(t, "Create the node")
	looked(t, b, "container-new")
	b.fill(t, "hostname", "web")
	b.fill(t, "ipv4Address", "192.0.2.101")
	b.fill(t, "macAddress", "02:00:00:00:00:01")
	b.press(t, "Create the container")
	looked(t, b, "container-fresh")
	b.press(t, "Add a service")
	looked(t, b, "service-needs-domain")
	b.press(t, "Create the first domain")
	b.fill(t, "name", "not a domain")
	b.press(t, "Create the domain")
	b.forgive() // the browser tells the status of the refused form
	b.until(t, `document.activeElement.classList.contains("faults")`)
	looked(t, b, "domain-faults")
	b.fill(t, "name", strings.Repeat("long-label.", 20)+"example")
	b.press(t, "Create the domain")
	looked(t, b, "service-new")
	b.fill(t, "externalHostname", "a-rather-long-host-name")
	b.fill(t, "internalPort", "8080")
	b.press(t, "Add the service")
	b.press(t, "Add a service")
	b.press(t, "TCP or UDP port")
	b.fill(t, "internalPort", "22")
	looked(t, b, "service-new-port")
	b.press(t, "Add the service")
	b.press(t, "Add a volume")
	b.fill(t, "name", "data")
	b.fill(t, "mountPath", "/var/lib/data")
	looked(t, b, "volume-new")
	b.press(t, "Add the volume")
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: "gateway", Services: map[string]checkin.ServiceReport{}, Volumes: map[string]checkin.VolumeReport{
		"1": {Applied: false, Message: "mkdir /mnt/volumes/site-1: permission denied <img src=x onerror=\"document.title='owned'\">"},
	}})
	b.reads(t, "permission denied <img")
	looked(t, b, "volume")
	b.open(t, "/containers/1")
	looked(t, b, "container")
	for name, path := range map[string]string{
		"service": "/services/1", "domain": "/domains/1", "domains": "/domains", "node": "/nodes/1", "nodes": "/sites/1/nodes", "site-contents": "/sites/1",
		"containers": "/sites/1/containers", "node-delete": "/nodes/1/delete", "service-edit": "/services/1/edit", "containers-none-found": "/sites/1/containers?q=nothing",
	} {
		b.open(t, path)
		looked(t, b, name)
	}
	if title := eval[string](t, b, "document.title"); title == "owned" {
		t.Error("markup was run")
	}
}

// TestHostileInventory looks at pages where everything is as long and as odd as
// it may be, as viewers and administrators see them.
func TestHostileInventory(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	const markup = `<img src=x onerror="document.title='owned'">`
	s.Create(t, "/sites", object{"name": markup + " שלום " + strings.Repeat("x", 40), "internalDomain": strings.Repeat("long-label.", 15) + "example"})
	s.Create(t, "/sites/1/nodes", object{"name": strings.Repeat("n", 63)})
	s.Create(t, "/sites/1/nodes", object{"name": "pve2"})
	s.Create(t, "/sites/1/containers", object{"nodeId": 1, "hostname": strings.Repeat("c", 63), "owner": strings.Repeat("o", 64), "ipv4Address": "192.0.2.101", "macAddress": "02:00:00:00:00:01"})
	s.Create(t, "/external-domains", object{"name": "bücher.example", "defaultSiteId": 1, "authServer": "http://" + strings.Repeat("a", 60) + ".example:4180"})
	s.Create(t, "/containers/1/services", object{"type": "http", "internalPort": 65535, "externalHostname": strings.Repeat("long-label.", 20) + "x", "externalDomainId": 1, "authRequired": true})
	s.Create(t, "/containers/1/services", object{"type": "dns", "internalPort": 5060, "dnsName": "_sip._tcp"})
	s.Create(t, "/containers/1/volumes", object{"name": strings.Repeat("v", 64), "mountPath": "/" + markup + strings.Repeat("m", 80), "mode": "ro"})
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: strings.Repeat("long-host-name.", 16) + "example", Services: map[string]checkin.ServiceReport{
		"nginx": {State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeApplied, Quarantined: []checkin.QuarantinedItem{
			{Kind: checkin.KindHTTP, ID: 1, Name: markup, Reason: markup + strings.Repeat("r", 300)},
		}},
	}, Volumes: map[string]checkin.VolumeReport{"1": {Applied: true, Message: markup + strings.Repeat("m", 300)}}})
	paths := map[string]string{
		"site": "/sites/1", "nodes": "/sites/1/nodes", "node": "/nodes/1", "containers": "/sites/1/containers?sort=-hostname", "container": "/containers/1",
		"service": "/services/1", "volume": "/volumes/1", "domains": "/domains", "domain": "/domains/1",
	}
	for who, cookie := range map[string]string{"viewer": signInViewer(t, s), "admin": signIn(t, s)} {
		b := browse(t, s, cookie)
		for name, path := range paths {
			b.open(t, path)
			looked(t, b, "hostile-"+who+"-"+name)
			if title := eval[string](t, b, "document.title"); title == "owned" {
				t.Errorf("%s: markup was run", path)
			}
		}
		if who == "viewer" {
			continue
		}
		for name, path := range map[string]string{"delete": "/nodes/1/delete", "edit": "/volumes/1/edit", "edit-service": "/services/1/edit"} {
			b.open(t, path)
			looked(t, b, "hostile-"+name)
		}
	}
}

// TestEachFormInABrowser is sent with a fault first, and then mended.
func TestEachFormInABrowser(t *testing.T) {
	s, cookie := inventory(t)
	b := browse(t, s, cookie)
	for _, form := range []tried{
		{"/sites/1/nodes/new", typed{"name": "web"}, typed{"name": "pve2"}, "name", "already in use", "Create the node", `The node "pve2" was created.`},
		{"/nodes/1/edit", typed{"ipv4Address": "192.0.2.101"}, typed{"ipv4Address": "192.0.2.11"}, "ipv4Address", "already in use", "Save", "IPv4 address: 192.0.2.11 (was: 192.0.2.10)"},
		{"/sites/1/containers/new?node=1", typed{"hostname": "db", "macAddress": "02:00:00:00:00:01"}, typed{"macAddress": "02:00:00:00:00:02"}, "macAddress", "already in use", "Create the container", `The container "db" was created.`},
		{"/containers/1/edit", typed{"hostname": "pve1"}, typed{"hostname": "www"}, "hostname", "already in use", "Save", "Host name: www (was: web)"},
		{"/containers/1/services/new", typed{"externalHostname": "app", "internalPort": "8081"}, typed{"externalHostname": "bücher"}, "externalHostname", "app.example.com is already in use", "Add the service", "https://xn--bcher-kva.example.com"},
		{"/containers/1/services/new?type=transport", typed{"internalPort": "8080", "externalPort": "2000"}, typed{"externalPort": "2002"}, "externalPort", "already in use", "Add the service", "203.0.113.10:2002"},
		{"/containers/1/services/new?type=dns", typed{"internalPort": "x", "dnsName": "_sips._tcp"}, typed{"internalPort": "5061"}, "internalPort", "not a whole number", "Add the service", "_sips._tcp.lab.internal"},
		{"/services/1/edit", typed{"internalPort": "0"}, typed{"internalPort": "8443"}, "internalPort", "port", "Save", "Port: 8443 (was: 8080)"},
		{"/containers/1/volumes/new", typed{"name": "data", "mountPath": "/other"}, typed{"name": "other"}, "name", "already has a volume", "Add the volume", "The volume was added."},
		{"/volumes/1/edit", typed{"mountPath": "data"}, typed{"mountPath": "/data"}, "mountPath", "data", "Save", "Mounted at: /data (was: /var/lib/data)"},
		{"/domains/new", typed{"name": "-"}, typed{"name": "example.org"}, "name", "is not a", "Create the domain", "The domain example.org was created."},
		{"/domains/1/edit", typed{"authServer": "nowhere"}, typed{"authServer": "http://192.0.2.20:4180"}, "authServer", "nowhere", "Save", "Sign-in server: http://192.0.2.20:4180 (was: not set)"},
	} {
		form.inBrowser(t, b)
	}
}

// TestALateEditorInABrowser keeps what was typed, and is told what was stored.
func TestALateEditorInABrowser(t *testing.T) {
	s, cookie := inventory(t)
	b := browse(t, s, cookie)
	b.open(t, "/containers/1/edit")
	b.fill(t, "hostname", "mine")
	if answer := s.Call(t, "PATCH", "/containers/1", object{"ipv4Address": "192.0.2.177"}); answer.Status != 200 {
		t.Fatal(answer.Status)
	}
	b.press(t, "Save")
	b.forgive() // the browser tells the status of the refused form
	b.until(t, `document.activeElement.classList.contains("faults")`)
	b.reads(t, "IPv4 address: 192.0.2.177")
	looked(t, b, "container-late")
	b.fill(t, "ipv4Address", "192.0.2.177")
	b.press(t, "Save")
	b.reads(t, "The container was saved. Host name: mine (was: web).")
	b.press(t, "Delete…")
	looked(t, b, "container-delete")
	b.press(t, "Delete")
	b.reads(t, `The container "mine" was deleted.`)
	looked(t, b, "containers-deleted")
}

// TestAContainerByKeyboard makes a container and a service without a mouse.
func TestAContainerByKeyboard(t *testing.T) {
	s, cookie := inventory(t)
	b := browse(t, s, cookie)
	b.open(t, "/sites/1/containers/new")
	keys := func(keys ...string) {
		for _, key := range keys {
			b.do(t, chromedp.KeyEvent(key))
		}
	}
	tabTo := func(selector string) {
		for range 60 {
			if eval[bool](t, b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
				return
			}
			keys(kb.Tab)
		}
		t.Fatalf("no tab leads to %s", selector)
	}
	leave := func(selector, path string) {
		tabTo(selector)
		keys(kb.Enter)
		b.until(t, fmt.Sprintf(`location.pathname === %q && document.readyState === "complete"`, path))
	}
	tabTo("[name=hostname]")
	keys("mail")
	tabTo("[name=ipv4Address]")
	keys("192.0.2.110")
	leave("main form button", "/containers/2")
	leave("a[href='/containers/2/services/new']", "/containers/2/services/new")
	tabTo("[name=externalHostname]")
	keys("mail")
	tabTo("[name=internalPort]")
	keys("8443")
	tabTo("[name=authRequired]")
	keys(" ")
	leave("main form button", "/containers/2")
	b.reads(t, "https://mail.example.com")
	b.reads(t, "with a sign-in")
}
