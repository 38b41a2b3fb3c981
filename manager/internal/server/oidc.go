package server

import (
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/dashboard"
)

// singleSignOn is nil if people sign in with passwords only.
func singleSignOn(c config.Config) *auth.OIDCOptions {
	if c.OIDC == nil {
		return nil
	}
	o := c.OIDC
	return &auth.OIDCOptions{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: string(o.ClientSecret), Scopes: o.Scopes, Name: o.Name,
		CallbackURL: c.PublicURL.String() + dashboard.CallbackPath, RoleClaim: o.RoleClaim,
		AdminGroups: o.AdminGroups, ViewerGroups: o.ViewerGroups, Admins: o.Admins, Viewers: o.Viewers,
	}
}
