package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

// problem is something that is the matter with an agent, and what to do about
// it. The pages troubleshooting and runbook of the documentation say the same
// at length; a test holds the commands against them.
type problem struct {
	ID    string
	Class string
	Title string
	Why   string // what it means for those who use the site
	See   string // where on the page more is told of it
	// Blocks is set if it explains why a service does not run what was published.
	Blocks bool
	Held   bool    // a removal that waits for a word
	Of     []crumb // the records that it is about
	More   int     // of them that are not named
	Steps  []step
}

// step is a thing to do, as a rule with a command.
type step struct {
	Text    string
	Command string
	Path    string // of a page, with Link as its words
	Link    string
}

// The commands, each once. All but two are for the agent's host.
const (
	passNow      = "sudo opensource-agent"
	checkHost    = "sudo opensource-agent check"
	agentStatus  = "sudo opensource-agent status"
	timerRuns    = "systemctl list-timers opensource-agent.timer"
	portHolders  = "sudo ss -lntup"
	bothServices = "systemctl status nginx dnsmasq"
	clockState   = "timedatectl"
	spaceLeft    = "df -h"
	mounts       = "findmnt"
	ownTemplates = "ls -R /etc/opensource-agent/templates"
	managedFiles = "/etc/nginx/nginx.conf /etc/dnsmasq.conf /var/lib/dnsmasq/*"
	upgradeAgent = "sudo apt install ./opensource-agent_*.deb"

	listKeys  = "sudo opensource-manager apikey list" // on the manager's host
	rootOwner = "chown 100000:100000"                 // on the Proxmox node
)

// managed are the services that commands name. A name that an agent makes up
// gets into no command.
var managed = []string{"nginx", "dnsmasq"}

// problemsOf lists what is the matter, the worst first.
func (d *dashboard) problemsOf(v *visit, a store.Agent, site store.Site, view agentPage) ([]problem, error) {
	ctx := v.Request.Context()
	list := []problem{}
	add := func(p problem) {
		p.ID = fmt.Sprintf("problem-%d", len(list)+1)
		list = append(list, p)
	}
	if a.Presence(v.Now) != store.Online {
		p, err := d.silent(ctx, a, site, v.Now)
		if err != nil {
			return nil, err
		}
		add(p)
	}
	if a.Report.Fault != nil {
		add(problem{Class: warn, Title: "Its last report cannot be read", Why: "What is stored of it is damaged. Its next check-in replaces it.", Steps: []step{{Text: "Have it check in now:", Command: passNow}}})
	}
	for _, s := range view.Services {
		for _, p := range serviceProblems(s, a, site, v.canWrite()) {
			add(p)
		}
	}
	held, err := d.held(ctx, []store.Site{site}, v.Now)
	if err != nil {
		return nil, err
	}
	if words := held[site.ID]; words != "" {
		add(heldProblem(words, site))
	}
	confirmed, err := d.confirmedRemovals(ctx)
	if err != nil {
		return nil, err
	}
	guard, err := d.describeGuard(ctx, a, confirmed, v.Now)
	if err != nil {
		return nil, err
	}
	if guard != nil {
		add(guardProblem(*guard, a, v.canWrite()))
	}
	if guard == nil && a.Presence(v.Now) == store.Online && !slices.ContainsFunc(list, func(p problem) bool { return p.Blocks }) {
		if p, any := notTakenProblem(view, v.Now); any {
			add(p)
		}
	}
	if p, any := volumeProblem(view.Volumes, site); any {
		add(p)
	}
	for _, p := range certificateProblems(a, v.Now) {
		add(p)
	}
	if p, any := probeProblem(view.Probes, a); any {
		add(p)
	}
	for _, p := range hostProblems(a, d.version) {
		add(p)
	}
	slices.SortStableFunc(list, func(a, b problem) int { return cmp.Compare(a.rank(), b.rank()) })
	return list, nil
}

// rank is lower for what is worse. A removal that waits keeps every other change from
// arriving: it comes right after what is down.
func (p problem) rank() int {
	switch {
	case p.Class == bad && p.Blocks:
		return 0
	case p.Held:
		return 1
	case p.Class == bad:
		return 2
	case p.Class == warn:
		return 3
	}
	return 4
}

// silent is that nothing was heard for too long.
func (d *dashboard) silent(ctx context.Context, a store.Agent, site store.Site, now time.Time) (problem, error) {
	p := problem{
		Blocks: true, Class: presenceClass(a.Presence(now)), Title: "It has not checked in for " + span(a.Age(now)),
		Why: "Everything below is what it told last. The site is served on with what runs there, without changes.",
	}
	enroll := step{
		Text: "If the pass says 401 or 403, make a token on the manager's host, and run on the agent's host what this prints, with --force at its end:", Command: fmt.Sprintf("sudo opensource-manager enroll %d", site.ID),
	}
	ended, err := d.endedKey(ctx, a, now)
	if err != nil {
		return p, err
	}
	if ended != "" {
		p.Why = ended + " " + p.Why
		enroll.Text = "If it is to come back, make a token on the manager's host, and run on the agent's host what this prints, with --force at its end:"
		p.Steps = []step{enroll}
	}
	p.Steps = append(p.Steps,
		step{Text: "Make a pass on its host: it says what is in the way.", Command: passNow},
		step{Text: "Look on the host whether the timer has a next run:", Command: timerRuns})
	if ended == "" {
		p.Steps = append(p.Steps, enroll)
	}
	p.Steps = append(p.Steps, step{Text: "If the host is gone for good, remove the agent (at the end of this page) and revoke its key:", Command: listKeys})
	return p, nil
}

// endedKey says that the host's own key does not work any more, and why; nothing
// if it has one that does, or none of its own.
func (d *dashboard) endedKey(ctx context.Context, a store.Agent, now time.Time) (string, error) {
	keys, _, err := d.store.ListAPIKeys(ctx, store.APIKeyFilter{SiteID: a.SiteID, Hostname: a.Hostname}, store.ListOptions{Limit: store.All})
	if err != nil || len(keys) == 0 {
		return "", err
	}
	last := keys[len(keys)-1] // by id: the one made last
	switch {
	case last.RevokedAt != nil:
		return "Its key was revoked " + ago(max(0, now.Sub(*last.RevokedAt))) + ".", nil
	case last.ExpiresAt != nil && !now.Before(*last.ExpiresAt):
		return "Its key expired " + ago(max(0, now.Sub(*last.ExpiresAt))) + ".", nil
	}
	return "", nil
}

// heldProblem is that the site does not get what the inventory has.
func heldProblem(words string, site store.Site) problem {
	p := problem{Class: warn, Title: "Changes of the site do not reach it", Why: words}
	if strings.HasPrefix(words, "Pinned") {
		p.Steps = []step{{Text: "Look at what waits. When the site is right again, let changes through, on the manager's host or there:", Path: sitePath(site.ID) + "/pending", Link: "What waits", Command: fmt.Sprintf("sudo opensource-manager unpin %d", site.ID)}}
		return p
	}
	p.Steps = []step{{Text: "Look at what waits, and publish it there or on the manager's host:", Path: sitePath(site.ID) + "/pending", Link: "What waits", Command: fmt.Sprintf("sudo opensource-manager publish %d", site.ID)}}
	return p
}

func guardProblem(guard guardView, a store.Agent, canWrite bool) problem {
	p := problem{Class: warn, Held: true, Title: guard.Words, Why: guard.Next + " Everything is served as before, and no other change arrives here meanwhile."}
	if !guard.Confirmable {
		return p
	}
	who := step{Text: "See who deleted what, on the manager's host:", Command: "sudo opensource-manager audit --action delete --since 1d"}
	back := step{Text: "If it is not meant, bring back what was removed: then it goes on by itself. An administrator can set the site back to a revision that has it:", Path: revisionsPath(a.SiteID), Link: "Revisions"}
	if canWrite {
		who.Text, who.Path, who.Link = "See who deleted what, there or on the manager's host:", deletionsPath(a.SiteID), "Audit log"
		back.Text = "If it is not meant, bring back what was removed: then it goes on by itself. Set the site back to a revision that has it:"
	}
	p.Steps = []step{who}
	if canWrite {
		p.Steps = append(p.Steps, step{Text: "If it is meant:", Path: agentPath(a.ID) + "/removals", Link: "Look and confirm…"})
	} else {
		p.Steps = append(p.Steps, step{Text: "If it is meant, an administrator has to confirm it here."})
	}
	p.Steps = append(p.Steps, back)
	return p
}

// deletionsPath is the audit log, of what was deleted of a site.
func deletionsPath(siteID int64) string {
	return fmt.Sprintf("/audit?action=%s&site=%d", store.ActionDelete, siteID)
}

// patience is how long a configuration may take to arrive without a word.
const patience = 5 * time.Minute

// notTakenProblem is that an agent is heard, complains of nothing, and yet does
// not run what its site was given.
func notTakenProblem(view agentPage, now time.Time) (problem, bool) {
	waited := now.Sub(view.PublishedAt)
	if view.InForceSince == "" || view.Published.Number == 0 || view.InForce == view.Published || waited < patience {
		return problem{}, false
	}
	return problem{
		Class: warn, Title: fmt.Sprintf("It does not run revision %d, which was published %s", view.Published.Number, ago(waited)),
		Why: "It checks in and reports no fault. What ran before goes on.",
		Steps: []step{
			{Text: "Make a pass on its host: it says what it does with what it gets.", Command: passNow},
			{Text: "See there how it stands:", Command: agentStatus},
		},
	}, true
}

// hopSteps are what to do, by the hop that fails.
var hopSteps = []struct {
	checkin.ProbeHop
	step
}{
	{checkin.HopDNS, step{Text: "No address in DNS: enter the name at whoever serves the domain, with the site's external address."}},
	{checkin.HopListener, step{Text: "Nothing listens: see whether nginx runs on the host, and who has its ports:", Command: checkHost}},
	{checkin.HopCertificate, step{Text: "The certificate is not for the name, not in its time, or of nobody whom the host trusts: the message below says which. See what is served for each domain:", Command: agentStatus}},
	{checkin.HopBackend, step{Text: "The container does not answer: see whether it runs, and whether the program in it listens on the service's port, for other hosts than itself. In the container:", Command: portHolders}},
}

func probeProblem(probes probesView, a store.Agent) (problem, bool) {
	p := problem{Class: warn, Title: "Some names are not reached: " + probes.Summary, Why: "The agent has asked for each public name as a visitor would. Nothing is changed because of it.", See: "#probes"}
	for _, hop := range hopSteps {
		for _, probe := range a.Report.Probes {
			if probe.Hop == hop.ProbeHop {
				p.Steps = append(p.Steps, hop.step)
				break
			}
		}
	}
	return p, len(probes.Failing) > 0
}

// hostProblems are about the host and the agent's program.
func hostProblems(a store.Agent, version string) []problem {
	var list []problem
	if p, any := clockProblem(a); any {
		list = append(list, p)
	}
	if host := a.Report.Host; host != nil && a.Report.Agent != nil && host.DiskFreeBytes < lowDisk {
		list = append(list, problem{
			Class: warn, Title: "The disk of the host is nearly full: " + size(host.DiskFreeBytes) + " free",
			Why:   "Without room no change can be applied. What runs goes on.",
			Steps: []step{{Text: "See what is full, and make room:", Command: spaceLeft}},
		})
	}
	if p, any := oldProblem(a, version); any {
		list = append(list, p)
	}
	return list
}

// lowDisk is from when on an agent's check of its host warns, too.
const lowDisk = 100 << 20 // bytes

// oldProblem is that the agent is older than the manager.
func oldProblem(a store.Agent, version string) (problem, bool) {
	p := problem{
		Class: neutral, Title: "It is an agent of the earlier generation",
		Why:   "It does all its work. It tells less: what is said here of records, certificates and what is in force is not all there is.",
		Steps: []step{{Text: "When it suits, install the package of today over it, in the folder that has it:", Command: upgradeAgent}},
	}
	if a.Report.Agent == nil {
		return p, a.Report.Fault == nil
	}
	its := a.Report.Agent.Version
	p.Title = fmt.Sprintf("It is of version %s, the manager of %s", its, version)
	p.Why = "Both work together. What is newer in the agent is not there yet."
	return p, isRelease(its) && isRelease(version) && store.NumbersInOrder(its) < store.NumbersInOrder(version)
}

var release = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

func isRelease(version string) bool { return release.MatchString(version) }

func clockProblem(a store.Agent) (problem, bool) {
	ahead := clockAhead(a)
	p := problem{Class: warn, Title: "Its clock cannot be read from the check-in", Why: "Times that it tells may be wrong.", Steps: []step{{Text: "Look at the host's clock; a container has that of its node:", Command: clockState}}}
	switch {
	case a.ClockSkewMS == nil:
		return p, true
	case ahead > 0:
		p.Title = "Its clock is " + span(ahead) + " ahead of the manager's"
	case ahead < 0:
		p.Title = "Its clock is " + span(-ahead) + " behind the manager's"
	}
	p.Why = "Times that it tells are wrong by that. A far wrong clock keeps it from a manager behind TLS; the site is served all the same."
	return p, ahead != 0
}
