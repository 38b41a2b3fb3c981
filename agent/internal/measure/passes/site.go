package main

import (
	"fmt"
	"strings"
)

// body is a check-in such as the agent's own.
const body = `{"siteId":1,"hostname":"agent","currentTime":1771234560,"ipv4Address":"172.17.0.2",` +
	`"services":{"dnsmasq":{"state":"active","lastApply":"success","outcome":"unchanged"},"nginx":{"state":"active","lastApply":"success","outcome":"unchanged"}},` +
	`"agent":{"version":"1","templates":[],"pass":{"startedAt":"2026-02-16T09:36:00Z","durationMs":12,"rounds":1}},` +
	`"host":{"os":"Debian GNU/Linux 12","nginx":{"version":"1.22.1","http3":false,"stream":true},"dnsmasq":{"version":"2.90"},"ipv6":true,"userNamespace":false,"diskFreeBytes":123456789}}`

// site is the snapshot of a site with as many containers as HTTP services, and
// a tenth as many TCP services and volumes.
func site(services int) []byte {
	var containers, volumes, http, stream []string
	for i := range services {
		address := fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
		containers = append(containers, fmt.Sprintf(`{"hostname":"c%d","ipv4Address":"%s","macAddress":"02:00:00:00:%02x:%02x"}`, i, address, i/256, i%256))
		http = append(http, fmt.Sprintf(`{"id":%d,"internalPort":8080,"container":{"ipv4Address":"%s"},"externalHostname":"app%d",`+
			`"backendProtocol":"http","authRequired":false,"externalDomain":{"name":"d%d.example.com","authServer":null}}`, i+1, address, i, i%3))
		if i%10 == 0 {
			stream = append(stream, fmt.Sprintf(`{"id":%d,"internalPort":22,"container":{"ipv4Address":"%s"},"externalPort":%d,"protocol":"tcp"}`, 100_000+i, address, 2000+i))
			volumes = append(volumes, fmt.Sprintf(`{"id":%d,"hostPath":"/mnt/volumes/site-1/alice/c%d/data","mode":"rw","uid":100000,"gid":100000}`, i+1, i))
		}
	}
	list := func(items []string) string { return "[" + strings.Join(items, ",") + "]" }
	return []byte(`{"site":{"id":1,"name":"measured","internalDomain":"lab.internal","dhcpRange":"10.0.200.1,10.0.200.200",` +
		`"subnetMask":"255.255.0.0","gateway":"10.0.255.254","dnsForwarders":"9.9.9.9",` +
		`"nodes":[{"name":"pve1","ipv4Address":"10.0.255.1","containers":` + list(containers) + `}],` +
		`"dnsRecords":[],"volumes":` + list(volumes) + `},` +
		`"nginx":{"httpServices":` + list(http) + `,"streamServices":` + list(stream) + `,` +
		`"externalDomains":[{"name":"d0.example.com"},{"name":"d1.example.com"},{"name":"d2.example.com"}]}}`)
}
