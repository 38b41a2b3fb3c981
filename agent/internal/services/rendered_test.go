package services

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// What render makes of a snapshot is loaded by the real programs, and tells
// what is in force as the services expect it to.
func TestRenderedFilesProveThemselves(t *testing.T) {
	if _, err := os.Stat("/etc/ssl/private/ssl-cert-snakeoil.key"); err != nil {
		t.Skip("NOT TESTED: ssl-cert is not installed")
	}
	web, names := newWebSite(t), newNameSite(t)
	facts := render.Facts{
		NGINX: render.NGINXFacts{Version: render.Version{1, 22, 0}},
		Paths: relocated(web.dir, names.dir),
	}
	templates := render.LoadTemplates(nil)
	for _, host := range []string{"web", "mail"} {
		snapshot, err := checkin.ParseSnapshot([]byte(strings.ReplaceAll(labSnapshot, "HOST", host)))
		must(t, err)

		result, err := render.NGINX(snapshot, facts, templates)
		must(t, err)
		want(t, web.apply(t, result), checkin.OutcomeApplied)
		want(t, web.apply(t, result), checkin.OutcomeUnchanged)

		result, err = render.DNSMasq(snapshot, facts, templates)
		must(t, err)
		want(t, names.apply(t, result), checkin.OutcomeApplied)
		want(t, names.apply(t, result), checkin.OutcomeUnchanged)
		if got := names.lookUp(host + ".lab.internal"); got != "192.0.2.101" {
			t.Errorf("%s.lab.internal is %s", host, got)
		}
	}
	if got := names.counts(); got != [2]int{1, 1} {
		t.Errorf("%d restarts and %d signals of dnsmasq", got[0], got[1])
	}
}

func relocated(web, names string) render.Paths {
	paths := render.DefaultPaths()
	paths.NGINXConf = filepath.Join(web, "nginx.conf")
	paths.NGINXPid = filepath.Join(web, "run/nginx.pid")
	paths.NGINXErrorLog = filepath.Join(web, "log/error.log")
	paths.NGINXLog = filepath.Join(web, "log/access.log")
	paths.AuthCache = filepath.Join(web, "run/cache")
	paths.DNSMasqConf = filepath.Join(names, "dnsmasq.conf")
	paths.DNSMasqDir = names
	return paths
}

const labSnapshot = `{
  "site": {"id": 1, "name": "lab", "internalDomain": "lab.internal", "dhcpRange": "192.0.2.100,192.0.2.200",
    "subnetMask": "255.255.255.0", "gateway": "192.0.2.1", "dnsForwarders": "192.0.2.53",
    "nodes": [{"name": "pve1", "ipv4Address": "192.0.2.10", "containers": [
      {"hostname": "HOST", "ipv4Address": "192.0.2.101", "macAddress": "02:00:00:00:00:01"}]}]},
  "nginx": {"httpServices": [
      {"id": 3, "internalPort": 8080, "container": {"ipv4Address": "192.0.2.101"}, "externalHostname": "HOST",
       "backendProtocol": "http", "authRequired": false, "externalDomain": {"name": "example.com", "authServer": null}}],
    "streamServices": [], "externalDomains": [{"name": "example.com"}]}
}`
