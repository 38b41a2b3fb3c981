package pass

import (
	"context"
	"errors"
	"fmt"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/state"
)

// recogniseHost finds out whether this is still the host of which the state
// tells, under the name by which the manager knows it.
func (p *pass) recogniseHost(ctx context.Context) {
	if id := p.facts.MachineID; id != "" {
		if p.state.MachineID != "" && p.state.MachineID != id {
			p.beginAnew()
			p.probe(ctx)
		}
		p.state.MachineID = id
	}
	name := p.hostname()
	if name == "" {
		return
	}
	if p.state.Hostname != "" && p.state.Hostname != name {
		p.Log.Info("checking in under a new name: the manager lists the old one as an agent of its own", "old", p.state.Hostname, "new", name)
		p.state.Volumes.Told = false
	}
	p.state.Hostname = name
}

// beginAnew forgets what was learnt on another machine, of which this one is a
// clone: which directories it made, what it told, who held a service. What its
// files serve stays in place until the first snapshot, and like every host that
// serves a real site it does not obey an answer without one.
func (p *pass) beginAnew() {
	p.Log.Warn("the state is that of another machine, of which this one seems to be a clone: beginning anew")
	p.state = state.State{Services: map[string]state.Service{}, RealSite: p.state.RealSite}
	p.accepted, p.recovered = state.Accepted{}, false
	p.probed = false
	if err := p.dir.DropSnapshots(); err != nil {
		p.fault(err)
	}
}

// maxSkew is how far two clocks may differ before anybody should care.
const maxSkew = 2 * time.Minute

// compareClocks warns, once a pass, when the manager's clock tells another time
// than this host's: certificates, holds and pauses go by the latter.
func (p *pass) compareClocks(answer checkin.Answer, err error) {
	theirs := answer.Date
	var refused *checkin.RefusedError
	if errors.As(err, &refused) {
		theirs = refused.Date
	}
	ours := time.Now()
	ahead := ours.Sub(theirs).Round(time.Second)
	if p.rounds > 1 || theirs.IsZero() || ahead.Abs() < maxSkew {
		return
	}
	how := "behind"
	if ahead > 0 {
		how = "ahead of"
	}
	p.Log.Warn(fmt.Sprintf("this host's clock is %s %s the manager's: one of them is wrong", ahead.Abs(), how),
		"here", ours.UTC().Format(time.DateTime), "manager", theirs.UTC().Format(time.DateTime), "look", "timedatectl")
}
