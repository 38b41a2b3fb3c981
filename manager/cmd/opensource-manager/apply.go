package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"opensource.internal/manager/internal/manifest"
	"opensource.internal/manager/internal/store"
)

type applyCommand struct {
	Files  []string `name:"file" short:"f" sep:"none" placeholder:"FILE" help:"A manifest, - for stdin. More than one are applied together."`
	DryRun bool     `help:"Find out what would change, by doing and undoing it."`
	Prune  bool     `help:"Delete what is stored of these sites and is not in the files. External domains stay."`
	Schema bool     `help:"Print the JSON schema of a manifest, for editors, and do nothing else."`
	JSON   bool     `name:"json" help:"Print JSON."`
}

// Help is shown by --help.
func (applyCommand) Help() string {
	return `Makes sites what files say, all of it in one transaction or nothing, and prints
what changed. Sites are known by name and created if need be. Doing it again
changes nothing. What a file gets wrong is printed with line, column and field.

  opensource-manager apply -f site.yaml --dry-run
  opensource-manager apply -f site.yaml -f shared.yaml --prune
  opensource-manager export lab | opensource-manager apply -f -`
}

// Run applies manifests.
func (c applyCommand) Run(e *environmentOf) error {
	if c.Schema {
		return e.printJSON(manifest.Schema())
	}
	if len(c.Files) == 0 {
		return usageError{errors.New("name at least one file: -f FILE, or -f - for stdin (see --help)")}
	}
	manifests, err := c.read(e)
	if err != nil {
		return c.refuse(e, err)
	}
	open := e.withNewStore
	if c.DryRun {
		open = e.withStore
	}
	return open(func(s *store.Store) error {
		report, err := manifest.Apply(e, s, manifests, manifest.Options{Prune: c.Prune, DryRun: c.DryRun})
		if err != nil {
			return c.refuse(e, err)
		}
		if c.JSON {
			return e.printJSON(report)
		}
		return report.Write(e.stdout)
	})
}

// read reads all files, and gathers what is wrong with any of them.
func (c applyCommand) read(e *environmentOf) ([]*manifest.Manifest, error) {
	var all []*manifest.Manifest
	var faults manifest.FaultsError
	for _, name := range c.Files {
		shown, data, err := readFile(e, name)
		if err != nil {
			return nil, err
		}
		manifests, err := manifest.Read(shown, data, formatOf(name, data))
		var found *manifest.FaultsError
		if errors.As(err, &found) {
			faults.Faults = append(faults.Faults, found.Faults...)
		}
		all = append(all, manifests...)
	}
	if len(faults.Faults) > 0 {
		return nil, &faults
	}
	return all, nil
}

// readFile reads a file, or stdin, no further than it can be a manifest.
func readFile(e *environmentOf, name string) (shown string, data []byte, err error) {
	source, shown := e.stdin, "stdin"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", nil, fmt.Errorf("read manifest: %w", err)
		}
		defer file.Close()
		source, shown = file, name
	}
	if data, err = io.ReadAll(io.LimitReader(source, manifest.MaxSize+1)); err != nil {
		return "", nil, fmt.Errorf("read manifest %s: %w", shown, err)
	}
	return shown, data, nil
}

// formatOf tells JSON by the name, on stdin by the first character.
func formatOf(name string, data []byte) manifest.Format {
	if filepath.Ext(name) == ".json" || name == "-" && bytes.HasPrefix(bytes.TrimSpace(manifest.WithoutBOM(data)), []byte("{")) {
		return manifest.JSON
	}
	return manifest.YAML
}

// refuse prints the faults as compilers do, so that editors find the places.
func (c applyCommand) refuse(e *environmentOf, err error) error {
	var found *manifest.FaultsError
	if !errors.As(err, &found) {
		return err
	}
	if c.JSON {
		if err := e.printJSON(found); err != nil {
			return err
		}
	} else {
		for _, fault := range found.Faults {
			fmt.Fprintln(e.stderr, printable(fault.String()))
		}
	}
	if len(found.Faults) == 1 {
		return errors.New("nothing was changed: 1 fault")
	}
	return fmt.Errorf("nothing was changed: %d faults", len(found.Faults))
}

// ownPort is the port that the service listens on, which no site may have.
func ownPort(listen string) []int {
	_, text, _ := net.SplitHostPort(listen)
	port, err := strconv.Atoi(text)
	if err != nil || port == 0 {
		return nil
	}
	return []int{port}
}

type exportCommand struct {
	Sites []string `arg:"" optional:"" placeholder:"SITE" help:"Sites, by id or by name."`
	All   bool     `help:"All sites and all external domains."`
	JSON  bool     `name:"json" help:"Print JSON."`
}

// Help is shown by --help.
func (exportCommand) Help() string {
	return `Prints sites as manifests, one document each, which apply takes back without a
change.

  opensource-manager export lab > lab.yaml
  opensource-manager export --all > everything.yaml`
}

// Run prints manifests.
func (c exportCommand) Run(e *environmentOf) error {
	if c.All == (len(c.Sites) > 0) {
		return usageError{errors.New("name the sites to export, or give --all (see --help)")}
	}
	return e.withStore(func(s *store.Store) error {
		ids, err := c.find(e, s)
		if err != nil {
			return err
		}
		present, err := s.Read(e, store.Scope{IDs: ids, All: c.All})
		if err != nil {
			return err
		}
		format := manifest.YAML
		if c.JSON {
			format = manifest.JSON
		}
		written, err := manifest.Export(present, c.All, format)
		if err != nil {
			return err
		}
		_, err = e.stdout.Write(written)
		return err
	})
}

// find finds the sites, and names every one that does not exist.
func (c exportCommand) find(e *environmentOf, s *store.Store) (ids []int64, err error) {
	var missing []error
	for _, text := range c.Sites {
		site, err := findSite(e, s, text)
		if err != nil {
			missing = append(missing, err)
		}
		ids = append(ids, site.ID)
	}
	return ids, errors.Join(missing...)
}
