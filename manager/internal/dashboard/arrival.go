package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// arrivalsView is how far a site's content has come: published, received by its
// agents, in force there.
type arrivalsView struct {
	Headline string
	Done     int
	Number   int64
	How      string // "Published", "Pinned" or "Unpinned"
	Since    moment
	Agents   []arrivalView
}

// arrivalView is how far it has come on one agent.
type arrivalView struct {
	ID            int64
	Host          string
	Presence      string
	PresenceClass string
	Seen, SeenAge string
	Stage, Class  string // in a word
	Received      moment // when it was given it
	Applied       moment // since when all of it is in force
	Words         string
	Message       string
	Link          templ.SafeURL // where a removal is confirmed
	InForce       bool
	anchored      string
}

// heldBackStage waits for an administrator's word.
const heldBackStage = "held back"

// moment is a step and, if it is known, when it was taken.
type moment struct {
	Done           bool
	At, Age, Exact string
}

func momentOf(at, now time.Time) moment {
	return moment{Done: true, At: at.UTC().Format(machineTime), Age: ago(max(0, now.Sub(at))), Exact: at.UTC().Format(humanTime)}
}

// arrivals tells of each agent whether it has what agents get now.
func (d *dashboard) arrivals(v *visit, s store.Site, current *snapshot.Current, agents []store.Agent) (arrivalsView, error) {
	how, since, err := d.since(v, s, current)
	if err != nil {
		return arrivalsView{}, err
	}
	view := arrivalsView{Number: current.Number, How: how, Since: momentOf(since, v.Now)}
	for _, a := range agents {
		arrival := arrivalOf(a, current.ETag, since, v.Now)
		if arrival.Stage == heldBackStage && v.canWrite() {
			arrival.Link = d.removalsOf(a.ID)
		}
		if arrival.InForce {
			view.Done++
		}
		view.Agents = append(view.Agents, arrival)
	}
	view.Headline = view.sumUp()
	return view, nil
}

// sumUp says how many agents have come how far.
func (view arrivalsView) sumUp() string {
	name := fmt.Sprintf("revision %d", view.Number)
	switch all := len(view.Agents); {
	case all == 0:
		return "No agent has checked in for this site yet."
	case view.Done == all && all == 1:
		return "The agent runs " + name + "."
	case view.Done == all:
		return fmt.Sprintf("All %d agents run %s.", all, name)
	case all == 1:
		return "The agent does not run " + name + " yet."
	}
	return fmt.Sprintf("%d of %d agents run %s.", view.Done, len(view.Agents), name)
}

// since is when agents began to get what they get now, and by what.
func (d *dashboard) since(v *visit, s store.Site, current *snapshot.Current) (how string, at time.Time, err error) {
	if current.Pin != nil {
		return "Pinned", current.Pin.PinnedAt, nil
	}
	row, err := d.store.GetRevision(v.Request.Context(), s.ID, current.Number)
	if err != nil {
		return "", time.Time{}, err
	}
	unpinned, _, err := d.store.ListAudit(v.Request.Context(), store.AuditFilter{SiteID: s.ID, Action: store.ActionUnpin, Since: row.CreatedAt}, store.ListOptions{Limit: 1})
	if err != nil {
		return "", time.Time{}, err
	}
	if len(unpinned) > 0 {
		return "Unpinned", unpinned[0].At, nil
	}
	return "Published", row.CreatedAt, nil
}

// arrivalOf says how far the content of a tag, which agents get since a moment,
// has come on an agent.
func arrivalOf(a store.Agent, etag string, since, now time.Time) arrivalView {
	presence := a.Presence(now)
	view := arrivalView{
		ID: a.ID, Host: a.Hostname, Presence: string(presence), PresenceClass: presenceClass(presence),
		Seen: a.LastSeenAt.UTC().Format(machineTime), SeenAge: ago(a.Age(now)), anchored: fmt.Sprintf("arrival-%d", a.ID),
	}
	told := tellsToHave(a.Report, etag)
	running := a.Report.Running
	runs := running != nil && checkin.SameETag(running.ETag, etag)
	guarded := a.Report.Guard != nil && (a.Report.Guard.ETag == "" || checkin.SameETag(a.Report.Guard.ETag, etag))
	asked := a.LastSeenAt.After(since)
	switch {
	case a.FetchedAt != nil && checkin.SameETag(a.FetchedETag, etag):
		view.Received = momentOf(*a.FetchedAt, now)
	case told || runs || guarded || asked:
		view.Received = moment{Done: true}
	}
	switch {
	case a.Report.Fault != nil:
		view.Stage, view.Class, view.Words = "unknown", warn, "Its last report could not be read."
	case runs:
		view.InForce, view.Stage, view.Class = true, "in force", good
		view.Applied = moment{Done: true}
		if since := running.Since.Add(-clockAhead(a)); !isAhead(since, now) {
			view.Applied = momentOf(since, now)
		}
	case guarded:
		view.Stage, view.Class = heldBackStage, warn
		view.Words = "It " + removes(*a.Report.Guard) + ", so an administrator has to confirm that first."
	case told:
		view.inPart(a, etag, now)
	case asked && running == nil && !a.Report.TellsTags():
		view.Stage, view.Class, view.Words = "unknown", neutral, "It was given it, but it does not tell what it runs: an older agent."
	case asked:
		view.Stage, view.Words = "received", "It was given it with its check-in, and has not told yet what became of it."
	case presence == store.Offline:
		view.Stage, view.Class, view.Words = "offline", bad, "It has not checked in since. Look on its host: systemctl status opensource-agent.timer"
	default:
		view.Stage, view.Words = "waiting", "It has not checked in since: agents do every 30 seconds."
	}
	return view
}

// inPart tells of an agent that has told to have it, and that not all of it is in
// force. The stage is that of the worst; words are of all that is in the way.
func (view *arrivalView) inPart(a store.Agent, etag string, now time.Time) {
	var runs, waits, words []string
	for _, name := range slices.Sorted(maps.Keys(a.Report.Services)) {
		service := a.Report.Services[name]
		switch {
		case service.Hold != nil:
			if view.Class != bad {
				view.Stage, view.Class = "on hold", warn
			}
			words = append(words, describeHold(*service.Hold, now, clockAhead(a))+" ("+name+").")
		case service.Failing() && view.Class == bad:
			words = append(words, failed(name, service))
		case service.Failing():
			view.Stage, view.Class = cmp.Or(outcomes[service.Outcome].word, "failed"), bad
			words = slices.Insert(words, 0, failed(name, service))
			view.Message = service.Message
		case checkin.SameETag(service.RunningETag, etag):
			runs = append(runs, name)
		default:
			waits = append(waits, name)
		}
	}
	if view.Words = strings.Join(words, " "); view.Words != "" {
		return
	}
	view.Stage = "received"
	switch {
	case len(waits) == 0:
		view.Stage, view.Class = "in part", warn
		view.Words = "Its services run it, but not every record or volume of it is in force: the list of agents says which."
	case len(runs) > 0:
		view.Words = strings.Join(runs, " and ") + " has it in force, " + strings.Join(waits, " and ") + " not yet."
	default:
		view.Words = "It is taking it over."
	}
}

func failed(name string, service checkin.ServiceReport) string {
	return name + ": " + cmp.Or(outcomes[service.Outcome].meaning, "its last apply failed.")
}

// tellsToHave reports whether an agent has told that it was given the content of
// a tag.
func tellsToHave(report store.Report, etag string) bool {
	for _, service := range report.Services {
		if checkin.SameETag(service.ReceivedETag, etag) {
			return true
		}
	}
	return false
}
