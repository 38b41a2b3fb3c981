package main

import (
	"fmt"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type enrollCommand struct {
	Site     string `arg:"" help:"The site, by id or by name."`
	Expires  string `default:"1h" help:"How long the token may be used: 1m to 7d (default 1h)." placeholder:"TIME"`
	Hostname string `help:"The only host that may use it." placeholder:"NAME"`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// Run makes a token and prints the command to type on the host.
func (c enrollCommand) Run(e *environmentOf) error {
	span, err := spanOf("--expires", c.Expires)
	if err != nil {
		return err
	}
	if e.config.PublicURL == nil {
		return usageError{fmt.Errorf("PUBLIC_URL: not set: it is the address at which hosts reach this manager. "+
			"Write it into %s, such as PUBLIC_URL=https://manager.example.com, and systemctl restart opensource-manager; "+
			"or give it for this command alone, by --public-url URL", config.File)}
	}
	return e.withStore(func(s *store.Store) error {
		site, err := findSite(e, s, c.Site)
		if err != nil {
			return err
		}
		token, row, err := auth.CreateEnrollment(e, s, auth.NewEnrollment{
			SiteID: site.ID, Hostname: c.Hostname, ExpiresIn: span, CreatedBy: "command line",
		})
		if err != nil {
			return err
		}
		command := auth.InstallCommand(e.config.PublicURL.String(), token)
		if c.JSON {
			return e.printJSON(show.NewEnrollment{Enrollment: show.EnrollmentOf(row), Token: token, Command: &command})
		}
		fmt.Fprintf(e.stderr, "On the host, in the folder of the agent's package, until %s:\n", row.ExpiresAt.UTC().Format(time.RFC3339))
		_, err = fmt.Fprintln(e.stdout, command)
		return err
	})
}
