package dashboard

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
)

// CallbackPath is where the sign-in provider sends people back to.
const CallbackPath = "/sign-in/oidc/callback"

// leave sends a person to the provider.
func (d *dashboard) leave(c *gin.Context) {
	wanted := c.Query("next")
	address, err := d.auth.LeaveForProvider(c.Writer, wanted)
	if err != nil {
		d.notSignedIn(c, wanted, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	c.Redirect(http.StatusSeeOther, address)
}

// comeBack signs in whom the provider sends back, and leads to the page that was
// asked for.
func (d *dashboard) comeBack(c *gin.Context) {
	wanted, err := d.auth.ReturnFromProvider(c.Writer, c.Request)
	if err != nil {
		d.notSignedIn(c, wanted, err)
		return
	}
	d.goTo(c, next(wanted))
}

// notSignedIn says on the sign-in page why a provider has not signed somebody in.
func (d *dashboard) notSignedIn(c *gin.Context, wanted string, err error) {
	var refused *auth.SignInError
	switch {
	case errors.As(err, &refused):
		if refused.Cause != nil {
			auth.RequestOf(c.Request.Context()).Logger().Warn("sign-in by provider refused", "err", refused.Cause)
		}
		d.showSignIn(c, http.StatusForbidden, signInForm{Next: wanted, Problem: refused.Message})
	case errors.Is(err, auth.ErrNoProvider):
		auth.RequestOf(c.Request.Context()).Logger().Warn("sign in by provider", "err", err)
		d.showSignIn(c, http.StatusServiceUnavailable, signInForm{Next: wanted, Problem: "The sign-in provider cannot be used at the moment. Please try again later."})
	default:
		d.fault(c, "sign in by provider", err)
	}
}
