package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

var usersCrumb = crumb{"Users", "/users"}

func userPath(id int64) string { return fmt.Sprintf("/users/%d", id) }

// personRoles are what people of each role may do.
var personRoles = []option{
	{string(auth.RoleViewer), "Viewer: reads everything but secrets"},
	{string(auth.RoleAdmin), "Administrator: reads and changes everything"},
}

// lastAdministrator is the rule about the last one, in words.
const lastAdministrator = "The last administrator who can sign in cannot be deleted, disabled or made a viewer."

// editedUser is what an administrator sets of a person.
type editedUser struct {
	Name, Role string
	Disabled   bool
}

func describeUser(u store.User) editedUser {
	return editedUser{u.Name, u.Role, u.DisabledAt != nil}
}

// localFields are those of a person with a password, foreignFields those of one
// whose name and role come from a sign-in provider.
func localFields(u *editedUser) []*field {
	return []*field{
		text("name", "Name", &u.Name).required().hint("To sign in with, such as ada"),
		choice("role", "Role", &u.Role, personRoles...).hint("Holds from their next click on. " + lastAdministrator),
		foreignFields(u)[0],
	}
}

func foreignFields(u *editedUser) []*field {
	return []*field{check("disabled", "Disabled", &u.Disabled).hint("May not sign in, and is signed out everywhere")}
}

func (d *dashboard) listUsers(v *visit) error {
	l := v.listing("Users", column{"Name", "name"}, column{"Role", "role"}, column{"Signs in with", ""}, column{"State", ""}, column{"Created", "createdAt"})
	if l.Sort == "" {
		l.Sort = "name"
	}
	users, total, err := d.store.ListUsers(v.Request.Context(), l.options())
	if err != nil {
		return err
	}
	l.Total = total
	if v.canWrite() {
		l.New = crumb{"New user", "/users/new"}
	}
	for _, u := range users {
		l.Rows = append(l.Rows, row{"user-" + strconv.FormatInt(u.ID, 10), []cell{
			{Text: u.Name, Link: userPath(u.ID), Note: v.you(u)}, {Text: roleNames[u.Role]}, signsInWith(u), v.userState(u), v.when(&u.CreatedAt),
		}})
	}
	p := v.page("Users", "/users")
	return v.show(http.StatusOK, p, usersPage(p, l))
}

// you marks the visitor's own record.
func (v *visit) you(u store.User) string {
	if v.isSelf(u) {
		return "you"
	}
	return ""
}

func (v *visit) isSelf(u store.User) bool { return v.Who.Kind == store.ActorUser && v.Who.ID == u.ID }

func signsInWith(u store.User) cell {
	if u.Local() {
		return cell{Text: "a password"}
	}
	return cell{Text: u.Issuer}
}

func (v *visit) userState(u store.User) cell {
	if u.DisabledAt != nil {
		return cell{Text: "disabled", Class: "neutral", Note: ago(max(0, v.Now.Sub(*u.DisabledAt)))}
	}
	return cell{Text: "can sign in", Class: good}
}

// userView is all about one person.
type userView struct {
	Path     string
	Details  []detail
	Local    bool
	Self     bool
	CanWrite bool
}

func (d *dashboard) user(v *visit) error {
	u, err := d.userOf(v)
	if err != nil {
		return err
	}
	view := userView{Path: userPath(u.ID), Local: u.Local(), Self: v.isSelf(u), CanWrite: v.canWrite(), Details: []detail{
		{Name: "State", cell: v.userState(u)},
		{Name: "Role", cell: cell{Text: choice("", "", &u.Role, personRoles...).words()}},
		{Name: "Signs in with", cell: signsInWith(u)},
		{Name: "Created", cell: v.when(&u.CreatedAt)},
	}}
	if !u.Local() {
		view.Details = append(view.Details, detail{Name: "Known there as", cell: cell{Text: u.Subject}})
	}
	p := v.page(u.Name, "/users", usersCrumb)
	return v.show(http.StatusOK, p, userPage(p, view))
}

// newUser makes a first password, which only its answer shows: none is chosen by
// one person for another.
func (d *dashboard) newUser(v *visit) error {
	wanted := editedUser{Role: string(auth.RoleViewer)}
	f := &form{Fields: localFields(&wanted)[:2], Submit: "Create the user", Cancel: "/users"}
	f.Fields[1].Hint = ""
	return v.fillOnce(v.page("New user", "/users", usersCrumb), f, func(typed url.Values) (shown, error) {
		if err := f.read(typed); err != nil {
			return shown{}, err
		}
		password := auth.GeneratePassword()
		row, err := auth.CreateUser(v.Request.Context(), d.store, wanted.Name, auth.Role(wanted.Role), password)
		return shownPassword(row, password, "The user was created."), err
	})
}

// shownPassword is a new password, and what to do with it.
func shownPassword(u store.User, password, done string) shown {
	return shown{
		Title: u.Name, Done: done, Name: "The password of " + u.Name, Secret: password, Path: userPath(u.ID), Back: usersCrumb,
		Note: "Give it to that person in private. Signed in, they choose one of their own by a click on their name, at the top of every page.",
	}
}

func (d *dashboard) editUser(v *visit) error {
	u, err := d.userOf(v)
	if err != nil {
		return err
	}
	fields := localFields
	if !u.Local() {
		fields = foreignFields
	}
	edited := describeUser(u)
	before := fields(&edited)
	f := &form{Fields: fields(&edited), Version: version(edited), Submit: "Save", Cancel: userPath(u.ID)}
	return v.fill(v.page("Edit the user", "/users", usersCrumb, crumb{u.Name, userPath(u.ID)}), f, func(typed url.Values) (done, error) {
		var wanted editedUser
		change := auth.UserChange{Disabled: &wanted.Disabled, Seen: func(now store.User) error {
			wanted = describeUser(now)
			return changing(f, typed, fields)(&wanted)
		}}
		if u.Local() {
			change.Name, change.Role = &wanted.Name, (*auth.Role)(&wanted.Role)
		}
		row, err := auth.ChangeUser(v.Request.Context(), d.store, u.ID, change)
		now := describeUser(row)
		return saved(userPath(u.ID), "user", 0, before, fields(&now)), err
	})
}

func (d *dashboard) resetPassword(v *visit) error {
	u, err := d.userOf(v)
	switch {
	case err != nil:
		return err
	case v.isSelf(u):
		d.goTo(v.Context, "/account")
		return nil
	case !u.Local():
		return &store.ConflictError{Message: fmt.Sprintf("%q signs in with a provider and has no password here", u.Name)}
	}
	q := question{
		Text: fmt.Sprintf("The present password of %q ends, and so do all their sessions. The new one is shown to you, once.", u.Name),
		Note: "API keys that they have made work on.", Button: "Make a new password", Cancel: userPath(u.ID),
	}
	return v.askOnce(v.page(fmt.Sprintf("A new password for %q?", u.Name), "/users", usersCrumb, crumb{u.Name, userPath(u.ID)}), q, func() (shown, error) {
		password := auth.GeneratePassword()
		row, err := auth.ChangeUser(v.Request.Context(), d.store, u.ID, auth.UserChange{Password: &password})
		return shownPassword(row, password, "There is a new password."), err
	})
}

func (d *dashboard) signUserOut(v *visit) error {
	u, err := d.userOf(v)
	if err != nil {
		return err
	}
	q := question{
		Text: fmt.Sprintf("%q is signed out in every browser, and can sign in again.", u.Name), Note: "To keep somebody out, disable them.",
		Button: "Sign out everywhere", Cancel: userPath(u.ID),
	}
	return v.ask(v.page(fmt.Sprintf("Sign %q out everywhere?", u.Name), "/users", usersCrumb, crumb{u.Name, userPath(u.ID)}), q, func() (done, error) {
		return done{Path: userPath(u.ID), Text: fmt.Sprintf("%q was signed out everywhere.", u.Name)}, d.store.EndSessions(v.Request.Context(), u.ID)
	})
}

func (d *dashboard) deleteUser(v *visit) error {
	u, err := d.userOf(v)
	if err != nil {
		return err
	}
	view := vanishing{What: fmt.Sprintf("user %q", u.Name), Cancel: userPath(u.ID), Keeps: "They are signed out at once. What they did stays in the audit log, and API keys that they have made work on."}
	if u.Role == string(auth.RoleAdmin) {
		view.Keeps += " " + lastAdministrator
	}
	return v.confirm(v.page("Delete the "+view.What+"?", "/users", usersCrumb, crumb{u.Name, userPath(u.ID)}), view, func() (done, error) {
		return done{Path: "/users", Text: fmt.Sprintf("The user %q was deleted.", u.Name)}, d.store.DeleteUser(v.Request.Context(), u.ID)
	})
}

// userOf is the user of the address.
func (d *dashboard) userOf(v *visit) (store.User, error) {
	id, err := v.id()
	if err != nil {
		return store.User{}, err
	}
	return d.store.GetUser(v.Request.Context(), id)
}

// accountView is what visitors see of themselves.
type accountView struct {
	Details []detail
	Form    *form // nil for whoever has no password here
	Issuer  string
}

// account is the visitor's own: any role may change its password.
func (d *dashboard) account(v *visit) error {
	u, err := d.store.GetUser(v.Request.Context(), v.Who.ID)
	if err != nil {
		return err
	}
	view := accountView{Issuer: u.Issuer, Details: []detail{
		{Name: "Name", cell: cell{Text: u.Name}},
		{Name: "Role", cell: cell{Text: choice("", "", &u.Role, personRoles...).words()}},
		{Name: "Signs in with", cell: signsInWith(u)},
	}}
	if !u.Local() {
		return d.showAccount(v, http.StatusOK, view)
	}
	var present, wanted, again string
	view.Form = &form{Submit: "Change the password", Cancel: "/agents", Fields: []*field{
		presentPassword("currentPassword", "Present password", &present).required(),
		password("newPassword", "New password", &wanted).required().hint("10 characters or more. A few words are easy to remember and hard to guess."),
		password("again", "New password, again", &again).required(),
	}}
	if v.Request.Method != http.MethodPost {
		return d.showAccount(v, http.StatusOK, view)
	}
	typed, err := v.typed()
	if err != nil {
		return err
	}
	if err = view.Form.read(typed); err == nil {
		err = sameAgain(wanted, again)
	}
	if err == nil {
		err = d.auth.ChangePassword(v.Request.Context(), present, wanted)
	}
	var tooMany *auth.TooManyError
	if errors.As(err, &tooMany) {
		v.Header("Retry-After", strconv.Itoa(tooMany.Seconds()))
		view.Form.fault("currentPassword", tooMany.Error())
		return d.showAccount(v, http.StatusTooManyRequests, view)
	}
	if status := view.Form.refused(err); status != 0 {
		return d.showAccount(v, status, view)
	}
	if err != nil {
		return err
	}
	return v.goTo("/account", "Your password was changed. Everywhere else you are signed out.")
}

// sameAgain returns an InvalidError unless a password was typed twice the same.
func sameAgain(password, again string) error {
	if password != again {
		return &store.InvalidError{Fields: map[string]string{"again": "this is not the same as the one above"}}
	}
	return nil
}

func (d *dashboard) showAccount(v *visit, status int, view accountView) error {
	p := v.page("Your account", "/account")
	return v.show(status, p, accountPage(p, view))
}
