package dashboard

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

// setupView is the form by which a fresh manager gets its first account.
type setupView struct {
	Form     *form
	Mismatch string // how the address differs from PUBLIC_URL
}

type firstAccount struct{ Code, Name, Password, Again string }

func setupFields(a *firstAccount) []*field {
	return []*field{
		text("code", "Setup code", &a.Code).required().hint("Such as ABCDE-FGHIJ-KLMNO-PQRST"),
		text("name", "Your name", &a.Name).required().username().hint("To sign in with, such as ada"),
		password("password", "Password", &a.Password).required().hint("10 characters or more"),
		password("again", "Password, again", &a.Again).required(),
	}
}

// isSetUp reports whether anybody could sign in.
func (d *dashboard) isSetUp(c *gin.Context) (bool, error) {
	if d.auth.SingleSignOn(c.Request.Context()).Name != "" {
		return true, nil
	}
	return d.store.HasUsers(c.Request.Context())
}

func (d *dashboard) setupForm(c *gin.Context) {
	if setUp, err := d.isSetUp(c); err != nil {
		d.fault(c, "show setup page", err)
		return
	} else if setUp {
		d.goTo(c, "/sign-in")
		return
	}
	d.showSetup(c, http.StatusOK, &form{Fields: setupFields(&firstAccount{Name: "admin"})})
}

func (d *dashboard) showSetup(c *gin.Context, status int, f *form) {
	f.Submit = "Create the account"
	p := d.page("Set up this manager")
	view := setupView{Form: f, Mismatch: d.auth.PublicURLMismatch(auth.RequestOf(c.Request.Context()).HTTP, d.publicURL)}
	d.show(c, status, framed(p, setupPage(p, view)))
}

// setUp makes the first account, and leads on to the first site.
func (d *dashboard) setUp(c *gin.Context) {
	if done, err := d.isSetUp(c); err != nil {
		d.fault(c, "set up", err)
		return
	} else if done { // by another one, or by a second click
		d.goTo(c, "/sign-in")
		return
	}
	var wanted firstAccount
	f := &form{Fields: setupFields(&wanted)}
	if refused := readForm(c); refused != 0 {
		f.Faults = []string{unreadForm(refused)}
		d.showSetup(c, refused, f)
		return
	}
	_ = f.read(c.Request.PostForm) // texts can be anything
	ctx := c.Request.Context()
	err := sameAgain(wanted.Password, wanted.Again)
	if err == nil {
		err = d.auth.SetUp(ctx, auth.RequestOf(ctx).Client, wanted.Code, wanted.Name, wanted.Password)
	}

	var tooMany *auth.TooManyError
	status := f.refused(err)
	switch {
	case err == nil:
		v := &visit{Context: c, d: d}
		_ = v.goTo("/sites/new", "Your account was created, and you are signed in. Next comes your first site.") // cannot fail
		return
	case errors.Is(err, store.ErrSetUp):
		d.goTo(c, "/sign-in")
		return
	case errors.Is(err, auth.ErrUnauthorized):
		status = http.StatusUnauthorized
		f.fault("code", "this is not the setup code: only the last one made holds, and each start of the manager makes another. The command above shows a new one")
	case errors.As(err, &tooMany):
		status = http.StatusTooManyRequests
		c.Header("Retry-After", strconv.Itoa(tooMany.Seconds()))
		f.Faults = []string{"Too many attempts. Please wait " + strconv.Itoa(tooMany.Seconds()) + " seconds."}
	case status == 0:
		d.fault(c, "set up", err)
		return
	}
	d.showSetup(c, status, f)
}
