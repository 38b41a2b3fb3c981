package preview

import (
	"fmt"
	"slices"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/revision"
)

// Effect is what a service has to do to take new files over.
type Effect string

// The effects.
const (
	Nothing Effect = "none"
	Reload  Effect = "reload"
	Restart Effect = "restart"
	Unknown Effect = "unknown" // its files cannot be rendered here
)

// Difference is what differs between two snapshots, on paper and on the host.
type Difference struct {
	Changes []revision.Change `json:"changes" nullable:"false" doc:"By record"`
	Summary revision.Summary  `json:"summary" doc:"How many changes, by resource"`
	Host    Basis             `json:"host" doc:"What the files are rendered for"`
	Files   []FileDiff        `json:"files" nullable:"false" doc:"Rendered files that differ"`
	Impact  Impact            `json:"impact"`
}

// Impact is whom a difference concerns.
type Impact struct {
	NGINX        Effect  `json:"nginx" enum:"none,reload,unknown"`
	DNSMasq      Effect  `json:"dnsmasq" enum:"none,reload,restart,unknown" doc:"A restart pauses DNS and DHCP for a moment"`
	HostNames    Touched `json:"hostNames" doc:"Public names that nginx answers"`
	Ports        Touched `json:"ports"`
	Reservations Touched `json:"reservations" doc:"Containers that DHCP gives their address"`
	DNSRecords   Touched `json:"dnsRecords" doc:"SRV records of the internal domain"`
	Volumes      Touched `json:"volumes"`
	// NotServed are records that the host cannot serve, and that were not left out
	// before.
	NotServed []checkin.QuarantinedItem `json:"notServed" nullable:"false" doc:"Records that are left out on the host from now on, and why"`
	// Guard is what agents hold back with their usual setting.
	Guard *checkin.Guard `json:"guard" doc:"Set if agents hold this back until an administrator confirms it, since it removes so much"`
	Words []string       `json:"words" nullable:"false" doc:"All this for people"`
	// Effects are what happens to the services, in words.
	Effects []ServiceEffect `json:"-"`
}

// ServiceEffect is what happens to a service.
type ServiceEffect struct {
	Service string
	Effect  Effect
	Words   string // a sentence
	Note    string // why it is not touched, or why that is not known; may be empty
}

// Touched are the names of records that something happens to.
type Touched struct {
	Added   []string `json:"added" nullable:"false"`
	Changed []string `json:"changed" nullable:"false"`
	Removed []string `json:"removed" nullable:"false"`
}

// Compare tells what differs between two snapshots, on a host. Manager is the
// manager's own version.
func Compare(before, after checkin.Snapshot, h Host, manager string) Difference {
	was, is := h.render(before), h.render(after)
	d := Difference{
		Changes: revision.Compare(before, after), Host: h.basis(manager, before, after), Files: compareFiles(was, is),
	}
	d.Summary = revision.Summarise(d.Changes)
	d.Impact = impactOf(d.Changes, before, after)
	d.Impact.NGINX, d.Impact.DNSMasq = effect(is[0], d.Files), effect(is[1], d.Files)
	d.Impact.Effects = []ServiceEffect{
		{nginx, d.Impact.NGINX, effectWords(is[0], d.Impact.NGINX), is[0].note()},
		{dnsmasq, d.Impact.DNSMasq, effectWords(is[1], d.Impact.DNSMasq), is[1].note()},
	}
	d.Impact.NotServed = append(newlyLeftOut(was[0], is[0]), newlyLeftOut(was[1], is[1])...)
	d.Impact.Words = d.Impact.words()
	return d
}

// newlyLeftOut are the records that a service leaves out after a change and did not
// before.
func newlyLeftOut(before, after Service) []checkin.QuarantinedItem {
	left := map[checkin.QuarantinedItem]bool{}
	for _, item := range before.LeftOut {
		left[item] = true
	}
	return slices.DeleteFunc(slices.Clone(after.LeftOut), func(item checkin.QuarantinedItem) bool { return left[item] })
}

// effect is what a service has to do if these files differ.
func effect(service Service, diffs []FileDiff) Effect {
	if service.failed {
		return Unknown
	}
	result := Nothing
	for _, diff := range diffs {
		switch {
		case diff.Service != service.Name:
		case strings.HasSuffix(diff.Path, "/dnsmasq.conf"):
			return Restart // its side files are read again at a signal, its main file is not
		default:
			result = Reload
		}
	}
	return result
}

func impactOf(changes []revision.Change, before, after checkin.Snapshot) Impact {
	i := Impact{HostNames: none(), Ports: none(), Reservations: none(), DNSRecords: none(), Volumes: none(), Guard: guardOf(before, after)}
	reserved := reservations(after)
	for _, change := range changes {
		switch change.Resource {
		case revision.HTTPService:
			i.HostNames.add(change, "host")
		case revision.ExternalDomain:
			i.HostNames.add(change, "name")
		case revision.TransportService:
			i.Ports.add(change, "externalPort", "protocol")
		case revision.DNSRecord:
			i.DNSRecords.add(change, "name", "target")
		case revision.Volume:
			i.Volumes.add(change)
		case revision.Container:
			i.Reservations.addReservation(change, reserved)
		}
	}
	if !managesDNSMasq(before) && !managesDNSMasq(after) {
		i.Reservations, i.DNSRecords = none(), none()
	}
	return i
}

func none() Touched { return Touched{Added: []string{}, Changed: []string{}, Removed: []string{}} }

// add adds a record by its name. If one of the naming fields changed, one name
// goes and another comes.
func (t *Touched) add(change revision.Change, naming ...string) {
	switch {
	case change.Action == revision.Added:
		t.Added = append(t.Added, change.Name)
	case change.Action == revision.Removed:
		t.Removed = append(t.Removed, change.Name)
	case slices.ContainsFunc(change.Fields, func(f revision.Field) bool { return slices.Contains(naming, f.Name) }):
		t.Added, t.Removed = append(t.Added, change.Name), append(t.Removed, change.Former)
	default:
		t.Changed = append(t.Changed, change.Name)
	}
}

// addReservation adds a container if DHCP knows it before or after.
func (t *Touched) addReservation(change revision.Change, reserved map[string]bool) {
	for _, field := range change.Fields {
		if field.Name != "macAddress" {
			continue
		}
		switch {
		case field.From == nil:
			t.Added = append(t.Added, change.Name)
		case field.To == nil:
			t.Removed = append(t.Removed, change.Name)
		default:
			t.Changed = append(t.Changed, change.Name)
		}
		return
	}
	matters := func(f revision.Field) bool { return f.Name == "hostname" || f.Name == "ipv4Address" }
	if reserved[change.Name] && slices.ContainsFunc(change.Fields, matters) {
		t.Changed = append(t.Changed, change.Name)
	}
}

func reservations(s checkin.Snapshot) map[string]bool {
	reserved := map[string]bool{}
	if s.Site != nil {
		for _, node := range s.Site.Nodes {
			for _, c := range node.Containers {
				reserved[c.Hostname] = c.MACAddress != ""
			}
		}
	}
	return reserved
}

func managesDNSMasq(s checkin.Snapshot) bool {
	return s.Site != nil && len(s.Site.MissingNetworkFields()) == 0
}

// The guard as agents have it unless they are told otherwise (REMOVAL_GUARD).
const (
	guardFew   = 4  // so many removals are never too many
	guardShare = 50 // percent
)

func guardOf(before, after checkin.Snapshot) *checkin.Guard {
	if after.RemovalsConfirmed {
		return nil
	}
	for _, kind := range []checkin.GuardKind{checkin.GuardServices, checkin.GuardReservations} {
		names, total := checkin.Removed(kind, before, after)
		if removed := len(names); removed > guardFew && removed*100 > total*guardShare {
			return &checkin.Guard{Removed: removed, Total: total, Kind: kind}
		}
	}
	return nil
}

// words puts an impact into sentences.
func (i Impact) words() []string {
	words := []string{}
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if i.Guard != nil {
		what := string(i.Guard.Kind)
		if i.Guard.Kind == checkin.GuardReservations {
			what = "DHCP reservations"
		}
		say("Agents hold this back until an administrator confirms it: it removes %d of %d %s.", i.Guard.Removed, i.Guard.Total, what)
	}
	for _, effect := range i.Effects {
		words = append(words, effect.Words)
	}
	for _, touched := range []struct {
		one string
		Touched
	}{{"host name", i.HostNames}, {"port", i.Ports}, {"DHCP reservation", i.Reservations}, {"SRV record", i.DNSRecords}, {"volume", i.Volumes}} {
		for _, part := range []struct {
			names  []string
			action revision.Action
		}{{touched.Added, revision.Added}, {touched.Changed, revision.Changed}, {touched.Removed, revision.Removed}} {
			if len(part.names) > 0 {
				say("%s %s: %s.", prose.Counted(len(part.names), touched.one), part.action, prose.Some(part.names))
			}
		}
	}
	for _, reason := range i.notServed() {
		say("Not served on the host: %s.", reason)
	}
	if len(i.Volumes.Removed) > 0 {
		say("The directories of removed volumes stay.")
	}
	return words
}

// notServed names the records that are not served, by the reason.
func (i Impact) notServed() []string {
	var reasons []string
	names := map[string][]string{}
	for _, item := range i.NotServed {
		if names[item.Reason] == nil {
			reasons = append(reasons, item.Reason)
		}
		names[item.Reason] = append(names[item.Reason], item.Name)
	}
	for n, reason := range reasons {
		reasons[n] = prose.Some(names[reason]) + " (" + reason + ")"
	}
	return reasons
}

func effectWords(service Service, effect Effect) string {
	switch {
	case effect == Unknown:
		return fmt.Sprintf("What happens to %s cannot be told: %s.", service.Name, *service.Note)
	case effect == Nothing && service.Note != nil:
		return service.note()
	case effect == Nothing:
		return service.Name + " is not touched."
	case effect == Restart:
		return service.Name + " is restarted: DNS and DHCP pause for a moment."
	case service.Name == nginx:
		return "nginx is reloaded: open connections stay."
	}
	return service.Name + " reads its files again, without a restart."
}

func (s Service) note() string {
	if s.Note == nil {
		return ""
	}
	return capital(*s.Note) + "."
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
