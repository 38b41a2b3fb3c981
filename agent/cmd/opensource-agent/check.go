package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"

	"opensource.internal/agent/internal/config"
	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/internal/preflight"
	"opensource.internal/agent/internal/systemd"
	"opensource.internal/agent/render"
)

// originals are the templates of the package, for people to copy.
const originals = "/usr/share/opensource-agent/templates"

// checkCommand looks at what a pass depends on.
type checkCommand struct {
	JSON bool `help:"Print JSON: a list of findings."`
}

// Help implements kong.HelpProvider.
func (*checkCommand) Help() string {
	return `One line for each thing that a pass depends on: OK; WARN, which a person should know; or FAIL, which keeps something from working. It says what to do about the latter two. Nothing is changed, and the manager is asked nothing that it records. It takes a few seconds, at most 20.

Examples:
  sudo opensource-agent check
  sudo opensource-agent check | grep -v ^OK

Exit status: 0 nothing fails, 4 something does, 2 the settings are wrong (the rest is looked at all the same).`
}

func (c *checkCommand) run(ctx context.Context, env environment) pass.Code {
	i, err := inspect(ctx, env)
	if err != nil {
		return env.fail(pass.Usage, err)
	}
	defer i.close()
	findings := []preflight.Finding{}
	worst := preflight.Run(ctx, i.preflight, func(f preflight.Finding) {
		if !c.JSON {
			fmt.Fprintln(env.stdout, f)
		}
		findings = append(findings, f)
	})
	if c.JSON {
		if err := printJSON(env.stdout, findings); err != nil {
			return env.fail(pass.Unexpected, err)
		}
	}
	switch {
	case len(i.preflight.Mistakes) > 0:
		return pass.Usage
	case worst == preflight.Fail:
		return pass.Rejected
	}
	return pass.Settled
}

// inspection is what can be known of this host, as far as its settings allow.
type inspection struct {
	pass      pass.Options
	known     pass.Known
	preflight preflight.Options
	close     func()
}

// inspect goes on without what is wrong with the settings, as far as it can.
func inspect(ctx context.Context, env environment) (inspection, error) {
	settings, mistaken := config.Load(env.flags, env.environ)
	// This much is known even where the rest is not configured yet.
	local, err := config.LoadLocal(env.flags, env.environ)
	if local.StateDirectory == "" {
		return inspection{}, err
	}
	settings.Local = local
	useProxies(settings)
	options := options(settings, env)
	options.Log = slog.New(slog.DiscardHandler) // what it would tell is found
	known := pass.Know(ctx, options)
	units := systemd.New()
	return inspection{
		pass:      options,
		known:     known,
		preflight: preflightOptions(settings, mistaken, env, options, known, units),
		close:     units.Close,
	}, nil
}

func preflightOptions(settings config.Config, mistaken error, env environment, o pass.Options, known pass.Known, units *systemd.Manager) preflight.Options {
	p := preflight.Options{
		Root:           settings.Root,
		UserID:         os.Geteuid(),
		SiteID:         settings.SiteID,
		Units:          units,
		StateDirectory: settings.StateDirectory,
		Managed:        map[string]bool{},
		Host:           known.Host,
		Facts:          known.Facts,
		Templates:      render.LoadTemplates(pass.Overrides(settings.Root)),
		Overrides:      pass.TemplatesDir(settings.Root),
		Originals:      originals,
	}
	found, keyFiles := config.Explain(env.flags, env.environ)
	for _, setting := range found {
		p.Settings = append(p.Settings, preflight.Setting(setting))
	}
	p.KeyFiles = keyFiles
	if mistaken != nil {
		p.Mistakes = mistakes(mistaken)
	}
	if settings.ManagerURL != nil {
		p.Manager = &preflight.Manager{URL: settings.ManagerURL, Key: settings.APIKey, UserAgent: o.Client.UserAgent, Transport: o.Client.Transport, Hostname: cmp.Or(settings.Hostname, known.Host.Hostname)}
	}
	if known.Accepted.Data != nil {
		p.Snapshot = &known.Accepted.Snapshot
	}
	p.Unread = known.Unread != nil
	if known.Guard != nil {
		p.HeldBack = pass.Removals(*known.Guard)
	}
	for _, service := range known.Services {
		p.Services = append(p.Services, preflight.Standing{
			Name: service.Name, Hold: service.Hold, Outcome: service.Outcome, Message: service.Message, Edited: service.Edited,
		})
		p.Managed[service.Name] = len(service.Digests) > 0
	}
	return p
}
