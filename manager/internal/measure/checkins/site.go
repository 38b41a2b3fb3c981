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
	key  string
	etag string
}

// newSite makes a database in dir with one site.
func newSite(ctx context.Context, file, dir string, containers int) (site, error) {
	admin, err := newKey(file, dir, "--role", "admin")
	if err != nil {
		return site{}, err
	}
	server, err := startManager(file, dir)
	if err != nil {
		return site{}, err
	}
	defer server.stop()
	api := api{url: server.url + "/api/v1/", key: admin}
	if err := api.fill(ctx, containers); err != nil {
		return site{}, err
	}
	key, err := newKey(file, dir, "--role", "agent", "--site", "1")
	if err != nil {
		return site{}, err
	}
	etag, err := checkIn(ctx, server.url, key, 0, "", http.StatusOK)
	return site{key: key, etag: etag}, err
}

func newKey(file, dir string, arguments ...string) (string, error) {
	out, err := managerCommand(file, dir, append([]string{"apikey", "create", "--name", "measured"}, arguments...)...).Output()
	if err != nil {
		return "", fmt.Errorf("create a key: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// api is the manager's inventory API.
type api struct{ url, key string }

func (a api) fill(ctx context.Context, containers int) error {
	if err := a.create(ctx, "sites", `{"name":"measured","internalDomain":"lab.internal","dhcpRange":"10.1.0.1,10.1.0.200",`+
		`"subnetMask":"255.0.0.0","gateway":"10.255.255.254","dnsForwarders":"9.9.9.9","volumesRoot":"/mnt/volumes"}`); err != nil {
		return err
	}
	if err := a.create(ctx, "sites/1/nodes", `{"name":"pve1","ipv4Address":"10.255.255.1"}`); err != nil {
		return err
	}
	for i := range containers {
		if err := a.create(ctx, "sites/1/containers", fmt.Sprintf(
			`{"nodeId":1,"hostname":"c%d","owner":"alice","ipv4Address":"10.2.%d.%d","macAddress":"02:00:00:00:%02x:%02x"}`,
			i, i/250, i%250+1, i/256, i%256)); err != nil {
			return err
		}
	}
	return nil
}

func (a api) create(ctx context.Context, path, body string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+a.key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("create %s: %s: %s", path, answer.Status, text)
	}
	return err
}

// settle lets every agent check in until it has nothing new to tell.
func (s site) settle(ctx context.Context, url string) error {
	for agent := range agents {
		if _, err := checkIn(ctx, url, s.key, agent, s.etag, http.StatusNotModified); err != nil {
			return err
		}
	}
	return nil
}

func checkIn(ctx context.Context, url, key string, agent int, etag string, want int) (string, error) {
	body, err := request(agent)
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
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != want {
		return "", fmt.Errorf("check in: %s instead of %d", answer.Status, want)
	}
	return answer.Header.Get("ETag"), nil
}

// request is what an agent of this release sends in a pass without changes.
func request(agent int) ([]byte, error) {
	const tag = `"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`
	service := checkin.ServiceReport{
		State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeUnchanged, ReceivedETag: tag, RunningETag: tag,
	}
	return json.Marshal(checkin.Request{
		SiteID: 1, Hostname: fmt.Sprintf("agent%d", agent), CurrentTime: 1771234560, IPv4Address: "172.17.0.2",
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
