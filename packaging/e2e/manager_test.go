//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/e2e/internal/machine"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/wait"
)

// manager is the manager's package in a machine of its own, and an
// administrator's key for it.
type manager struct {
	*machine.Machine
	URL     string
	address string
	key     string
}

// password of the one user of the dashboard.
const password = "correct horse battery staple"

func bootManager(t *testing.T) *manager {
	wires := network.NewSwitch(t, "manager", "203.0.113.0/26")
	wires.Plug(t, "manager", wires.Host(10), "")
	m := &manager{
		Machine: machine.Boot(t, "manager", machine.Options{Suite: machine.Debian13, Namespace: "manager"}),
		URL:     "http://" + wires.Host(10).String() + ":3000",
		address: wires.Host(10).String(),
	}
	m.Install(t, deb(t, "opensource-manager"))
	m.Write(t, "/etc/opensource-manager/manager.env", "LISTEN=:3000\nPUBLIC_URL="+m.URL+"\n", 0o640)
	m.Run(t, "systemctl", "restart", "opensource-manager.service")
	m.key = strings.TrimSpace(m.Run(t, "opensource-manager", "apikey", "create", "--role", "admin"))
	m.Run(t, "sh", "-c", "echo '"+password+"' | opensource-manager user create admin")
	return m
}

// client has a deadline, as everything here.
var client = &http.Client{Timeout: 10 * time.Second}

// call speaks to the API and decodes the data of the answer into result.
func (m *manager) call(method, path string, body, result any) error {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, m.URL+"/api/v1"+path, reader)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+m.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer, &struct{ Data any }{result})
}

// object is a JSON object to be sent.
type object map[string]any

// create posts a resource, which must be accepted, and returns its id.
func (m *manager) create(t testing.TB, path string, body object) int64 {
	t.Helper()
	var created struct{ ID int64 }
	if err := m.call("POST", path, body, &created); err != nil {
		t.Fatal(err)
	}
	return created.ID
}

// change patches a resource, which must be accepted.
func (m *manager) change(t testing.TB, path string, body object) {
	t.Helper()
	if err := m.call("PATCH", path, body, nil); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a resource.
func (m *manager) remove(t testing.TB, path string) {
	t.Helper()
	if err := m.call("DELETE", path, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// agent is an agent as the API shows it.
type agent struct {
	ID           int64
	SiteID       int64
	Hostname     string
	Status       string
	Services     map[string]checkin.ServiceReport
	Running      *checkin.Running
	Certificates map[string]checkin.Certificate
	Guard        *checkin.Guard
	Drift        map[string]struct{ Files []checkin.Drift }
}

// agent returns the agent of a site.
func (m *manager) agent(site int64) (agent, error) {
	all, err := m.agents(site)
	if err != nil || len(all) != 1 {
		return agent{}, fmt.Errorf("%d agents of site %d: %w", len(all), site, err)
	}
	var a agent
	err = m.call("GET", fmt.Sprintf("/agents/%d", all[0].ID), nil, &a)
	return a, err
}

// agents returns all agents of a site.
func (m *manager) agents(site int64) ([]agent, error) {
	var all []agent
	err := m.call("GET", fmt.Sprintf("/agents?siteId=%d", site), nil, &all)
	return all, err
}

// volume is a volume as the API shows it.
type volume struct {
	HostPath      string
	Status        string
	StatusMessage string
}

func (m *manager) volume(t testing.TB, id int64) volume {
	t.Helper()
	var v volume
	if err := m.call("GET", "/volumes/"+strconv.FormatInt(id, 10), nil, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// page signs in as a person does and returns the page /agents.
func (m *manager) page(t testing.TB) string {
	t.Helper()
	return m.pageAt(t, "/agents")
}

// agentPage returns the page of a site's agent.
func (m *manager) agentPage(t testing.TB, site int64) string {
	t.Helper()
	a, err := m.agent(site)
	if err != nil {
		t.Fatal(err)
	}
	return m.pageAt(t, fmt.Sprintf("/agents/%d", a.ID))
}

func (m *manager) pageAt(t testing.TB, path string) string {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Timeout: 10 * time.Second, Jar: jar}
	signIn, err := http.NewRequest("POST", m.URL+"/sign-in", strings.NewReader(url.Values{"name": {"admin"}, "password": {password}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	signIn.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	signIn.Header.Set("Origin", m.URL)
	response, err := browser.Do(signIn)
	if err != nil {
		t.Fatalf("sign in: %v", err)
	}
	response.Body.Close()
	response, err = browser.Get(m.URL + path)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("open %s: %s, %v", path, response.Status, err)
	}
	return string(content)
}

// waitForReport waits until the agent of a site reports a service as wanted.
func (m *manager) waitForReport(t testing.TB, site int64, service string, want checkin.LastApply) checkin.ServiceReport {
	t.Helper()
	var report checkin.ServiceReport
	wait.For(t, 10*time.Second, service+" to be reported as "+string(want), func() error {
		a, err := m.agent(site)
		if err != nil {
			return err
		}
		if report = a.Services[service]; report.LastApply != want {
			return fmt.Errorf("it is reported as %+v", report)
		}
		return nil
	})
	return report
}
