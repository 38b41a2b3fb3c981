package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

type agentsCommand struct {
	Site  int64  `help:"Only those of this site." placeholder:"N"`
	State string `enum:",online,late,offline" default:"" complete:"online,late,offline" help:"Only those that are online, late or offline." placeholder:"STATE"`
	Watch bool   `help:"Show them again and again, until Ctrl-C."`
	JSON  bool   `name:"json" help:"Print JSON; with --watch one line each time."`
}

// agentOf is an agent as it is printed.
type agentOf struct {
	ID          int64                            `json:"id"`
	SiteID      int64                            `json:"siteId"`
	Hostname    string                           `json:"hostname"`
	State       store.Presence                   `json:"state"`
	FirstSeenAt time.Time                        `json:"firstSeenAt"`
	LastSeenAt  time.Time                        `json:"lastSeenAt"`
	PeerAddress string                           `json:"peerAddress"`
	ClockSkewMS *int64                           `json:"clockSkewMs"`
	Version     string                           `json:"version"`
	RunningETag string                           `json:"runningEtag"`
	Services    map[string]checkin.ServiceReport `json:"services"`
	Problems    []string                         `json:"problems"`
	Pin         *pinOf                           `json:"pin"` // of its site
}

// Run lists the agents, once or until the context ends.
func (c agentsCommand) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		if c.Watch {
			return e.watch(func() error { return c.list(e, s) })
		}
		return c.list(e, s)
	})
}

func (c agentsCommand) list(e *environmentOf, s *store.Store) error {
	rows, _, err := s.ListAgents(e, store.AgentFilter{SiteID: c.Site}, store.ListOptions{Limit: store.All, Sort: "siteId"})
	if err != nil {
		return err
	}
	pins, err := pinsOf(e, s)
	if err != nil {
		return err
	}
	now := time.Now()
	shown := []agentOf{}
	for _, row := range rows {
		if agent := showAgent(row, pins[row.SiteID], now); c.State == "" || c.State == string(agent.State) {
			shown = append(shown, agent)
		}
	}
	if c.JSON {
		return e.printJSON(shown)
	}
	return printAgents(e, shown, now)
}

func printAgents(e *environmentOf, agents []agentOf, now time.Time) error {
	t := newTable(e.stdout, "ID", "SITE", "HOST", "STATE", "LAST SEEN", "ADDRESS", "VERSION", "PROBLEMS")
	for _, a := range agents {
		problems := strings.Join(a.Problems, "; ")
		if problems == "" {
			problems = "none"
		}
		t.row(a.ID, a.SiteID, a.Hostname, a.State, since(a.LastSeenAt, now), a.PeerAddress, a.Version, problems)
	}
	return t.flush()
}

func showAgent(a store.Agent, pin *pinOf, now time.Time) agentOf {
	shown := agentOf{
		ID: a.ID, SiteID: a.SiteID, Hostname: a.Hostname, State: a.Presence(now),
		FirstSeenAt: a.FirstSeenAt.UTC(), LastSeenAt: a.LastSeenAt.UTC(), PeerAddress: a.PeerAddress, ClockSkewMS: a.ClockSkewMS,
		Services: a.Report.Services, Problems: problemsOf(a), Pin: pin,
	}
	if pin != nil {
		shown.Problems = append(shown.Problems, fmt.Sprintf("site pinned to revision %d", pin.Revision))
	}
	if a.Report.Agent != nil {
		shown.Version = a.Report.Agent.Version
	}
	if a.Report.Running != nil {
		shown.RunningETag = a.Report.Running.ETag
	}
	return shown
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
