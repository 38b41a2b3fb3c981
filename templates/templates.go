// Package templates embeds the templates from which the agent renders the
// configuration of each managed service: one folder per service. They are
// text/template files; what a template can use is documented by the views in
// opensource.internal/agent/render.
package templates

import "embed"

// FS holds the templates as nginx/*.tmpl and dnsmasq/*.tmpl.
//
//go:embed nginx/*.tmpl dnsmasq/*.tmpl
var FS embed.FS
