package manifest

// Schema is the JSON schema of a manifest, for editors that complete and check
// while somebody writes.
func Schema() map[string]any {
	text := func(description string) map[string]any {
		return map[string]any{"type": []string{"string", "null"}, "description": description}
	}
	port := func(description string) map[string]any {
		return map[string]any{"type": []string{"integer", "null"}, "minimum": 1, "maximum": 65535, "description": description}
	}
	oneOf := func(description string, values ...any) map[string]any {
		return map[string]any{"enum": append(values, nil), "description": description}
	}
	record := func(required []string, properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": false, "required": required, "properties": properties}
	}
	list := func(of map[string]any) map[string]any {
		return map[string]any{"type": []string{"array", "null"}, "items": of}
	}
	service := record([]string{"type", "internalPort"}, map[string]any{
		"type":             map[string]any{"enum": []string{"http", "transport", "dns"}},
		"internalPort":     port("Port of the container"),
		"externalHostname": text("http: the labels before the domain"),
		"externalDomain":   text("http: the name of the domain"),
		"backendProtocol":  oneOf("http: what the container speaks; http unless given", "http", "https"),
		"authRequired":     map[string]any{"type": []string{"boolean", "null"}, "description": "http: only after a sign-in"},
		"protocol":         oneOf("transport", "tcp", "udp"),
		"externalPort":     port("transport: one of the site's range if absent"),
		"recordType":       oneOf("dns", "SRV"),
		"dnsName":          text("dns: such as _sip._tcp"),
	})
	volume := record([]string{"name", "mountPath", "mode"}, map[string]any{
		"name":      text("Name of the volume, unique in its container"),
		"mountPath": text("Where the container mounts it"),
		"mode":      oneOf("rw or ro", "rw", "ro"),
	})
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "A site of OpenSource Manager",
		"type":    "object", "additionalProperties": false, "required": []string{"version"},
		"properties": map[string]any{
			"version": map[string]any{"const": Version},
			"site": record([]string{"name"}, map[string]any{
				"name":           text("The site is known by it"),
				"internalDomain": text("Domain of its nodes and containers"),
				"dhcpRange":      text("FIRST,LAST address"),
				"subnetMask":     text("Such as 255.255.255.0"),
				"gateway":        text("Address of the site's agent or router"),
				"dnsForwarders":  text("ADDRESS,ADDRESS"),
				"externalIp":     text("Public address"),
				"volumesRoot":    text("Folder of the volumes on the nodes; /mnt/volumes if absent"),
				"portRange":      text("Where external ports are allocated; 2000-2999 if absent"),
				"publishing":     oneOf("When agents get changes; stays as it is if absent", "auto", "manual"),
			}),
			"externalDomains": list(record([]string{"name"}, map[string]any{
				"name":        text("Domain under which HTTP services are published"),
				"authServer":  text("URL of its oauth2-proxy"),
				"defaultSite": text("Name of the site that answers for it in any case"),
			})),
			"nodes": list(record([]string{"name"}, map[string]any{
				"name":        text("The node is known by it"),
				"ipv4Address": text("Address in the site"),
				"type":        oneOf("none unless given", "proxmox", "none"),
			})),
			"containers": list(record([]string{"hostname", "node"}, map[string]any{
				"hostname":    text("The container is known by it"),
				"node":        text("Name of its node"),
				"owner":       text("Whose it is; part of the path of its volumes"),
				"ipv4Address": text("Address in the site"),
				"macAddress":  text("DHCP gives the address to it"),
				"services":    list(service),
				"volumes":     list(volume),
			})),
		},
	}
}
