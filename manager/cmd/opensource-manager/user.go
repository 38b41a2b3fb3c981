package main

import (
	"errors"
	"fmt"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type userCommands struct {
	Create userCreate `cmd:"" help:"Create a user."`
	Passwd userPasswd `cmd:"" help:"Set a user's password and end all their sessions."`

	List    userList    `cmd:"" help:"List the users."`
	Role    userRole    `cmd:"" help:"Give a user another role; it holds from their next request on."`
	Disable userDisable `cmd:"" help:"Let a user sign in no more, and end all their sessions."`
	Enable  userEnable  `cmd:"" help:"Let a disabled user sign in again."`
	Delete  userDelete  `cmd:"" help:"Delete a user."`
}

type userCreate struct {
	Name string `arg:"" help:"Name to sign in with."`
	Role string `enum:"admin,viewer" default:"admin" help:"admin or viewer (default admin)."`
	JSON bool   `name:"json" help:"Print JSON."`
	passwordSource
}

// Run creates a user.
func (c userCreate) Run(e *environmentOf) error {
	password, err := c.read(e)
	if err != nil {
		return err
	}
	return e.withNewStore(func(s *store.Store) error {
		row, err := auth.CreateUser(e, s, c.Name, auth.Role(c.Role), password)
		if err != nil {
			return err
		}
		return c.print(e, row, password, c.JSON, fmt.Sprintf("created user %s (%s)", row.Name, row.Role))
	})
}

type userPasswd struct {
	Name string `arg:"" help:"Name of the user."`
	JSON bool   `name:"json" help:"Print JSON."`
	passwordSource
}

// Run sets a password.
func (c userPasswd) Run(e *environmentOf) error {
	password, err := c.read(e)
	if err != nil {
		return err
	}
	return e.withStore(func(s *store.Store) error {
		err := auth.SetPassword(e, s, c.Name, password)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no user %q", c.Name)
		}
		if err != nil {
			return err
		}
		row, err := s.UserByName(e, auth.FoldName(c.Name))
		if err != nil {
			return err
		}
		return c.print(e, row, password, c.JSON, "changed the password of "+row.Name)
	})
}

type userList struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists all users.
func (c userList) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		rows, _, err := s.ListUsers(e, store.ListOptions{Limit: store.All, Sort: "name"})
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(shownAs(rows, show.UserOf))
		}
		t := newTable(e.stdout, "ID", "NAME", "ROLE", "SIGNS IN BY", "CREATED", "STATE")
		for _, u := range rows {
			by, state := u.Issuer, "enabled"
			if by == "" {
				by = "password"
			}
			if u.DisabledAt != nil {
				state = "disabled " + day(u.DisabledAt)
			}
			t.row(u.ID, u.Name, u.Role, by, day(&u.CreatedAt), state)
		}
		return t.flush()
	})
}

// namedUser is a command about one user.
type namedUser struct {
	Name string `arg:"" help:"Name of the user."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// find returns the user. Those of a sign-in provider keep their capitals.
func (c namedUser) find(e *environmentOf, s *store.Store) (store.User, error) {
	for _, name := range []string{c.Name, auth.FoldName(c.Name)} {
		user, err := s.UserByName(e, name)
		if !errors.Is(err, store.ErrNotFound) {
			return user, err
		}
	}
	return store.User{}, fmt.Errorf("there is no user %q", c.Name)
}

// change changes the user and says what was done.
func (c namedUser) change(e *environmentOf, change auth.UserChange, done string) error {
	return e.withStore(func(s *store.Store) error {
		user, err := c.find(e, s)
		if err != nil {
			return err
		}
		if user, err = auth.ChangeUser(e, s, user.ID, change); err != nil {
			return err
		}
		return c.tell(e, user, done)
	})
}

func (c namedUser) tell(e *environmentOf, user store.User, done string) error {
	if c.JSON {
		return e.printJSON(show.UserOf(user))
	}
	_, err := fmt.Fprintf(e.stdout, done+"\n", user.Name)
	return err
}

type userRole struct {
	namedUser
	Role string `arg:"" enum:"admin,viewer" help:"admin or viewer."`
}

// Run gives a user another role.
func (c userRole) Run(e *environmentOf) error {
	role := auth.Role(c.Role)
	return c.change(e, auth.UserChange{Role: &role}, "%s is "+c.Role+" now")
}

type userDisable struct{ namedUser }

// Run disables a user.
func (c userDisable) Run(e *environmentOf) error {
	disabled := true
	return c.change(e, auth.UserChange{Disabled: &disabled}, "disabled %s")
}

type userEnable struct{ namedUser }

// Run enables a user.
func (c userEnable) Run(e *environmentOf) error {
	disabled := false
	return c.change(e, auth.UserChange{Disabled: &disabled}, "enabled %s")
}

type userDelete struct{ namedUser }

// Run deletes a user.
func (c userDelete) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		user, err := c.find(e, s)
		if err != nil {
			return err
		}
		if err := s.DeleteUser(e, user.ID); err != nil {
			return err
		}
		return c.tell(e, user, "deleted %s")
	})
}
