package api

import (
	"reflect"
	"sync"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

// knownAgents remembers what each agent said last.
type knownAgents struct {
	mu     sync.RWMutex
	agents map[agentKey]knownAgent
	// deletions is the store's counter of deleted agents that the map goes
	// with: an agent that was deleted and comes back has another id.
	deletions uint64
}

type agentKey struct {
	siteID   int64
	hostname string
}

type knownAgent struct {
	id     int64
	told   int64            // how often it had told something new by then
	given  string           // the tag of the snapshot that it was given last
	report *checkin.Request // without what changes with every check-in
}

func (k *knownAgents) has(key agentKey) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	_, known := k.agents[key]
	return known
}

// add remembers an agent that was read or written after the given count of
// deletions was. If more have been deleted since, it may be one of them.
func (k *knownAgents) add(key agentKey, deletions uint64, agent store.Agent, report *checkin.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.deletions > deletions {
		return
	}
	if k.agents == nil {
		k.agents = map[agentKey]knownAgent{}
	}
	k.agents[key] = knownAgent{id: agent.ID, told: agent.Told, given: agent.FetchedETag, report: lasting(report)}
}

// wasGiven reports whether an agent is known and was given a snapshot last.
func (k *knownAgents) wasGiven(key agentKey, etag string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.agents[key].given == etag
}

// saysNothingNew reports whether an agent is known and said the same before.
func (k *knownAgents) saysNothingNew(key agentKey, report *checkin.Request) (agent knownAgent, same bool) {
	k.mu.RLock()
	agent, known := k.agents[key]
	k.mu.RUnlock()
	return agent, known && reflect.DeepEqual(agent.report, lasting(report))
}

// forget drops an agent that has told another manager something.
func (k *knownAgents) forget(key agentKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.agents, key)
}

// forgetDeleted drops everything when agents have been deleted: that is rare,
// and what is still there is found again in the database.
func (k *knownAgents) forgetDeleted(deletions uint64) {
	k.mu.RLock()
	current := k.deletions == deletions
	k.mu.RUnlock()
	if current {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if deletions > k.deletions { // a slower request may come with an older count
		k.agents, k.deletions = nil, deletions
	}
}

// lasting is a report without what is different every time: clock, duration of
// the pass, free disk space. Those are kept with the heartbeat.
func lasting(report *checkin.Request) *checkin.Request {
	r := *report
	r.CurrentTime = 0
	if r.Agent != nil {
		agent := *r.Agent
		agent.Pass = nil
		r.Agent = &agent
	}
	if r.Host != nil {
		host := *r.Host
		host.DiskFreeBytes = 0
		r.Host = &host
	}
	return &r
}
