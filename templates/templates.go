// Package templates embeds the templates from which the agent renders the
// configuration of each managed service: one folder per service.
package templates

import "embed"

// FS holds the templates as nginx/*.tmpl and dnsmasq/*.tmpl.
//
//go:embed nginx dnsmasq
var FS embed.FS
