package dashboard

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
)

// formTimeout is how long a form may take to arrive.
const formTimeout = 5 * time.Second

// unreadForm is what people are told whose form was not read.
func unreadForm(status int) string {
	switch status {
	case http.StatusRequestTimeout:
		return "The form could not be read: it did not arrive within 5 seconds. Go back, and send it again."
	case http.StatusRequestEntityTooLarge:
		return "The form could not be read: it is larger than 64 KiB. Go back, and shorten it."
	}
	return "The form could not be read. Go back, and send it again."
}

// readForm reads the form of a request. It returns the status of the answer if
// there is none to be read, else 0.
func readForm(c *gin.Context) (refused int) {
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(formTimeout)) // the server has one, too
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxForm)
	err := c.Request.ParseForm()
	var network net.Error
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &network) && network.Timeout():
		c.Header("Connection", "close")
		// The server counts the client as gone, which still waits for its answer.
		c.Request = c.Request.WithContext(context.WithoutCancel(c.Request.Context()))
		return http.StatusRequestTimeout
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

type signInForm struct {
	Next         string // where to go then
	Name         string
	Problem      string
	Mismatch     string // how the address differs from PUBLIC_URL
	SingleSignOn auth.SingleSignOn
}

// away is where somebody leaves for the provider.
func (f signInForm) away() string {
	if f.Next == "" {
		return "/sign-in/oidc"
	}
	return "/sign-in/oidc?" + url.Values{"next": {f.Next}}.Encode()
}

func (d *dashboard) signInForm(c *gin.Context) {
	if _, err := d.auth.Person(c.Request.Context()); err == nil {
		d.goTo(c, next(c.Query("next")))
		return
	}
	if setUp, err := d.isSetUp(c); err != nil {
		d.fault(c, "show sign-in page", err)
		return
	} else if !setUp {
		d.goTo(c, "/setup")
		return
	}
	d.showSignIn(c, http.StatusOK, signInForm{Next: c.Query("next")})
}

func (d *dashboard) showSignIn(c *gin.Context, status int, form signInForm) {
	form.SingleSignOn = d.auth.SingleSignOn(c.Request.Context())
	form.Mismatch = d.auth.PublicURLMismatch(auth.RequestOf(c.Request.Context()).HTTP, d.publicURL)
	p := d.page("Sign in")
	d.show(c, status, framed(p, signInPage(p, form)))
}

func (d *dashboard) signIn(c *gin.Context) {
	if refused := readForm(c); refused != 0 {
		d.showSignIn(c, refused, signInForm{Problem: unreadForm(refused)})
		return
	}
	name, back := c.Request.PostForm.Get("name"), c.Request.PostForm.Get("next")
	ctx := c.Request.Context()
	_, err := d.auth.SignIn(ctx, auth.RequestOf(ctx).Client, name, c.Request.PostForm.Get("password"))

	var tooMany *auth.TooManyError
	switch {
	case err == nil:
		d.goTo(c, next(back))
	case errors.Is(err, auth.ErrUnauthorized):
		d.showSignIn(c, http.StatusUnauthorized, signInForm{Next: back, Name: name, Problem: "Name or password is wrong."})
	case errors.As(err, &tooMany):
		c.Header("Retry-After", strconv.Itoa(tooMany.Seconds()))
		d.showSignIn(c, http.StatusTooManyRequests, signInForm{
			Next: back, Name: name, Problem: "Too many attempts. Please wait " + strconv.Itoa(tooMany.Seconds()) + " seconds.",
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
