package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// volumeRemedies are in the order in which they are shown. ROOT stands for the
// folder of the site's volumes.
var volumeRemedies = []remedy{
	{[]string{"is on the root filesystem"}, step{Text: "Mount the folder of the volumes into the agent's container, on the Proxmox node, with CT being the container's number:", Command: "pct set CT -mp0 ROOT,mp=ROOT"}},
	{[]string{"forgets its files", "holds no files", "is not in /proc/self/mountinfo"}, step{Text: "Mount lasting storage there. See on the host what is mounted:", Command: mounts}},
	{[]string{"read-only"}, step{Text: "Make the mount writable. See on the host which it is:", Command: mounts}},
	{[]string{"no space left", "disk quota exceeded"}, step{Text: "Make room on the storage:", Command: spaceLeft}},
	{[]string{"permission denied"}, step{Text: "On the Proxmox node, give the folder of the volumes to the agent's container:", Command: rootOwner + " ROOT"}},
	{[]string{"symbolic link"}, step{Text: "Put a directory or a mount in the place of the link that is named."}},
	{[]string{"is not a directory"}, step{Text: "Move away what is in the place of the directory."}},
	{[]string{"user namespace"}, step{Text: "Set the owner on the Proxmox node: the agent's container does not know it."}},
	{[]string{"set the owner of", "set the mode of", "storage accepted the owner"}, step{Text: "The storage refuses it: set owner and mode on the storage, or in its mount options."}},
	{[]string{"did not answer"}, step{Text: "The disk or the server of a network mount hangs: look at it on the host.", Command: mounts}},
	{[]string{"openat2"}, step{Text: "The kernel is too old: the node needs Linux 5.6 or newer."}},
	{[]string{"hostpath:", "uid:", "gid:", "mode:", "id:"}, step{Text: "What the manager sent of it cannot be used: delete the volume and create it with another name."}},
	{[]string{"ran out of time"}, step{Text: "The pass was too long, and the next goes on. If that stays, the storage is slow:", Command: checkHost}},
	{[]string{"input/output error", "stale file handle", "transport endpoint"}, step{Text: "The storage is damaged or gone: look at the disk, or at the server of a network mount.", Command: mounts}},
}

func volumeProblem(volumes []volumeRow, site store.Site) (problem, bool) {
	p := problem{Class: bad, Why: "Containers that use them may not start, or find nothing there. All else goes on.", See: "#volumes"}
	failed := 0
	var messages strings.Builder
	for _, v := range volumes {
		if v.Class == bad {
			failed++
			messages.WriteString(v.Message + "\n")
			if failed <= maxLinks {
				p.Of = append(p.Of, crumb{v.Path, volumePath(v.ID)})
			}
		}
	}
	p.More = failed - len(p.Of)
	p.Title = fmt.Sprintf("%d of the site's volumes could not be provided", failed)
	p.Steps = stepsFor(messages.String(), volumeRemedies)
	for i := range p.Steps {
		p.Steps[i].Command = strings.ReplaceAll(p.Steps[i].Command, "ROOT", volumesRoot(site))
	}
	if len(p.Steps) == 0 {
		p.Steps = []step{{Text: "Read the message of each below, and correct what it names."}}
	}
	p.Steps = append(p.Steps, step{Text: "Each pass tries again. Now, on the host:", Command: passNow})
	return p, failed > 0
}

// volumesRoot is the folder of a site's volumes as it can stand in a command, or
// a word in its place.
func volumesRoot(site store.Site) string {
	root := site.VolumesRoot
	if root == "" {
		root = inventory.DefaultVolumesRoot
	}
	if strings.Trim(root, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") != "" {
		return "FOLDER"
	}
	return root
}

// certificateAdvice is what a state means to visitors, and what to do. CRT and KEY
// stand for the files of the first domain that has it.
type certificateAdvice struct {
	state checkin.CertificateState
	early bool // not valid yet, which agents report as expired
	class string
	title string
	why   string
	steps []step
}

const (
	fallbackServed = "A self-signed one is served in its place: browsers warn of it."
	certificateOf  = "openssl x509 -noout -subject -dates -in CRT"
)

var (
	renew = step{Text: "Renew it with what renews your certificates, and let that put it into these two places: the agent reads them and orders none."}
	taken = step{Text: "A new pair is taken with the next pass, within 30 seconds. Now:", Command: passNow}
)

var certificateStates = []certificateAdvice{
	{state: checkin.CertificateExpired, class: bad, title: "The certificate of %s has expired", why: "Browsers warn of it. It stays in use: nothing better is there.", steps: []step{
		renew, {Text: "See on the host what is there:", Command: certificateOf}, taken,
	}},
	{state: checkin.CertificateExpired, early: true, class: bad, title: "The certificate of %s is not valid yet", why: "Browsers warn of it. It is served all the same.", steps: []step{
		{Text: "See on the host from when on it is valid:", Command: certificateOf},
		{Text: "If that time has come, the host's clock is wrong; a container has that of its node:", Command: clockState},
		taken,
	}},
	{state: checkin.CertificateMissing, class: bad, title: "There is no certificate for %s", why: fallbackServed, steps: []step{
		{Text: "Get one for the domain and its names, and put it, with its chain, and its key into these two files. The agent orders none. See on the host which of them is missing:", Command: "sudo ls -l CRT KEY"},
		taken,
	}},
	{state: checkin.CertificateMismatch, class: bad, title: "Certificate and key of %s do not belong together", why: fallbackServed, steps: []step{
		{Text: "On the host, these two print the same for a pair. The first is of the certificate:", Command: "openssl x509 -noout -pubkey -in CRT"},
		{Text: "The second is of the key:", Command: "sudo openssl pkey -pubout -in KEY"},
		{Text: "Put the two files of one order there."},
		taken,
	}},
	{state: checkin.CertificateUnreadable, class: bad, title: "The certificate of %s cannot be read", why: fallbackServed, steps: []step{
		{Text: "See on the host what is wrong with it; mostly it is damaged, encrypted or too weak:", Command: agentStatus},
		{Text: "Put a pair there that nginx can load."},
		taken,
	}},
	{state: checkin.CertificateExpiring, class: warn, title: "The certificate of %s ends soon", why: "All is well until then.", steps: []step{
		renew, {Text: "See on the host what is there:", Command: certificateOf}, taken,
	}},
}

// certificateProblems are one a state, however many domains.
func certificateProblems(a store.Agent, now time.Time) []problem {
	var list []problem
	for _, advice := range certificateStates {
		var domains []string
		for domain, c := range a.Report.Certificates {
			state := c.StateAt(now)
			early := state == checkin.CertificateExpired && c.NotAfter != nil && now.Before(*c.NotAfter)
			if state == advice.state && early == advice.early {
				domains = append(domains, domain)
			}
		}
		if len(domains) == 0 {
			continue
		}
		slices.Sort(domains)
		name := readable(domains[0])
		if len(domains) > 1 {
			name += fmt.Sprintf(" (and %d more)", len(domains)-1)
		}
		list = append(list, problem{
			Class: advice.class, Title: fmt.Sprintf(advice.title, name), Why: advice.why, See: "#certificates", Steps: ofDomain(advice.steps, domains[0]),
		})
	}
	return list
}

// ofDomain fills in the files of a domain. What is no domain gets into no command.
func ofDomain(steps []step, domain string) []step {
	name, err := checkin.ParseDomain(domain)
	files := strings.NewReplacer("CRT", fmt.Sprintf("/etc/ssl/certs/%s.crt", name), "KEY", fmt.Sprintf("/etc/ssl/private/%s.key", name))
	steps = slices.Clone(steps)
	for i, s := range steps {
		if steps[i].Command = files.Replace(s.Command); err != nil && steps[i].Command != s.Command {
			steps[i].Command = ""
		}
	}
	return steps
}
