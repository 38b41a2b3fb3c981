package pass

import (
	"errors"
	"fmt"
	"time"

	"opensource.internal/agent/checkin"
)

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
