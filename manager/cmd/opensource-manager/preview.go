package main

import (
	"fmt"
	"strings"

	"opensource.internal/manager/internal/preview"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

type previewCommand struct {
	ofSite
	Revision int64 `help:"Number of a revision; what the inventory has now if not given." placeholder:"N"`
	JSON     bool  `name:"json" help:"Print JSON."`
}

// Help is shown by --help.
func (previewCommand) Help() string {
	return `Prints the files of nginx and dnsmasq as the site's agent would write them, for
the versions that it has told. REVISION stands where it writes a digest.`
}

// Run renders the files.
func (c previewCommand) Run(e *environmentOf) error {
	return e.withSite(c.ofSite, func(_ *store.Store, snapshots *snapshot.Cache, site store.Site) error {
		of, err := snapshots.Inventory(e, site.ID)
		if c.Revision != 0 {
			of, err = snapshots.Revision(e, site.ID, c.Revision)
			err = namedRevision(err, c.Revision)
		}
		if err != nil {
			return err
		}
		host, err := snapshots.Host(e, site.ID)
		if err != nil {
			return err
		}
		rendered := show.PreviewOf(of, host, version)
		if c.JSON {
			return e.printJSON(rendered)
		}
		return printPreview(e, rendered.Preview)
	})
}

// printPreview writes the files one after the other, each below its path, and
// what is no part of them as comments.
func printPreview(e *environmentOf, p preview.Preview) error {
	for _, assumption := range p.Host.Assumptions {
		fmt.Fprintln(e.stdout, "# Note:", printable(assumption))
	}
	for _, service := range p.Services {
		if service.Note != nil {
			fmt.Fprintf(e.stdout, "# %s: %s\n", service.Name, printable(*service.Note))
		}
		for _, left := range service.LeftOut {
			fmt.Fprintf(e.stdout, "# %s: left out is %s %s: %s\n", service.Name, left.Kind, printable(left.Name), printable(left.Reason))
		}
		for _, file := range service.Files {
			if _, err := fmt.Fprintf(e.stdout, "\n# ==> %s <==\n%s\n", file.Path, strings.TrimRight(file.Content, "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}
