package main

import (
	"errors"
	"fmt"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

type setupCodeCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run makes a code by which the first account is made in a browser.
func (c setupCodeCommand) Run(e *environmentOf) error {
	if signOn := e.config.OIDC; signOn != nil {
		return fmt.Errorf("no page asks for a code, since people sign in with %s (OIDC_ISSUER): open the manager in a browser, or make an account with a password by `opensource-manager user create`", signOn.Name)
	}
	return e.withNewStore(func(s *store.Store) error {
		code, err := auth.NewSetupCode(e, s)
		if errors.Is(err, store.ErrSetUp) {
			return errors.New("there are users already: see `opensource-manager user list`, and `user create` for another one")
		}
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]string{"code": code})
		}
		fmt.Fprintln(e.stderr, "Open the manager in a browser: it asks for this code, until the manager is started again. Codes of before hold no more.")
		_, err = fmt.Fprintln(e.stdout, code)
		return err
	})
}
