package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// OIDC says by which provider people may sign in, and who may do what.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret Secret // empty for a public client
	Scopes       []string
	Name         string // of the provider, on the button
	// RoleClaim is the claim that lists a person's groups.
	RoleClaim    string
	AdminGroups  []string
	ViewerGroups []string
	// Admins and Viewers are people by subject or verified address.
	Admins  []string
	Viewers []string
}

// oidcNames are the settings of single sign-on. None of them is a flag.
var oidcNames = []string{
	"OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET_FILE", "OIDC_SCOPES", "OIDC_NAME", "OIDC_ROLE_CLAIM",
	"OIDC_ADMIN_GROUPS", "OIDC_VIEWER_GROUPS", "OIDC_ADMINS", "OIDC_VIEWERS",
}

// readOIDC reads the settings of single sign-on; it is nil if there are none.
func readOIDC(sources []source, public *url.URL) (*OIDC, []Setting, []error) {
	values := map[string]string{}
	var settings []Setting
	for _, name := range oidcNames {
		if value, from := find(name, sources); value != "" {
			values[name] = value
			settings = append(settings, Setting{Name: name, Value: shown(value), From: from})
		}
	}
	if len(values) == 0 {
		return nil, nil, nil
	}
	o := &OIDC{
		Issuer: values["OIDC_ISSUER"], ClientID: values["OIDC_CLIENT_ID"],
		Scopes: listOf(cmp.Or(values["OIDC_SCOPES"], "openid profile email"), " "), Name: cmp.Or(values["OIDC_NAME"], "single sign-on"),
		RoleClaim:   cmp.Or(values["OIDC_ROLE_CLAIM"], "groups"),
		AdminGroups: listOf(values["OIDC_ADMIN_GROUPS"], ","), ViewerGroups: listOf(values["OIDC_VIEWER_GROUPS"], ","),
		Admins: listOf(values["OIDC_ADMINS"], ","), Viewers: listOf(values["OIDC_VIEWERS"], ","),
	}
	mistakes := o.check(public)
	var err error
	if o.ClientSecret, err = clientSecret(sources); err != nil {
		mistakes = append(mistakes, err)
	}
	return o, settings, mistakes
}

func (o *OIDC) check(public *url.URL) (mistakes []error) {
	refuse := func(name, format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf(name+": "+format, args...))
	}
	issuer, err := url.Parse(o.Issuer)
	switch {
	case o.Issuer == "":
		refuse("OIDC_ISSUER", "not set: it is the address of the provider, such as https://accounts.example.com")
	case err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" || issuer.User != nil ||
		issuer.Scheme != "https" && (issuer.Scheme != "http" || !isLoopback(issuer.Hostname())):
		refuse("OIDC_ISSUER", "%q is not an address such as https://accounts.example.com (http only on loopback)", o.Issuer)
	}
	if o.ClientID == "" {
		refuse("OIDC_CLIENT_ID", "not set: it is what the provider calls this manager")
	}
	if !slices.Contains(o.Scopes, "openid") {
		refuse("OIDC_SCOPES", "openid is missing")
	}
	if public == nil {
		refuse("PUBLIC_URL", "not set: the provider sends people back to it")
	}
	if len(o.AdminGroups)+len(o.ViewerGroups)+len(o.Admins)+len(o.Viewers) == 0 {
		refuse("OIDC_ADMIN_GROUPS", "nobody would have a role: set it, or OIDC_VIEWER_GROUPS, OIDC_ADMINS or OIDC_VIEWERS")
	}
	return mistakes
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// clientSecret is what the file OIDC_CLIENT_SECRET_FILE or the systemd credential
// oidc-client-secret holds; none is a public client.
func clientSecret(sources []source) (Secret, error) {
	secret, name, path, err := fileOrCredential("OIDC_CLIENT_SECRET_FILE", "oidc-client-secret", sources)
	if err == nil && secret == "" && path != "" {
		err = fmt.Errorf("%s: %s is empty", name, path)
	}
	return Secret(secret), err
}

// listOf splits a list and leaves empty parts out.
func listOf(value, separator string) []string {
	var list []string
	for part := range strings.SplitSeq(value, separator) {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
