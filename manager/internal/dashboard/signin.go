package dashboard

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
)

// maxForm is the largest form that is read, in bytes.
const maxForm = 8 << 10

type signInForm struct {
	Name         string
	Problem      string
	Mismatch     string // how the address differs from PUBLIC_URL
	NoUsers      bool
	SingleSignOn auth.SingleSignOn
}

func (d *dashboard) signInForm(c *gin.Context) {
	if _, err := d.auth.Person(c.Request.Context()); err == nil {
		d.goTo(c, "/agents")
		return
	}
	d.showSignIn(c, http.StatusOK, signInForm{})
}

func (d *dashboard) showSignIn(c *gin.Context, status int, form signInForm) {
	hasUsers, err := d.store.HasUsers(c.Request.Context())
	if err != nil {
		d.fault(c, "show sign-in page", err)
		return
	}
	form.SingleSignOn = d.auth.SingleSignOn(c.Request.Context())
	form.NoUsers = !hasUsers && form.SingleSignOn.Name == ""
	form.Mismatch = d.auth.PublicURLMismatch(auth.RequestOf(c.Request.Context()).HTTP, d.publicURL)
	d.show(c, status, signInPage(d.page("Sign in"), form))
}

func (d *dashboard) signIn(c *gin.Context) {
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxForm)
	if err := c.Request.ParseForm(); err != nil {
		d.showSignIn(c, http.StatusBadRequest, signInForm{Problem: "The form could not be read. Please try again."})
		return
	}
	name := c.Request.PostForm.Get("name")
	ctx := c.Request.Context()
	_, err := d.auth.SignIn(ctx, auth.RequestOf(ctx).Client, name, c.Request.PostForm.Get("password"))

	var tooMany *auth.TooManyError
	switch {
	case err == nil:
		d.goTo(c, "/agents")
	case errors.Is(err, auth.ErrUnauthorized):
		d.showSignIn(c, http.StatusUnauthorized, signInForm{Name: name, Problem: "Name or password is wrong."})
	case errors.As(err, &tooMany):
		c.Header("Retry-After", strconv.Itoa(tooMany.Seconds()))
		d.showSignIn(c, http.StatusTooManyRequests, signInForm{
			Name: name, Problem: "Too many attempts. Please wait " + strconv.Itoa(tooMany.Seconds()) + " seconds.",
		})
	default:
		d.fault(c, "sign in", err)
	}
}

func (d *dashboard) signOut(c *gin.Context) {
	if err := d.auth.SignOut(c.Request.Context()); err != nil {
		d.fault(c, "sign out", err)
		return
	}
	d.goTo(c, "/sign-in")
}
