package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
)

func TestCheckInHostileBodies(t *testing.T) {
	c := newCheckIns(t)
	before := len(c.agents(t))
	with := func(field, value string) string {
		return fmt.Sprintf(`{"siteId":1,"hostname":"evil","currentTime":1,"ipv4Address":null,"services":{},%q:%s}`, field, value)
	}
	many := func(n int, entry string) string {
		entries := make([]string, n)
		for i := range entries {
			entries[i] = fmt.Sprintf(`"%d":%s`, i+1, entry)
		}
		return "{" + strings.Join(entries, ",") + "}"
	}
	tests := []struct {
		name, body string
		status     int
		field      string
	}{
		{"empty", "", 400, ""},
		{"cut", `{"siteId":1,`, 400, ""},
		{"two values", plain + plain, 400, ""},
		{"no object", `[1]`, 422, "body"},
		{"null", `null`, 422, "siteId"},
		{"deep", strings.Repeat("[", 20000), 400, ""},
		{"form", "siteId=1&hostname=evil", 400, ""},
		{"site as text", with("siteId", `"1"`), 422, "siteId"},
		{"site as bool", with("siteId", `true`), 422, "siteId"},
		{"site null", `{"siteId":null,"hostname":"evil"}`, 422, "siteId"},
		{"site missing", `{"hostname":"evil"}`, 422, "siteId"},
		{"site zero", with("siteId", `0`), 422, "siteId"},
		{"site fraction", with("siteId", `1.5`), 422, "siteId"},
		{"site huge", with("siteId", `99999999999999999999`), 422, "siteId"},
		{"host missing", `{"siteId":1}`, 422, "hostname"},
		{"host markup", with("hostname", `"<img src=x onerror=alert(1)>"`), 422, "hostname"},
		{"host number", with("hostname", `7`), 422, "hostname"},
		{"host long", with("hostname", `"`+strings.Repeat("x", 90_000)+`"`), 422, "hostname"},
		{"host newline", with("hostname", `"a\nb"`), 422, "hostname"},
		{"host is an address", with("hostname", `"192.0.2.1"`), 422, "hostname"},
		{"service name", with("services", `{"\"><script>":{}}`), 422, "services"},
		{"many services", with("services", many(10_000, "{}")), 422, "services"},
		{"many volumes", with("volumes", many(10_001, `{"applied":true}`)), 422, "volumes"},
		{"too large", with("x", `"`+strings.Repeat("x", 1<<20)+`"`), 413, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := c.post(test.body)
			var answer struct {
				Error struct {
					Code, Message string
					Fields        map[string]string
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatalf("%d, not JSON: %s", w.Code, w.Body)
			}
			if w.Code != test.status || answer.Error.Code == "" || answer.Error.Message == "" {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if test.field != "" && answer.Error.Fields[test.field] == "" {
				t.Errorf("%s is not named: %v", test.field, answer.Error.Fields)
			}
		})
	}
	if agents := c.agents(t); len(agents) != before {
		t.Errorf("refused requests left %v", agents)
	}
	for _, contentType := range []string{"application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ";"} {
		if w := c.post(plain, "Content-Type", contentType); w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %d", contentType, w.Code)
		}
	}
}

// TestCheckInOddValues: one odd value that a check-in can do without is left out
// and named in the log; all the rest is kept.
func TestCheckInOddValues(t *testing.T) {
	const valid = `"2027-02-16T09:36:00Z"`
	for name, test := range map[string]struct{ part, logged, kept string }{
		"address of IPv6":        {`"ipv4Address":"2001:db8::1"`, "ipv4Address", ""},
		"address that is a link": {`"ipv4Address":"javascript:1"`, "ipv4Address", ""},
		"address with prefix":    {`"ipv4Address":"192.0.2.5/24"`, "ipv4Address", ""},
		"address as number":      {`"ipv4Address":7`, "ipv4Address must not be of type number", ""},
		"clock as text":          {`"currentTime":"1"`, "currentTime", ""},
		"clock as object":        {`"currentTime":{}`, "currentTime", ""},
		"host as list":           {`"host":[1]`, "host must not be", ""},
		"disk as text":           {`"host":{"os":"Debian","diskFreeBytes":"all"}`, "host.diskFreeBytes", `"os":"Debian"`},
		"modules as text":        {`"host":{"os":"Debian","nginx":{"version":"1.26","http3":"yes"}}`, "host.nginx.http3", `"version":"1.26"`},
		"start of the pass":      {`"agent":{"version":"1","templates":["a",7],"pass":{"startedAt":"soon","durationMs":5}}`, "agent.pass.startedAt is not a time", `"durationMs":5`},
		"odd template":           {`"agent":{"version":"1","templates":["a",7]}`, "agent.templates", `"templates":["a"]`},
		"running since":          {`"running":{"etag":"x","since":"yesterday"}`, "running.since is not a time", `"etag":"x"`},
		"end of a certificate":   {`"certificates":{"a.example":{"state":"expiring","notAfter":""},"b.example":{"state":"ok","notAfter":` + valid + `}}`, "certificates.a.example.notAfter is not a time", `"a.example":{"state":"expiring","fallback":false},"b.example":{"state":"ok","notAfter":` + valid},
		"hop as number":          {`"probes":{"a.example":{"hop":1,"message":"m"},"b.example":{"hop":"dns"}}`, "probes.a.example.hop", `"probes":{"b.example":{"hop":"dns"}}`},
		"services as list":       {`"services":[]`, "services must not be of type array", ""},
		"service as text":        {`"services":{"dnsmasq":"active","nginx":{"state":"active"}}`, "services.dnsmasq", `{"nginx":{"state":"active"`},
		"state as number":        {`"services":{"nginx":{"state":1,"lastApply":"success"}}`, "services.nginx.state", `{"state":"unknown","lastApply":"success"}`},
		"long state":             {`"services":{"nginx":{"state":"` + strings.Repeat("x", 300) + `","lastApply":"success"}}`, "services.nginx.state", `{"state":"unknown","lastApply":"success"}`},
		"long outcome":           {`"services":{"nginx":{"state":"active","outcome":"` + strings.Repeat("x", 300) + `"}}`, "services.nginx.outcome", `{"state":"active","lastApply":"unknown"}`},
		"unknown apply":          {`"services":{"nginx":{"state":"active","lastApply":"great"}}`, "services.nginx.lastApply", `{"state":"active","lastApply":"unknown"}`},
		"applied at":             {`"services":{"nginx":{"state":"active","lastApply":"success","appliedAt":"0"}}`, "services.nginx.appliedAt is not a time", `{"state":"active","lastApply":"success"}`},
		"volume key":             {`"volumes":{"1; DROP":{"applied":true}}`, "volumes.1; DROP", ""},
		"volume key zeros":       {`"volumes":{"01":{"applied":true}}`, "volumes.01", ""},
		"volume as text":         {`"volumes":{"1":{"applied":"yes"}}`, "volumes.1.applied", ""},
		"volume empty":           {`"volumes":{"1":{}}`, "volumes.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCheckIns(t)
			body := `{"siteId":1,"hostname":"odd",` + test.part + `,"guard":{"removed":3,"total":4}}`
			for range 2 {
				if w := c.post(body); w.Code != http.StatusOK {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
			}
			if said := c.log.String(); strings.Count(said, "left out of a check-in") != 1 || !strings.Contains(said, test.logged) {
				t.Errorf("logged:\n%s", said)
			}
			agents := c.agents(t)
			kept, err := json.Marshal(agents[len(agents)-1].Report.Request)
			if err != nil || !strings.Contains(string(kept), test.kept) || !strings.Contains(string(kept), `"guard":{"removed":3,"total":4}`) {
				t.Errorf("kept %s, %v", kept, err)
			}
		})
	}
}

func TestCheckInChunkedBodyTooLarge(t *testing.T) {
	c := newCheckIns(t)
	r := httptest.NewRequest(http.MethodPost, "/api/v1/agents", io.MultiReader(strings.NewReader(strings.Repeat(" ", 2<<20)), strings.NewReader(plain)))
	r.RemoteAddr = "127.0.0.1:5555"
	r.ContentLength = -1
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Error(w.Code, w.Body)
	}
}

// TestCheckInTakesNoMemoryForPromises: who announces a body and does not send
// it must cost next to nothing, and a stranger's is not read at all.
func TestCheckInTakesNoMemoryForPromises(t *testing.T) {
	c := newCheckIns(t)
	for _, test := range []struct {
		name, peer, header, value string
		status                    int
		read                      bool
	}{
		{"stranger", "203.0.113.9:5555", "Accept", "*/*", http.StatusUnauthorized, false},
		{"stranger through a proxy", "127.0.0.1:5555", "X-Forwarded-For", "203.0.113.9", http.StatusUnauthorized, false},
		{"wrong key", "203.0.113.9:5555", "Authorization", "Bearer wrong", http.StatusUnauthorized, false},
		{"wrong key on this host", "127.0.0.1:5555", "Authorization", "Bearer wrong", http.StatusUnauthorized, false},
		{"own agent", "127.0.0.1:5555", "Accept", "*/*", http.StatusBadRequest, true},
		{"agent", "203.0.113.9:5555", "Authorization", "Bearer site-1", http.StatusBadRequest, true},
	} {
		body := &promise{}
		r := httptest.NewRequest(http.MethodPost, "/api/v1/agents", body)
		r.ContentLength, r.RemoteAddr = 1<<20, test.peer
		r.Header.Set(test.header, test.value)
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		if read := body.buffer > 0; w.Code != test.status || read != test.read || body.buffer > 16<<10 {
			t.Errorf("%s: status %d, read into %d bytes", test.name, w.Code, body.buffer)
		}
	}
}

// promise is a body that never comes, and notes how large a buffer waits for it.
type promise struct{ buffer int }

func (p *promise) Read(buffer []byte) (int, error) {
	p.buffer = len(buffer)
	return 0, io.ErrUnexpectedEOF
}

func TestCheckInOtherGenerations(t *testing.T) {
	c := newCheckIns(t)
	for name, body := range map[string]string{
		"older, nulls":    `{"siteId":1,"hostname":"old","currentTime":1771234560,"ipv4Address":null,"services":{"nginx":{"state":"active","lastApply":"unknown","message":null}},"volumes":null}`,
		"older, bare":     `{"siteId":1,"hostname":"old","currentTime":1771234560,"services":{}}`,
		"newer":           `{"siteId":1,"hostname":"new","future":{"a":[1]},"services":{"nginx":{"state":"active","lastApply":"success","more":1,"outcome":"dreamt_of"},"caddy":{"state":"reloading","lastApply":"success"}},"volumes":{"7":null}}`,
		"null service":    `{"siteId":1,"hostname":"new","services":{"nginx":null}}`,
		"full host name":  `{"siteId":1,"hostname":"Agent.Example.Test.","services":{}}`,
		"optional fields": `{"siteId":1,"hostname":"full","agent":{"version":"1","templates":[],"pass":{"startedAt":"2026-02-16T09:36:00Z","durationMs":5,"rounds":1}},"host":{"os":"Debian","nginx":{"version":"1.22.1","http3":false,"stream":true},"dnsmasq":null,"ipv6":true,"userNamespace":false,"diskFreeBytes":1},"running":{"etag":"\"x\"","since":"2026-02-16T09:36:00Z"},"certificates":{"example.com":{"state":"ok","notAfter":"2027-02-16T09:36:00Z","fallback":false}},"guard":{"removed":1,"total":2,"kind":"services","etag":"\"x\""},"probes":{"app.example.com":{"hop":"backend","message":"refused"},"wiki.example.com":{"hop":""}},"services":{}}`,
		"probes, nulls":   `{"siteId":1,"hostname":"full","probes":{"app.example.com":null},"guard":null,"services":{}}`,
	} {
		if w := c.post(body); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	hosts := map[string]bool{}
	for _, agent := range c.agents(t) {
		hosts[agent.Hostname] = true
	}
	if diff := cmp.Diff(map[string]bool{"old": true, "new": true, "agent.example.test": true, "full": true}, hosts); diff != "" {
		t.Error(diff)
	}
}

// TestCheckInWordsAreCleaned: whatever an agent says reaches a page and
// terminals, so that no text of a report may have a control character in it.
func TestCheckInWordsAreCleaned(t *testing.T) {
	c := newCheckIns(t)
	const evil = `\u001b[31m\u202e\u0000<script>`
	long := evil + strings.Repeat("x", 20_000)
	w := c.post(strings.NewReplacer("EVIL", evil, "LONG", long).Replace(`{"siteId":1,"hostname":"evil",
		"agent":{"version":"LONG","machineId":"EVIL","templates":["EVIL"]},
		"host":{"os":"LONG","nginx":{"version":"EVIL"},"dnsmasq":{"version":"EVIL"}},
		"running":{"etag":"LONG","since":"2026-02-16T09:36:00Z"},
		"certificates":{"LONG":{"state":"EVIL"},"example.com":{"state":"ok"}},
		"guard":{"removed":1,"total":2,"kind":"EVIL","etag":"LONG"},
		"probes":{"LONG":{"hop":"EVIL","message":"LONG"},"example.com":{"hop":""},"example.org":null},
		"services":{"nginx":{"state":"EVIL","lastApply":"failure","message":"LONG","outcome":"EVIL","receivedEtag":"LONG","runningEtag":"EVIL",
			"quarantined":[{"kind":"EVIL","name":"EVIL","reason":"LONG"}],"drift":[{"path":"EVIL","diff":"LONG"}],
			"hold":{"until":"2026-02-16T09:36:00Z","reason":"LONG","by":"EVIL"}}}}`))
	if w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	agents := c.agents(t)
	kept, err := json.Marshal(agents[len(agents)-1].Report.Request)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`\u001b`, `\u0000`, "\u202e"} {
		if strings.Contains(string(kept), raw) {
			t.Errorf("%q is kept as it was sent", raw)
		}
	}
	if limit := 3*checkin.MaxMessage + checkin.MaxDiff + 20*256; len(kept) > limit {
		t.Errorf("%d bytes are kept, more than %d", len(kept), limit)
	}
	if certificates := agents[len(agents)-1].Report.Certificates; len(certificates) != 2 || certificates["example.com"].State != "ok" {
		t.Errorf("certificates: %v", certificates)
	}
	if probes := agents[len(agents)-1].Report.Probes; len(probes) != 2 || probes["example.com"] != (checkin.Probe{}) {
		t.Errorf("probes: %v", probes)
	}
}

// TestCheckInExamples posts the example bodies of the contract.
func TestCheckInExamples(t *testing.T) {
	c := newCheckIns(t)
	files, err := filepath.Glob("../../../agent/checkin/testdata/request*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var sent checkin.Request
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}
		w := c.post(string(body))
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", file, w.Code, w.Body)
			continue
		}
		agent, err := c.store.FindAgent(t.Context(), sent.SiteID, sent.Hostname)
		if err != nil {
			t.Fatal(err)
		}
		sent.Volumes = nil // kept with the volumes
		if diff := cmp.Diff(sent, agent.Report.Request); diff != "" {
			t.Errorf("%s is not kept as it was sent:\n%s", file, diff)
		}
	}
}

func FuzzCheckIn(f *testing.F) {
	c := newCheckIns(f)
	for _, seed := range []string{plain, "", "null", "{}", `{"siteId":1,"hostname":"a","volumes":{"1":null}}`, `{"siteId":1e0}`, `{"currentTime":1e400}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := c.post(body)
		if w.Code != http.StatusOK && w.Code/100 != 4 || w.Body.Len() == 0 || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

func TestCheckInClock(t *testing.T) {
	c := newCheckIns(t)
	for value, want := range map[string]*int64{
		"1771234560": ms(0), "1771234559": ms(0), "1771234558": ms(-1000), "1771234560.9": ms(0),
		"1771245360": ms(3 * 3600 * 1000), "1771223760": ms(-3*3600*1000 + 1000),
		"0": nil, "-1": nil, "1e18": nil, "1e400": nil, "null": nil, "9223372036854775807": nil, "99999999999999999999": nil,
	} {
		w := c.post(fmt.Sprintf(`{"siteId":1,"hostname":"agent","currentTime":%s}`, value))
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", value, w.Code, w.Body)
			continue
		}
		agent := c.agents(t)[0]
		if diff := cmp.Diff(want, agent.ClockSkewMS); diff != "" || !agent.LastSeenAt.Equal(c.now) {
			t.Errorf("%s: seen %v, skew %s", value, agent.LastSeenAt, diff)
		}
	}
	if w := c.post(`{"siteId":1,"hostname":"agent"}`); w.Code != http.StatusOK {
		t.Errorf("missing: %d", w.Code)
	}
	// The manager's clock is set back: the agent was seen then, not in the future.
	c.now = c.now.Add(-time.Hour)
	c.post(`{"siteId":1,"hostname":"agent"}`)
	c.reopen(t)
	if agent := c.agents(t)[0]; !agent.LastSeenAt.Equal(c.now) || agent.Age(c.now) != 0 {
		t.Errorf("last seen %v at %v", agent.LastSeenAt, c.now)
	}
}

func ms(n int64) *int64 { return &n }
