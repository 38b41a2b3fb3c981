package dashboard

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

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
		list = append(list, problem{Class: class, Title: title, Why: why, See: see, Steps: steps, Blocks: class != neutral})
	}
	switch {
	case !known || report.Outcome == checkin.OutcomeSkipped:
	case report.State == "failed" || report.State == "inactive":
		add(bad, s.Name+" does not run", "What it serves is down: nothing of the site is served by it.",
			step{Text: "See on the host why:", Command: bothServices}, step{Text: "Correct the cause, and have the agent start it:", Command: passNow})
	case s.StateClass == warn:
		add(warn, s.Name+" is "+report.State, "It is being started or stopped. If that lasts, it does not serve.",
			step{Text: "If it is still so in a minute, see on the host why:", Command: bothServices})
	case s.StateClass != good:
		add(neutral, "Whether "+s.Name+" runs is not known", "The agent could not ask systemd.",
			step{Text: "See on the host:", Command: bothServices})
	}
	switch {
	case report.Outcome == checkin.OutcomeStuck:
		add(bad, s.Name+": a change failed, and so did going back",
			"What runs is not known, and it may be nothing. Somebody has to look at the host now.",
			append(append([]step{{Text: "Read both errors below. Then, on the host:", Command: bothServices}}, remediesFor(report, s, site)...),
				step{Text: "When the cause is gone, make a pass:", Command: passNow})...)
	case report.Outcome == checkin.OutcomeRolledBack:
		add(bad, s.Name+" took the change back", "The new configuration passed its test, but did not work. The one before runs again"+nothingDown(s)+" Changes do not arrive there until this is mended.",
			append(remedies(report, s, a, site), goBack(s, site, canWrite)...)...)
	case report.Outcome == checkin.OutcomeRejected:
		add(bad, s.Name+" refused the change", "What ran before goes on"+nothingDown(s)+" Changes do not arrive there until this is mended.",
			append(remedies(report, s, a, site), goBack(s, site, canWrite)...)...)
	case report.Failing():
		add(bad, s.Name+": its last change failed", whatRuns(report, s)+" Changes do not arrive there until this is mended.",
			append(remedies(report, s, a, site), goBack(s, site, canWrite)...)...)
	}
	if n := len(report.Quarantined); n > 0 {
		why := "All other records are in force. What was left out is not served; what is kept as before is served as it was."
		if !inForce(report.Outcome) {
			why = "These records were left out before the rest was tried, which is not in force either."
		}
		class := warn
		if slices.ContainsFunc(report.Quarantined, func(q checkin.QuarantinedItem) bool { return !q.KeptPrevious }) {
			class = bad // somebody's service is down
		}
		add(class, fmt.Sprintf("%s: %s", s.Name, refused(report.Quarantined)), why, quarantineSteps(s, report)...)
	}
	switch {
	case s.Held != "" && known:
		add(warn, s.Name+" is on hold", "Somebody keeps the agent off it: no change, repair or reload is made there until the hold ends.",
			step{Text: s.Held}, step{Text: "End it earlier, on the host:", Command: "sudo opensource-agent release " + s.Name})
	case report.Unwanted():
		add(neutral, s.Name+" is not managed", "DNS and DHCP are not set up for this site: the agent leaves dnsmasq as it is.",
			step{Text: "If its containers are to get addresses and names here, give the site its internal domain and its network:", Path: sitePath(site.ID), Link: "Site " + site.Name})
	case report.Outcome == checkin.OutcomeSkipped:
		add(warn, s.Name+" is not managed", skippedWords(report.Message),
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

// nothingDown ends a sentence about a service that kept its configuration, which
// helps nobody while it does not run.
func nothingDown(s serviceDetail) string {
	if s.StateClass == good {
		return ": nothing is down."
	}
	return "."
}

// whatRuns is what is known of a service that does not say how its change failed.
func whatRuns(report checkin.ServiceReport, s serviceDetail) string {
	if report.RunningETag == "" {
		return "It has not told what runs."
	}
	return "It tells that it runs " + s.Runs.Words + "."
}

// skippedWords say why a service is left alone, which other programs may say at
// length.
func skippedWords(message string) string {
	short, _ := gist(message)
	return cmp.Or(short, "The agent leaves it alone, and does not say why.")
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

// remediesByWords are in the order in which they are shown. SERVICE stands for the
// name of the service.
var remediesByWords = []remedy{
	{[]string{"which is not managed"}, step{Text: "The fault is in a file of yours that the message names: correct or remove it on the host."}},
	{[]string{"render template"}, step{Text: "A template of the host's own does not work: correct or remove it.", Command: ownTemplates}},
	{[]string{"records are refused", "records that are refused too"}, step{Text: "So many records at once are seldom the fault: look at what they have in common, a template of the host's own or the program itself:", Command: checkHost}},
	{[]string{"ddress already in use", "still could not bind"}, step{Text: "Another process on the host holds the port. Find it, and stop it or give the service another port:", Command: portHolders}},
	{[]string{"does not tell its revision", "keeps another configuration in force", "ask for the revision in force", "sentinel name"}, step{Text: "Something else may answer in its place, on port 80 or 53. See who listens there:", Command: portHolders}},
	{[]string{"host not found in upstream"}, step{Text: "nginx found no address for a name that the message has: correct the name, or see to the host's name servers:", Command: "getent hosts NAME"}},
	{[]string{"no space left", "disk quota exceeded", "read-only file system"}, step{Text: "Make room on the host, or make the file system writable:", Command: spaceLeft}},
	{[]string{"could not be written down"}, step{Text: "Make room in /var/lib/opensource-agent, or make it writable:", Command: spaceLeft}},
	{[]string{"is not installed", "systemd has no unit", "is the debian package nginx installed", "could not be found out"}, step{Text: "Install the package on the host:", Command: "sudo apt install SERVICE"}},
	{[]string{"is masked"}, step{Text: "Let the unit be started again:", Command: "sudo systemctl unmask SERVICE"}},
	{[]string{"no connection to systemd", "systemd did not answer in time", "the job did not end"}, step{Text: "systemd does not answer. See whether it has come up as a whole:", Command: "systemctl is-system-running"}},
	{[]string{"permission denied"}, step{Text: "Whoever the message names may not use the file. The agent has to run as root, and in an unprivileged container its root has to own the folder. See whose they are:", Command: "ls -ld " + managedFiles}},
	{[]string{"operation not permitted"}, step{Text: "Mostly the file is immutable: with an i in this list (the command is in the package e2fsprogs), chattr -i takes that off.", Command: "lsattr " + managedFiles}},
	{[]string{"device or resource busy", "invalid cross-device link"}, step{Text: "The file is a mount point of its own and cannot be replaced: mount its folder instead. See what is mounted:", Command: mounts}},
	{[]string{"is not a regular file", "not a regular file but"}, step{Text: "Something else is in the place of the file that the message names: move it away.", Command: "ls -ld " + managedFiles}},
	{[]string{"dnsmasq_opts"}, step{Text: "Remove that option on the host:", Command: "grep -n DNSMASQ_OPTS /etc/default/dnsmasq"}},
	{[]string{"did not last", "main process", "not live within", "could not be reloaded", "job failed", "is failed", "is inactive"}, step{Text: "See what the service says of itself:", Command: "journalctl -u SERVICE -n 20"}},
	{[]string{"was stopped before it ended", "did not end in time", "stopped before", "the pass ends in", "goes on with the next try"}, step{Text: "The pass ran out of time, and the next goes on. If that stays, the host is too slow or too busy:", Command: checkHost}},
}

// fieldsOfSite are in a message if a field of the site cannot be served.
var fieldsOfSite = []string{"site.internaldomain", "site.dhcprange", "site.subnetmask", "site.gateway", "site.dnsforwarders"}

// remediesFor are the steps for what a message says. A service of another name
// than ours gets no command that has it.
func remediesFor(report checkin.ServiceReport, s serviceDetail, site store.Site) []step {
	steps := stepsFor(report.Message, remediesByWords)
	for i := range steps {
		if strings.Contains(steps[i].Command, "SERVICE") && !slices.Contains(managed, s.Name) {
			steps[i].Command = ""
		}
		steps[i].Command = strings.ReplaceAll(steps[i].Command, "SERVICE", s.Name)
	}
	said := strings.ToLower(report.Message)
	if slices.ContainsFunc(fieldsOfSite, func(field string) bool { return strings.Contains(said, field) }) {
		steps = append(steps, step{Text: "Correct the field of the site that the message names:", Path: sitePath(site.ID), Link: "Site " + site.Name})
	}
	return steps
}

// stepsFor are those of the remedies whose words a message has, in any case.
func stepsFor(message string, remedies []remedy) []step {
	var steps []step
	said := strings.ToLower(message)
	for _, r := range remedies {
		if slices.ContainsFunc(r.words, func(words string) bool { return strings.Contains(said, words) }) {
			steps = append(steps, r.step)
		}
	}
	for i, s := range steps {
		if strings.Contains(s.Command, "NAME") {
			steps[i].Command = lookUp(message)
		}
	}
	return steps
}

var unknownHost = regexp.MustCompile(`host not found in upstream "([^":/]+)`)

// lookUp asks for the address that a message misses. What is no name gets into no
// command.
func lookUp(message string) string {
	found := unknownHost.FindStringSubmatch(message)
	if found == nil {
		return ""
	}
	name, err := checkin.ParseDomain(found[1])
	if err != nil {
		return ""
	}
	return "getent hosts " + name
}

// remedies are the steps for a change that was refused.
func remedies(report checkin.ServiceReport, s serviceDetail, a store.Agent, site store.Site) []step {
	var steps []step
	for _, found := range s.Excerpts {
		for _, record := range found.Of {
			if record.Path != "" {
				steps = append(steps, step{Text: "Correct the record that the marked line was made of:", Path: record.Path, Link: record.Name})
			}
		}
	}
	steps = append(steps, remediesFor(report, s, site)...)
	looksThere := slices.ContainsFunc(steps, func(s step) bool { return s.Command == ownTemplates })
	if a.Report.Agent != nil && len(a.Report.Agent.Templates) > 0 && !looksThere {
		steps = append(steps, step{Text: "The host has templates of its own. Look there first:", Command: ownTemplates})
	}
	switch {
	case len(steps) > 0:
	case report.Message == "":
		steps = append(steps, step{Text: "It tells no reason here. See on the host what it said:", Command: "journalctl -t opensource-agent -n 20"})
	default:
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

// quarantineRemedies are for the reasons of records that were left out.
var quarantineRemedies = []remedy{
	{[]string{"ddress already in use"}, step{Text: "See which process holds the port, on the host:", Command: portHolders}},
	{[]string{"no stream module"}, step{Text: "Ports need nginx's stream module. Install it on the host:", Command: "sudo apt install libnginx-mod-stream"}},
	{[]string{"host not found in upstream"}, step{Text: "The name that a reason has leads to no address. Ask for it on the host:", Command: "getent hosts NAME"}},
}

// maxLinks is how many of the records are steps of their own.
const maxLinks = 3

func quarantineSteps(s serviceDetail, report checkin.ServiceReport) []step {
	steps := []step{{Text: "Correct each record below as its reason says. A record comes back by itself when its cause is gone."}}
	if len(report.Quarantined) <= maxLinks && len(s.Records) == len(report.Quarantined) {
		steps = nil
		for _, r := range s.Records {
			one := step{Text: "Correct it as its reason below says. It comes back by itself when the cause is gone:", Path: r.Path, Link: r.Name}
			if r.Path == "" {
				one = step{Text: r.Name + " is not in the inventory any more; the next configuration is without it."}
			}
			steps = append(steps, one)
		}
	}
	if slices.ContainsFunc(s.Records, func(r recordView) bool { return r.Foreign }) {
		steps = append(steps, step{Text: "The line that is refused is made by a template of the host's own: correct the record, or the template:", Command: ownTemplates})
	}
	var reasons strings.Builder
	for _, item := range report.Quarantined {
		reasons.WriteString(item.Reason + "\n")
	}
	steps = append(steps, stepsFor(reasons.String(), quarantineRemedies)...)
	return append(steps, step{Text: "To have all of them tried again now, on the host:", Command: passNow})
}
