package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/config"
	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/render"
)

// renderCommand renders a snapshot without a manager, and without touching
// anything but the folder it writes to. It needs no root.
type renderCommand struct {
	Snapshot  string `required:"" placeholder:"FILE" help:"The snapshot: as the API shows it, as the state directory keeps it (snapshot.json), or - for standard input."`
	Out       string `required:"" placeholder:"DIR" help:"Write the files below this folder, which must be empty or new."`
	Facts     string `placeholder:"FILE" help:"What the host can do, as a support archive holds it (facts.json). Default: what this host can do."`
	Templates string `placeholder:"DIR" help:"Templates that take the place of the embedded ones, as a support archive holds them. Default: those of this host."`
	Force     bool   `help:"Write into a folder that is not empty: replace files of the same name and leave the others."`
}

// Help implements kong.HelpProvider.
func (*renderCommand) Help() string {
	return `Records that have to be left out are listed. Nothing is tested, and nothing outside of the folder is touched.

Examples:
  opensource-agent render --snapshot /var/lib/opensource-agent/snapshot.json --out /tmp/site
  opensource-agent render --snapshot bundle/snapshot.json --facts bundle/facts.json --templates bundle/templates --out /tmp/site

Exit status: 0 rendered, 2 usage or a file that cannot be used (nothing is written), 4 rendered without the records listed, or a service could not be rendered at all (nothing is written then).`
}

func (c *renderCommand) run(ctx context.Context, env environment) pass.Code {
	snapshot, err := readSnapshot(c.Snapshot, env.stdin)
	if err != nil {
		return env.fail(pass.Usage, err)
	}
	settings, err := renderingSettings(env)
	if err != nil {
		return env.fail(pass.Usage, err)
	}
	options := pass.Options{Root: settings.Root, ManagerUpstream: settings.ManagerUpstream, ManagerHostname: settings.ManagerHostname}
	if c.Templates != "" {
		if options.Templates, err = folder(c.Templates); err != nil {
			return env.fail(pass.Usage, err)
		}
	}
	facts, err := c.facts(ctx, env, options, snapshot)
	if err != nil {
		return env.fail(pass.Usage, err)
	}
	rendered := pass.Render(options, snapshot, facts)
	files, err := allFiles(rendered)
	if err != nil {
		return env.fail(pass.Rejected, err)
	}
	if err := writeTree(c.Out, files, c.Force); err != nil {
		return env.fail(pass.Usage, err)
	}
	return c.tell(env.stdout, rendered)
}

// folder is --templates, which must not be a mistake: without any templates in
// it the embedded ones are used.
func folder(name string) (fs.FS, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("--templates: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("--templates: %s is not a folder", name)
	}
	return os.DirFS(name), nil
}

// readSnapshot reads a snapshot in any of the forms people have one in.
func readSnapshot(name string, stdin io.Reader) (checkin.Snapshot, error) {
	content, err := readInput(name, stdin)
	if err != nil {
		return checkin.Snapshot{}, fmt.Errorf("--snapshot: %w", err)
	}
	// An answer of the manager and the state directory's file wrap it in "data".
	var wrapped map[string]json.RawMessage
	if err := json.Unmarshal(content, &wrapped); err != nil {
		return checkin.Snapshot{}, fmt.Errorf("--snapshot: %s is not a JSON object: %w", name, err)
	}
	if data, found := wrapped["data"]; found {
		content = data
	}
	snapshot, err := checkin.ParseSnapshot(content)
	if err != nil {
		return checkin.Snapshot{}, fmt.Errorf("--snapshot: %s: %w", name, err)
	}
	return snapshot, nil
}

// readInput reads a file, or standard input if its name is "-", as far as a
// snapshot may be long.
func readInput(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	const limit = checkin.MaxAnswer + 64<<10
	content, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, err
	}
	if len(content) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return content, nil
}

// renderingSettings loads what is set. Whoever renders need not be allowed to
// read the settings of the host, but should know that they are left aside.
func renderingSettings(env environment) (config.Rendering, error) {
	settings, err := config.LoadRendering(env.flags, env.environ)
	var faults []error
	for _, mistake := range mistakes(err) {
		if errors.Is(mistake, fs.ErrPermission) {
			env.logger(slog.LevelInfo).Warn("rendered without the settings of this host", "error", mistake)
		} else {
			faults = append(faults, mistake)
		}
	}
	return settings, errors.Join(faults...)
}

// facts returns what the host can do, from the file or by looking.
func (c *renderCommand) facts(ctx context.Context, env environment, options pass.Options, snapshot checkin.Snapshot) (render.Facts, error) {
	if c.Facts == "" {
		facts, found := pass.HostFacts(ctx, options, snapshot)
		log := env.logger(slog.LevelInfo)
		for _, warning := range found.Warnings {
			log.Warn(warning.Error())
		}
		for _, domain := range slices.Sorted(maps.Keys(found.CertificateNotes)) {
			log.Warn("certificate", "domain", domain, "error", found.CertificateNotes[domain])
		}
		return facts, nil
	}
	content, err := readInput(c.Facts, env.stdin)
	if err != nil {
		return render.Facts{}, fmt.Errorf("--facts: %w", err)
	}
	// A fact that is not understood would make other files than on that host.
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var facts render.Facts
	if err := decoder.Decode(&facts); err != nil {
		return render.Facts{}, fmt.Errorf("--facts: %s does not hold the facts of a host: %w", c.Facts, err)
	}
	return facts, nil
}

// allFiles returns the files of all services, or why one cannot be rendered.
func allFiles(rendered []pass.Rendered) ([]render.File, error) {
	var files []render.File
	var faults []error
	for _, service := range rendered {
		if service.Err != nil {
			faults = append(faults, fmt.Errorf("nothing is written, since %s cannot be rendered: %w", service.Service, service.Err))
		}
		files = append(files, service.Files...)
	}
	return files, errors.Join(faults...)
}

// tell lists the files, and the records that are not in them.
func (c *renderCommand) tell(out io.Writer, rendered []pass.Rendered) pass.Code {
	code := pass.Settled
	for _, service := range rendered {
		for _, file := range service.Files {
			fmt.Fprintln(out, filepath.Join(c.Out, file.Path))
		}
		if service.Skipped != "" {
			fmt.Fprintln(out, service.Skipped)
		}
	}
	for _, service := range rendered {
		for _, left := range service.LeftOut {
			fmt.Fprintf(out, "left out: %s: %s\n", pass.RecordName(left), left.Reason)
			code = pass.Rejected
		}
	}
	return code
}
