package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type agentsCommand struct {
	Site  string `help:"Only those of this site." placeholder:"SITE"`
	State string `enum:",online,late,offline" default:"" complete:"online,late,offline" help:"Only those that are online, late or offline." placeholder:"STATE"`
	Watch bool   `help:"Show them again and again, until Ctrl-C."`
	JSON  bool   `name:"json" help:"Print JSON; with --watch one line each time."`
}

// Run lists the agents, once or until the context ends.
func (c agentsCommand) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		siteID, err := siteIDOf(e, s, c.Site)
		if err != nil {
			return err
		}
		if c.Watch {
			return e.watch(func() error { return c.list(e, s, siteID) })
		}
		return c.list(e, s, siteID)
	})
}

func (c agentsCommand) list(e *environmentOf, s *store.Store, siteID int64) error {
	rows, _, err := s.ListAgents(e, store.AgentFilter{SiteID: siteID}, store.ListOptions{Limit: store.All, Sort: "siteId"})
	if err != nil {
		return err
	}
	pins, err := pinsOf(e, s)
	if err != nil {
		return err
	}
	now := time.Now()
	rows = slices.DeleteFunc(rows, func(a store.Agent) bool { return c.State != "" && c.State != string(a.Presence(now)) })
	if c.JSON {
		return e.printJSON(shownAs(rows, show.AgentOf(now, pins)))
	}
	failed, err := failedVolumes(e, s)
	if err != nil {
		return err
	}
	return printAgents(e, rows, pins, failed, now)
}

// failedVolumes is how many volumes could not be provided, by site: what an agent
// tells of a volume is kept with the volume.
func failedVolumes(e *environmentOf, s *store.Store) (map[int64]int, error) {
	counts, err := s.CountVolumes(e)
	failed := map[int64]int{}
	for _, count := range counts {
		if count.Status == store.VolumeFailed {
			failed[count.SiteID] = count.Total
		}
	}
	return failed, err
}

func printAgents(e *environmentOf, agents []store.Agent, pins map[int64]*show.Pin, failedVolumes map[int64]int, now time.Time) error {
	t := newTable(e.stdout, "ID", "SITE", "HOST", "STATE", "LAST SEEN", "ADDRESS", "VERSION", "PROBLEMS")
	for _, a := range agents {
		problems, version := problemsOf(a), ""
		if n := failedVolumes[a.SiteID]; n > 0 {
			problems = append(problems, fmt.Sprintf("%d of the site's volumes failed", n))
		}
		if pin := pins[a.SiteID]; pin != nil {
			problems = append(problems, fmt.Sprintf("site pinned to revision %d", pin.Revision))
		}
		if len(problems) == 0 {
			problems = []string{"none"}
		}
		if a.Report.Agent != nil {
			version = a.Report.Agent.Version
		}
		t.row(a.ID, a.SiteID, a.Hostname, a.Presence(now), since(a.LastSeenAt, now), a.Address(), version, strings.Join(problems, "; "))
	}
	return t.flush()
}

// problemsOf says in a few words each what somebody should look at.
func problemsOf(a store.Agent) []string {
	problems := []string{}
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if a.Report.Fault != nil {
		add("its last report cannot be read")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Report.Services)) {
		service := a.Report.Services[name]
		if service.State != "active" && service.Outcome != checkin.OutcomeSkipped {
			add("%s is %s", name, service.State)
		}
		if service.Hold != nil {
			add("%s is on hold", name)
		}
		switch {
		case service.Outcome.Failed():
			add("%s %s", name, strings.ReplaceAll(string(service.Outcome), "_", " "))
		case service.Failing():
			add("%s apply failed", name)
		}
		if n := len(service.Quarantined); n > 0 {
			add("%s left out %d", name, n)
		}
	}
	if a.Report.Guard != nil {
		add("removal of %d of %d held back", a.Report.Guard.Removed, a.Report.Guard.Total)
	}
	for _, domain := range slices.Sorted(maps.Keys(a.Report.Certificates)) {
		if state := a.Report.Certificates[domain].State; state != checkin.CertificateOK {
			add("certificate of %s %s", domain, state)
		}
	}
	return problems
}
