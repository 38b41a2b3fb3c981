package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"opensource.internal/agent/checkin"
)

// probesView is what a site's probes of its HTTP services found.
type probesView struct {
	Summary string // empty if nothing was probed
	Class   string
	Failing []probeView
	More    int // that fail and are not listed
}

type probeView struct {
	Name    string
	Hop     string
	Message string
}

// maxProbes is how many probes that fail are listed.
const maxProbes = 50

// hops say what fails, for people.
var hops = map[checkin.ProbeHop]string{
	checkin.HopDNS:         "no address in DNS",
	checkin.HopListener:    "nothing listens",
	checkin.HopCertificate: "certificate is not accepted",
	checkin.HopBackend:     "container does not answer",
}

func describeProbes(probes map[string]checkin.Probe) probesView {
	if len(probes) == 0 {
		return probesView{}
	}
	view := probesView{Class: good}
	failing := 0
	for _, name := range slices.Sorted(maps.Keys(probes)) {
		probe := probes[name]
		if probe.Hop == checkin.HopNone {
			continue
		}
		if failing++; failing <= maxProbes {
			hop := cmp.Or(hops[probe.Hop], string(probe.Hop))
			view.Failing = append(view.Failing, probeView{Name: readable(name), Hop: hop, Message: probe.Message})
		}
	}
	view.More = failing - len(view.Failing)
	view.Summary = fmt.Sprintf("%d probed, all reached", len(probes))
	if failing > 0 {
		view.Class, view.Summary = warn, fmt.Sprintf("%d of %d not reached", failing, len(probes))
	}
	return view
}
