package soak

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"opensource.internal/templates"
)

// overrides are edits of the templates by which nginx and dnsmasq refuse the
// odd records. In the snapshot these are as good as any other.
var overrides = []struct{ name, before, insert string }{
	{"nginx/http-service.tmpl", "\n{{template \"nginx/certificate.tmpl\" .}}", `
{{- if eq (printf "%.13s" .Name) "odd-directive"}}
        no_such_directive on;
{{- else if eq (printf "%.15s" .Name) "odd-certificate"}}
        ssl_certificate /no/such/certificate;
        ssl_certificate_key /no/such/key;
{{- else if eq (printf "%.9s" .Name) "odd-brace"}}
        location /odd {
{{- end}}`},
	{"nginx/stream-service.tmpl", "\n        proxy_pass", `
{{- if eq .Port 4000}}
        proxy_pass nowhere;
{{- end}}`},
	{"dnsmasq/dhcp-hosts.tmpl", "{{.MAC}}", `{{if eq (printf "%.8s" .FullName) "odd-card"}}no card!,{{end}}`},
	{"dnsmasq/hosts.tmpl", "{{.Address}}", `{{if eq .Name "odd-name"}}no-address-{{end}}`},
	{"dnsmasq/dnsmasq.conf.tmpl", ",{{.Port}}", `{{if eq (printf "%.9s" .Name) "_odd._tcp"}},no-port{{end}}`},
}

// putOverrides installs them.
func putOverrides() error {
	for _, override := range overrides {
		original, err := fs.ReadFile(templates.FS, override.name)
		if err != nil {
			return err
		}
		before, after, found := strings.Cut(string(original), override.before)
		if !found {
			return fmt.Errorf("the template %s has no %q any more", override.name, override.before)
		}
		file := filepath.Join(overridesDir, override.name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(before+override.insert+override.before+after), 0o644); err != nil {
			return err
		}
	}
	return nil
}
