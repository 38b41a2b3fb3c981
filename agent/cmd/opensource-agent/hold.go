package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"opensource.internal/agent/internal/pass"
)

// holdCommand suspends apply and repair of one service for a while.
type holdCommand struct {
	Service string `arg:"" optional:"" complete:"nginx,dnsmasq" help:"nginx or dnsmasq. Without it the holds are listed."`
	For     *span  `placeholder:"TIME" help:"How long, such as 90m, 2h or 3d; at most 30d. An earlier hold is replaced (default 1h)."`
	Reason  string `placeholder:"TEXT" help:"Why: for the log and the manager's page."`
}

// Help implements kong.HelpProvider.
func (*holdCommand) Help() string {
	return `For work by hand. Volumes, the other service and the check-ins go on; the manager shows the hold. Afterwards the next pass applies what is due, and undoes edits.

Examples:
  sudo opensource-agent hold nginx --for 2h --reason "moving certificates"
  sudo opensource-agent hold

Exit status: 0 held, 2 usage, 6 another pass is running.`
}

func (c *holdCommand) run(ctx context.Context, env environment) pass.Code {
	holds, ok := env.holds()
	if !ok {
		return pass.Usage
	}
	if c.Service == "" {
		return c.list(holds, env)
	}
	duration := time.Hour
	if c.For != nil {
		duration = time.Duration(*c.For)
	}
	if err := pass.CheckHold(c.Service, duration); err != nil {
		return env.fail(pass.Usage, err)
	}
	until, err := holds.Hold(ctx, c.Service, duration, c.Reason, env.person())
	if err != nil {
		return env.failAs("hold "+c.Service, err)
	}
	fmt.Fprintf(env.stdout, "%s is held %s\n", c.Service, until)
	return pass.Settled
}

func (c *holdCommand) list(holds pass.Holds, env environment) pass.Code {
	if c.Reason != "" || c.For != nil {
		return env.fail(pass.Usage, errors.New("which service? Say opensource-agent hold nginx, or hold dnsmasq"))
	}
	lines, err := holds.List()
	if err != nil {
		return env.failAs("hold", err)
	}
	if len(lines) == 0 {
		lines = []string{"no service is held"}
	}
	fmt.Fprintln(env.stdout, strings.Join(lines, "\n"))
	return pass.Settled
}

// releaseCommand ends holds.
type releaseCommand struct {
	Service string `arg:"" optional:"" complete:"nginx,dnsmasq" help:"nginx or dnsmasq."`
	All     bool   `help:"Release every service that is held."`
}

// Help implements kong.HelpProvider.
func (*releaseCommand) Help() string {
	return `Examples:
  sudo opensource-agent release nginx
  sudo opensource-agent release --all

Exit status: 0 released, or nothing was held; 2 usage; 6 another pass is running.`
}

func (c *releaseCommand) run(ctx context.Context, env environment) pass.Code {
	holds, ok := env.holds()
	if !ok {
		return pass.Usage
	}
	switch {
	case c.All && c.Service != "":
		return env.fail(pass.Usage, fmt.Errorf("release %s, or all? Say %[1]s or --all, not both", c.Service))
	case !c.All && c.Service == "":
		return env.fail(pass.Usage, errors.New("release what? Say a service, or --all"))
	}
	if !c.All {
		if err := pass.CheckService(c.Service); err != nil {
			return env.fail(pass.Usage, err)
		}
	}
	released, err := holds.Release(ctx, c.Service)
	if err != nil {
		return env.failAs("release "+cmp.Or(c.Service, "--all"), err)
	}
	if len(released) == 0 && !c.All {
		fmt.Fprintf(env.stdout, "nothing to release: %s is not held\n", c.Service)
		return pass.Settled
	}
	if len(released) == 0 {
		fmt.Fprintln(env.stdout, "nothing to release: no service is held")
		return pass.Settled
	}
	for _, name := range released {
		fmt.Fprintf(env.stdout, "%s is released: the next pass applies what is due\n", name)
	}
	return pass.Settled
}

// holds are those of this host. A host whose agent is not configured has some
// too.
func (e environment) holds() (pass.Holds, bool) {
	settings, ok := e.local()
	return pass.Holds{StateDirectory: settings.StateDirectory, Log: e.logger(settings.LogLevel)}, ok
}

// person is the name of whoever started the command, also behind sudo.
func (e environment) person() string {
	for _, entry := range e.environ {
		if name, found := strings.CutPrefix(entry, "SUDO_USER="); found && name != "" {
			return name
		}
	}
	if who, err := user.Current(); err == nil {
		return who.Username
	}
	return ""
}

// span is a duration in which days may be written, such as 2h or 3d.
type span time.Duration

// Decode implements kong.MapperValue. What begins with a dash is no flag here.
func (s *span) Decode(ctx *kong.DecodeContext) error {
	token := ctx.Scan.Pop()
	if token.IsEOL() {
		return errors.New("how long? Say a time such as 90m, 2h or 3d")
	}
	return s.UnmarshalText([]byte(token.String()))
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *span) UnmarshalText(text []byte) error {
	if days, found := strings.CutSuffix(string(text), "d"); found {
		count, err := strconv.ParseUint(days, 10, 16)
		*s = span(time.Duration(count) * 24 * time.Hour)
		if err == nil {
			return nil
		}
	} else if duration, err := time.ParseDuration(string(text)); err == nil {
		*s = span(duration)
		return nil
	}
	return fmt.Errorf("%q is not a time such as 90m, 2h or 3d", text)
}
