package dashboard

import (
	"cmp"
	"fmt"
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
	Steps []step
}

// step is a thing to do, as a rule with a command.
type step struct {
	Text    string
	Command string
	Path    string // of a page, with Link as its words
	Link    string
}

// The commands, each once. On the agent's host:
const (
	passNow      = "sudo opensource-agent"
	timerRuns    = "systemctl list-timers opensource-agent.timer"
	portHolders  = "sudo ss -lntup"
	bothServices = "systemctl status nginx dnsmasq"
	clockState   = "timedatectl"
	spaceLeft    = "df -h"
	ownTemplates = "ls -R /etc/opensource-agent/templates"
	rootOwner    = "chown 100000:100000"
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
		add(silent(a, site, v.Now))
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
	if p, any := volumeProblem(view.Volumes); any {
		add(p)
	}
	for _, p := range certificateProblems(a) {
		add(p)
	}
	if p, any := probeProblem(view.Probes, a); any {
		add(p)
	}
	if p, any := clockProblem(a); any {
		add(p)
	}
	worst := map[string]int{bad: 0, warn: 1, neutral: 2}
	slices.SortStableFunc(list, func(a, b problem) int { return cmp.Compare(worst[a.Class], worst[b.Class]) })
	return list, nil
}

// silent is that nothing was heard for too long.
func silent(a store.Agent, site store.Site, now time.Time) problem {
	return problem{
		Class: presenceClass(a.Presence(now)), Title: "It has not checked in for " + span(a.Age(now)),
		Why: "Everything below is what it told last. The site is served on with what runs there, without changes.",
		Steps: []step{
			{Text: "Make a pass on its host: it says what is in the way.", Command: passNow},
			{Text: "Look on the host whether the timer has a next run:", Command: timerRuns},
			{Text: "If the pass says 401 or 403, make a token on the manager's host, and run on the agent's host what this prints, with --force at its end:", Command: fmt.Sprintf("sudo opensource-manager enroll %d", site.ID)},
			{Text: "If the host is gone for good, remove the agent (at the end of this page) and revoke its key:", Command: "sudo opensource-manager apikey list"},
		},
	}
}

// serviceProblems are those of one managed service.
func serviceProblems(s serviceDetail, a store.Agent, site store.Site, canWrite bool) []problem {
	report := a.Report.Services[s.Name]
	see := ""
	if s.hasMore() {
		see = "#" + s.ID
	}
	known := slices.Contains(managed, s.Name)
	var list []problem
	add := func(class, title, why string, steps ...step) {
		list = append(list, problem{Class: class, Title: title, Why: why, See: see, Steps: steps})
	}
	if s.StateClass == bad && known {
		add(bad, s.Name+" does not run", "What it serves is down: nothing of the site is served by it.",
			step{Text: "See on the host why:", Command: bothServices}, step{Text: "Correct the cause, and have the agent start it:", Command: passNow})
	}
	switch {
	case report.Outcome == checkin.OutcomeStuck:
		add(bad, s.Name+": a change failed, and so did going back",
			"What runs is not known, and it may be nothing. Somebody has to look at the host now.",
			step{Text: "Read both errors below. Then, on the host:", Command: bothServices},
			step{Text: "Correct the cause, and make a pass:", Command: passNow})
	case report.Outcome == checkin.OutcomeRolledBack:
		add(bad, s.Name+" took the change back", "The new configuration passed its test, but did not work. The one before runs again: nothing is down, and changes do not arrive there until this is mended.",
			append(remedies(report, s, a), goBack(s, site, canWrite)...)...)
	case report.Failing():
		add(bad, s.Name+" refused the change", "What ran before goes on: nothing is down. Changes do not arrive there until this is mended.",
			append(remedies(report, s, a), goBack(s, site, canWrite)...)...)
	}
	if n := len(report.Quarantined); n > 0 {
		why := "All other records are in force. What was left out is not served; what is kept as before is served as it was."
		if !inForce(report.Outcome) {
			why = "These records were left out before the rest was tried, which is not in force either."
		}
		add(warn, fmt.Sprintf("%s: %s", s.Name, refused(report.Quarantined)), why, quarantineSteps(report)...)
	}
	switch {
	case s.Held != "" && known:
		add(warn, s.Name+" is on hold", "Somebody keeps the agent off it: no change, repair or reload is made there until the hold ends.",
			step{Text: s.Held}, step{Text: "End it earlier, on the host:", Command: "sudo opensource-agent release " + s.Name})
	case report.Outcome == checkin.OutcomeSkipped:
		add(neutral, s.Name+" is not managed", "Message: "+cmp.Or(report.Message, "none"),
			step{Text: "If it is to be managed, give the site what the message names:", Path: sitePath(site.ID), Link: "Site " + site.Name})
	}
	if len(s.Drift) > 0 {
		class, title := neutral, "Files of "+s.Name+" were edited on the host"+s.restored()
		if !s.Restored {
			class = warn
		}
		add(class, title, "Managed files belong to the agent: it puts its own content back.",
			step{Text: "Put what is to stay into a template, copied from /usr/share/opensource-agent/templates to /etc/opensource-agent/templates. To try something first, keep the agent off for a while:", Command: holdCommand(s.Name)})
	}
	return list
}

func holdCommand(service string) string {
	if !slices.Contains(managed, service) {
		return ""
	}
	return fmt.Sprintf("sudo opensource-agent hold %s --for 2h --reason \"…\"", service)
}

// remedy is what to do if a message has certain words.
type remedy struct {
	words []string
	step
}

var remediesByWords = []remedy{
	{[]string{"which is not managed"}, step{Text: "The fault is in a file of yours that the message names: correct or remove it on the host."}},
	{[]string{"ddress already in use", "still could not bind"}, step{Text: "Another process on the host holds the port. Find it, and stop it or give the service another port:", Command: portHolders}},
	{[]string{"no space left", "read-only"}, step{Text: "Make room on the host, or make the file system writable:", Command: spaceLeft}},
	{[]string{"could not be written down"}, step{Text: "Make room in /var/lib/opensource-agent, or make it writable:", Command: spaceLeft}},
	{[]string{"is not installed"}, step{Text: "Install on the host the package that the message names."}},
	{[]string{"could not be reloaded"}, step{Text: "The unit is missing or masked, or systemd cannot be asked:", Command: bothServices}},
	{[]string{"operation not permitted"}, step{Text: "Mostly the file is immutable. With FILE being the one that is named:", Command: "lsattr FILE"}},
	{[]string{"device or resource busy", "invalid cross-device link"}, step{Text: "The file is a mount point of its own and cannot be replaced: mount its folder instead."}},
	{[]string{"--conf-file"}, step{Text: "Remove that option from /etc/default/dnsmasq on the host."}},
	{[]string{"site."}, step{Text: "Correct the field of the site that the message names."}},
}

// remedies are the steps for what a message says.
func remedies(report checkin.ServiceReport, s serviceDetail, a store.Agent) []step {
	var steps []step
	for _, found := range s.Excerpts {
		for _, record := range found.Of {
			if record.Path != "" {
				steps = append(steps, step{Text: "Correct the record that the marked line was made of:", Path: record.Path, Link: record.Name})
			}
		}
	}
	said := strings.ToLower(report.Message)
	for _, r := range remediesByWords {
		if slices.ContainsFunc(r.words, func(words string) bool { return strings.Contains(said, strings.ToLower(words)) }) {
			steps = append(steps, r.step)
		}
	}
	if a.Report.Agent != nil && len(a.Report.Agent.Templates) > 0 {
		steps = append(steps, step{Text: "The host has templates of its own. Look there first:", Command: ownTemplates})
	}
	if len(steps) == 0 {
		steps = append(steps, step{Text: "Read the message below, and correct what it names."})
	}
	return steps
}

// goBack is what helps if it is not clear what is wrong.
func goBack(s serviceDetail, site store.Site, canWrite bool) []step {
	steps := []step{{Text: "The agent tries again by itself when something changes, and now and then. To have it try now, on the host:", Command: passNow}}
	if s.Runs.Number != 0 && s.Runs != s.Received {
		pin := step{
			Text: "If it is not clear what is wrong, give the site's agents what runs here now, on the manager's host:", Command: fmt.Sprintf("sudo opensource-manager pin %d %d --reason \"…\"", site.ID, s.Runs.Number),
		}
		if canWrite {
			pin.Text = "If it is not clear what is wrong, give the site's agents what runs here now, in the browser or on the manager's host:"
			pin.Path, pin.Link = pinPath(site.ID, s.Runs.Number), fmt.Sprintf("Pin to revision %d…", s.Runs.Number)
		}
		steps = append(steps, pin)
	}
	return steps
}

func quarantineSteps(report checkin.ServiceReport) []step {
	steps := []step{{Text: "Correct each record below as its reason says. A record comes back by itself when its cause is gone."}}
	for _, item := range report.Quarantined {
		if strings.Contains(item.Reason, "ddress already in use") {
			steps = append(steps, step{Text: "See which process holds the port, on the host:", Command: portHolders})
			break
		}
	}
	return append(steps, step{Text: "To have all of them tried again now, on the host:", Command: passNow})
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
	p := problem{Class: warn, Title: guard.Words, Why: guard.Next + " Everything is served as before, and no other change arrives here meanwhile."}
	if !guard.Confirmable {
		return p
	}
	p.Steps = []step{{Text: "See who deleted what, on the manager's host:", Command: "sudo opensource-manager audit --action delete --since 1d"}}
	if canWrite {
		p.Steps = append(p.Steps, step{Text: "If it is meant:", Path: agentPath(a.ID) + "/removals", Link: "Look and confirm…"})
	} else {
		p.Steps = append(p.Steps, step{Text: "If it is meant, an administrator has to confirm it here."})
	}
	p.Steps = append(p.Steps, step{Text: "If it is not meant, bring back what was removed: then it goes on by itself."})
	return p
}

var volumeRemedies = []remedy{
	{[]string{"is on the root filesystem"}, step{Text: "Mount the folder of the volumes into the agent's container. On the host:", Command: "findmnt"}},
	{[]string{"permission denied"}, step{Text: "On the Proxmox node, give the folder of the volumes to the agent's container. With FOLDER being that folder:", Command: rootOwner + " FOLDER"}},
	{[]string{"symbolic link"}, step{Text: "Put a directory or a mount in the place of the link that is named."}},
	{[]string{"user namespace"}, step{Text: "Set the owner on the Proxmox node: the agent's container does not know it."}},
	{[]string{"set the owner of"}, step{Text: "The storage refuses it: set the owner on the storage."}},
	{[]string{"did not answer in time"}, step{Text: "The disk or the server of a network mount hangs: look at it on the host."}},
}

func volumeProblem(volumes []volumeRow) (problem, bool) {
	p := problem{Class: bad, Why: "Containers that use them may not start, or find nothing there. All else goes on.", See: "#volumes"}
	failed := 0
	for _, r := range volumeRemedies {
		if slices.ContainsFunc(volumes, func(v volumeRow) bool {
			return v.Class == bad && strings.Contains(strings.ToLower(v.Message), r.words[0])
		}) {
			p.Steps = append(p.Steps, r.step)
		}
	}
	for _, v := range volumes {
		if v.Class == bad {
			failed++
		}
	}
	p.Title = fmt.Sprintf("%d of the site's volumes could not be provided", failed)
	if len(p.Steps) == 0 {
		p.Steps = []step{{Text: "Read the message of each below, and correct what it names."}}
	}
	p.Steps = append(p.Steps, step{Text: "Each pass tries again. Now, on the host:", Command: passNow})
	return p, failed > 0
}

// certificateWords say what is wrong, and what that means to visitors.
var certificateWords = map[checkin.CertificateState][2]string{
	checkin.CertificateExpiring:   {"The certificate of %s ends soon", "All is well until then."},
	checkin.CertificateExpired:    {"The certificate of %s has expired", "Browsers warn of it. It stays in use: nothing better is there."},
	checkin.CertificateMissing:    {"There is no certificate for %s", "A self-signed one is served in its place: browsers warn of it."},
	checkin.CertificateMismatch:   {"Certificate and key of %s do not belong together", "A self-signed one is served in its place: browsers warn of it."},
	checkin.CertificateUnreadable: {"The certificate of %s cannot be read", "A self-signed one is served in its place: browsers warn of it."},
}

func certificateProblems(a store.Agent) []problem {
	var list []problem
	// One problem a state, however many domains.
	for _, state := range []checkin.CertificateState{
		checkin.CertificateExpired, checkin.CertificateMissing, checkin.CertificateMismatch, checkin.CertificateUnreadable, checkin.CertificateExpiring,
	} {
		var domains []string
		for domain, c := range a.Report.Certificates {
			if c.State == state {
				domains = append(domains, domain)
			}
		}
		if len(domains) == 0 {
			continue
		}
		slices.Sort(domains)
		words := certificateWords[state]
		class := bad
		if state == checkin.CertificateExpiring {
			class = warn
		}
		name := readable(domains[0])
		if len(domains) > 1 {
			name += fmt.Sprintf(" (and %d more)", len(domains)-1)
		}
		var steps []step
		if command := certificateCommand(domains[0]); command != "" {
			steps = append(steps, step{Text: "Look on the host what is there:", Command: command})
		}
		steps = append(steps, step{Text: "Renew it with what renews your certificates: the agent reads the files and never renews them. It takes a new pair with its next pass:", Command: passNow})
		list = append(list, problem{Class: class, Title: fmt.Sprintf(words[0], name), Why: words[1], See: "#certificates", Steps: steps})
	}
	return list
}

// certificateCommand shows a certificate. What is no domain gets into no command.
func certificateCommand(domain string) string {
	name, err := checkin.ParseDomain(domain)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("openssl x509 -noout -subject -enddate -in /etc/ssl/certs/%s.crt", name)
}

// hopSteps are what to do, by the hop that fails.
var hopSteps = []struct {
	checkin.ProbeHop
	step
}{
	{checkin.HopDNS, step{Text: "No address in DNS: enter the name at whoever serves the domain, with the site's external address."}},
	{checkin.HopListener, step{Text: "Nothing listens: see whether nginx runs on the host, and whether the way to it is open.", Command: "systemctl status nginx"}},
	{checkin.HopCertificate, step{Text: "The certificate is not accepted: look at the certificates below."}},
	{checkin.HopBackend, step{Text: "The container does not answer: see whether it runs, and whether the program in it listens on the service's port, for other hosts than itself.", Command: portHolders}},
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

func clockProblem(a store.Agent) (problem, bool) {
	ahead := clockAhead(a)
	p := problem{Class: warn, Title: "Its clock cannot be read from the check-in", Why: "Times that it tells may be wrong.", Steps: []step{{Text: "Look at the host's clock:", Command: clockState}}}
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
