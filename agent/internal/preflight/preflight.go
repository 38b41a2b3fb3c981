// Package preflight looks at everything that a pass depends on, changes
// nothing, and says of each thing how it stands and what a person can do about
// it. Each check is one function, in the order in which a person looks for the
// reason of a fault; all of them run at once, each bounded in time, and one
// that breaks never stops the others.
package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/render"
)

// Level is how well something stands; a worse one is greater.
type Level int

// The levels of a finding.
const (
	OK   Level = iota
	Warn       // works, or may work, and yet a person should know
	Fail       // keeps a pass, or a part of the site, from working
)

// String is the word that begins a finding's line.
func (l Level) String() string { return [...]string{"OK", "WARN", "FAIL"}[l] }

// MarshalJSON implements json.Marshaler: "ok", "warn" or "fail".
func (l Level) MarshalJSON() ([]byte, error) { return json.Marshal(strings.ToLower(l.String())) }

// Finding is one thing that was looked at.
type Finding struct {
	Level Level  `json:"level"`
	Check string `json:"check"` // what was looked at, such as "port 53"
	Found string `json:"found"`
	Fix   string `json:"fix,omitempty"` // what to do, unless all is well
}

// String is the finding in one line.
func (f Finding) String() string {
	line := fmt.Sprintf("%-4s  %s: %s", f.Level, f.Check, oneLine(f.Found))
	if f.Fix != "" {
		line += ". To do: " + oneLine(f.Fix)
	}
	return line
}

// Options is what the checks look at.
type Options struct {
	// Proc is where the kernel tells of processes: /proc if empty.
	Proc string
	// Root is the agent's --root: systemd and ports are left alone then.
	Root string
	// UserID is who is looking: only root sees everything.
	UserID int

	Settings []Setting
	Mistakes []error // of the settings
	// KeyFiles are the files that an API key is written in.
	KeyFiles []string

	SiteID int64
	// Manager is nil if the settings do not name one.
	Manager *Manager
	Units   Units

	StateDirectory string
	// Unread is true if this user may not read what is in there: Snapshot,
	// Managed, Services and HeldBack are not known then.
	Unread bool
	// Snapshot is the accepted one, or nil if there is none yet.
	Snapshot *checkin.Snapshot
	// Managed tells, by name, which services have files of ours in force.
	Managed map[string]bool
	// Services is what the passes have made of them.
	Services []Standing
	// HeldBack says what the snapshot that is held back removes, or is empty.
	HeldBack string
	Host     host.Facts
	Facts    render.Facts // as of Host, with all paths
	// Templates are those in use. Overrides is the folder that an administrator
	// puts templates into, Originals the one of the package.
	Templates            *render.Templates
	Overrides, Originals string

	// Now is time.Now if nil.
	Now func() time.Time
}

// Manager is how the agent speaks to its manager.
type Manager struct {
	URL       *url.URL
	Key       string
	UserAgent string
	Transport http.RoundTripper
	// Hostname is the name this host checks in as, empty if it is not known.
	Hostname string
}

// Setting is one setting that has a value, and where it came from.
type Setting struct {
	Name  string
	Value string // of a secret only that it is set
	From  string
	// Elsewhere is what the timer's passes find instead, if that is not the
	// same: they know nothing of flags and of a shell's variables.
	Elsewhere *string
}

// timeLimit bounds a check that does not bound itself more narrowly.
const timeLimit = 15 * time.Second

// check looks at one thing. It keeps the bounds of its context.
type check struct {
	name string
	look func(context.Context, *Options) []Finding
}

// checks is the table of contents.
func checks() []check {
	return []check{
		{"user", user},
		{"settings", settings},
		{"key file", keyFiles},
		{"systemd", systemdAnswers},
		{"timer", timer},
		{"last pass", lastPass},
		{"manager", manager},
		{"nginx", nginxProgram},
		{"dnsmasq", dnsmasqProgram},
		{"nginx.service", nginxUnit},
		{"dnsmasq.service", dnsmasqUnit},
		{"in force", standing},
		{"ports", ports},
		{"name server", nameServers},
		{"IPv6", ipv6},
		{"disk", disks},
		{"volumes", siteVolumes},
		{"templates", templates},
		{"rendering", rendering},
		{"certificates", certificates},
		{"nginx configuration", nginxConfiguration},
		{"dnsmasq configuration", dnsmasqConfiguration},
		{"leftovers", leftovers},
	}
}

// Run makes all checks and tells every finding in their order, as soon as it
// and those before it are there. It returns the worst level.
func Run(ctx context.Context, o Options, tell func(Finding)) Level {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return run(ctx, checks(), &o, timeLimit, tell)
}

func run(ctx context.Context, checks []check, o *Options, limit time.Duration, tell func(Finding)) Level {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	running := make([]<-chan []Finding, len(checks))
	for i, c := range checks {
		running[i] = c.start(ctx, o)
	}
	worst := OK
	for i, c := range checks {
		for _, finding := range c.await(ctx, running[i]) {
			if finding.Check == "" {
				finding.Check = c.name
			}
			worst = max(worst, finding.Level)
			tell(finding)
		}
	}
	return worst
}

// start runs the check beside the others. One that panics has found something,
// too.
func (c check) start(ctx context.Context, o *Options) <-chan []Finding {
	done := make(chan []Finding, 1) // never blocks one that is not waited for any more
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				done <- list(warn("report this as a fault of opensource-agent", "the check itself broke: %v", fault))
			}
		}()
		done <- c.look(ctx, o)
	}()
	return done
}

// grace is what a check has, after the time is up, to say so in its own words.
const grace = time.Second

func (c check) await(ctx context.Context, done <-chan []Finding) []Finding {
	select {
	case findings := <-done:
		return findings
	case <-ctx.Done():
	}
	select {
	case findings := <-done:
		return findings
	case <-time.After(grace):
		return list(fail("look for storage that hangs: mount; dmesg", "no result in time"))
	}
}

func list(findings ...Finding) []Finding { return findings }

func ok(format string, args ...any) Finding {
	return Finding{Level: OK, Found: fmt.Sprintf(format, args...)}
}

func warn(fix, format string, args ...any) Finding {
	return Finding{Level: Warn, Found: fmt.Sprintf(format, args...), Fix: fix}
}

func fail(fix, format string, args ...any) Finding {
	return Finding{Level: Fail, Found: fmt.Sprintf(format, args...), Fix: fix}
}

// named gives findings another name than that of their check.
func named(name string, findings ...Finding) []Finding {
	for i := range findings {
		findings[i].Check = name
	}
	return findings
}

// maxLine bounds what one line quotes of others, in bytes.
const maxLine = 2 << 10

// oneLine makes text fit for a line of its own.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(checkin.CleanMessage(text, maxLine), "\n", "; ")), " ")
}
