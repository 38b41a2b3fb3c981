package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"opensource.internal/agent/checkin"
)

// agents is how many agents check in.
const agents = 64

// site is a site on a manager, and what its agents need to check in.
type site struct {
	admin string // an administrator's key
	key   string // its agents' key
	etag  string
}

// newSite makes a site in an empty database.
func newSite(ctx context.Context, manager installation, containers int) (site, error) {
	admin, err := manager.newKey("--role", "admin")
	if err != nil {
		return site{}, err
	}
	server, err := manager.start()
	if err != nil {
		return site{}, err
	}
	defer server.stop()
	api := api{url: server.url + "/api/v1/", key: admin}
	if err := api.fill(ctx, 1, containers); err != nil {
		return site{}, err
	}
	key, err := manager.newKey("--role", "agent", "--site", "1")
	if err != nil {
		return site{}, err
	}
	etag, err := checkIn(ctx, server.url, key, 1, 0, "", http.StatusOK)
	return site{admin: admin, key: key, etag: etag}, err
}

func (i installation) newKey(arguments ...string) (string, error) {
	out, err := i.command(append([]string{"apikey", "create", "--name", "measured " + arguments[1]}, arguments...)...).Output()
	if err != nil {
		return "", fmt.Errorf("create a key: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// client keeps as many connections as there are agents at a time.
var client = http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// api is the manager's inventory API.
type api struct{ url, key string }

// fill makes a site, which gets this id, with its containers.
func (a api) fill(ctx context.Context, site, containers int) error {
	if err := a.send(ctx, http.MethodPost, "sites", fmt.Sprintf(`{"name":"measured-%d","internalDomain":"lab.internal","dhcpRange":"10.1.0.1,10.1.0.200",`+
		`"subnetMask":"255.0.0.0","gateway":"10.255.255.254","dnsForwarders":"9.9.9.9","volumesRoot":"/mnt/volumes"}`, site)); err != nil {
		return err
	}
	if err := a.send(ctx, http.MethodPost, fmt.Sprintf("sites/%d/nodes", site), `{"name":"pve1","ipv4Address":"10.255.255.1"}`); err != nil {
		return err
	}
	for i := range containers {
		if err := a.send(ctx, http.MethodPost, fmt.Sprintf("sites/%d/containers", site), fmt.Sprintf(
			`{"nodeId":%d,"hostname":"c%d","owner":"alice","ipv4Address":"10.2.%d.%d","macAddress":"02:00:00:00:%02x:%02x"}`,
			site, i, i/250, i%250+1, i/256, i%256)); err != nil {
			return err
		}
	}
	return nil
}

// send sends a request that has to succeed.
func (a api) send(ctx context.Context, method, path, body string) error {
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+a.key)
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return err
}

// settle lets every agent check in until it has nothing new to tell.
func (s site) settle(ctx context.Context, url string) error {
	for agent := range agents {
		if _, err := checkIn(ctx, url, s.key, 1, agent, s.etag, http.StatusNotModified); err != nil {
			return err
		}
	}
	return nil
}

// checkIn is one of an agent, and returns the tag of the answer.
func checkIn(ctx context.Context, url, key string, site, agent int, etag string, want int) (string, error) {
	body, err := request(site, agent)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+checkin.Path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return "", err
	}
	if answer.StatusCode != want {
		return "", fmt.Errorf("check in: %s instead of %d", answer.Status, want)
	}
	return answer.Header.Get("ETag"), nil
}

// request is what an agent of this release sends in a pass without changes.
func request(site, agent int) ([]byte, error) {
	const tag = `"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`
	service := checkin.ServiceReport{
		State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeUnchanged, ReceivedETag: tag, RunningETag: tag,
	}
	return json.Marshal(checkin.Request{
		SiteID: int64(site), Hostname: fmt.Sprintf("agent%d", agent), CurrentTime: 1771234560, IPv4Address: "172.17.0.2",
		Services: map[string]checkin.ServiceReport{"nginx": service, "dnsmasq": service},
		Agent: &checkin.AgentInfo{
			Version: "2026.12.0", MachineID: "0123456789abcdef0123456789abcdef", Templates: []string{},
			Pass: &checkin.PassInfo{DurationMS: 12, Rounds: 1},
		},
		Host: &checkin.HostInfo{
			OS: "Debian GNU/Linux 13 (trixie)", NGINX: &checkin.NGINXInfo{Version: "1.26.3", HTTP3: true, Stream: true},
			DNSMasq: &checkin.DNSMasqInfo{Version: "2.91"}, IPv6: true, DiskFreeBytes: 123456789012,
		},
		Running:      &checkin.Running{ETag: tag},
		Certificates: map[string]checkin.Certificate{"example.com": {State: checkin.CertificateOK}},
	})
}
