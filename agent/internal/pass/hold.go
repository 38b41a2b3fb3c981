package pass

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/render"
)

// longestHold is how long a service may be held at once.
const longestHold = 30 * 24 * time.Hour

// The most that is kept of the words of a hold, in bytes.
const (
	maxReason = 512
	maxBy     = 64
)

// steppedBack is how far a clock may be set back, as when it is put right
// after a boot, without an end to the holds that began before.
const steppedBack = 5 * time.Minute

// noteHolds ends the holds whose time is over, and takes note of the others
// before anything is told. Of a service that was held, all is tried anew.
func (p *pass) noteHolds(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(p.state.Holds)) {
		if why := ended(p.state.Holds[name], now); why != "" {
			p.Log.Info("hold ended", "service", name, "reason", why)
			delete(p.state.Holds, name)
		}
	}
	for _, service := range p.services {
		stands := p.state.Services[service.Name]
		hold, held := p.state.Holds[service.Name]
		switch {
		case held:
			p.noteHold(service.Name, &stands, hold)
		case stands.Outcome == checkin.OutcomeHeld:
			p.Log.Info("not held any more: what is due is applied now", "service", service.Name)
			stands.Outcome, stands.Message, stands.Retry = "", "", nil
			p.state.Fingerprint = ""
		default:
			continue
		}
		p.state.Services[service.Name] = stands
	}
}

// ended says why a hold is over, or nothing if it is not. A clock that was set
// back ends it: else it would last as long as the clock was set back.
func ended(hold state.Hold, now time.Time) string {
	switch {
	case !now.Before(hold.Until):
		return "its time is over"
	case now.Before(hold.From.Add(-steppedBack)):
		return "the clock was set back to before its beginning"
	}
	return ""
}

func (p *pass) noteHold(name string, stands *state.Service, hold state.Hold) {
	message := "held " + describe(hold)
	cutShort := p.engine.CutShort(name)
	if cutShort {
		message += "\nan earlier pass was cut short while it replaced files: they are left as they are until then"
	}
	if stands.Outcome != checkin.OutcomeHeld || stands.Message != message || p.ByHand {
		p.Log.Info("held", "service", name, "until", localTime(hold.Until), "by", hold.By, "reason", hold.Reason)
		if cutShort {
			p.Log.Warn("an earlier pass was cut short while it replaced files: they are left as they are until the hold ends", "service", name)
		}
	}
	stands.Outcome, stands.Message = checkin.OutcomeHeld, message
}

// held reports whether apply and repair are suspended for a service.
func (p *pass) held(name string) bool {
	_, held := p.state.Holds[name]
	return held
}

// describe says until when, by whom and why.
func describe(hold state.Hold) string {
	text := "until " + localTime(hold.Until)
	if hold.By != "" {
		text += " by " + hold.By
	}
	if hold.Reason != "" {
		text += ": " + hold.Reason
	}
	return text
}

func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// Holds are the services of a host that are held. They are changed between two
// passes; one that runs is waited for as by another pass.
type Holds struct {
	StateDirectory string
	Log            *slog.Logger
}

// Hold suspends apply and repair of a service for that long, in place of an
// earlier hold. It returns until when, in words.
func (h Holds) Hold(ctx context.Context, service string, duration time.Duration, reason, by string) (string, error) {
	from := time.Now().UTC().Truncate(time.Second)
	hold := state.Hold{From: from, Hold: checkin.Hold{
		Until: from.Add(duration), Reason: oneLine(reason, maxReason), By: oneLine(by, maxBy),
	}}
	err := h.change(ctx, func(holds map[string]state.Hold) { holds[service] = hold })
	return describe(hold), err
}

// Release ends the hold of a service, or all for an empty name. It returns the
// names of those that were held.
func (h Holds) Release(ctx context.Context, service string) ([]string, error) {
	var released []string
	err := h.change(ctx, func(holds map[string]state.Hold) {
		for _, name := range slices.Sorted(maps.Keys(holds)) {
			if service == "" || service == name {
				released = append(released, name)
				delete(holds, name)
			}
		}
	})
	return released, err
}

func (h Holds) change(ctx context.Context, change func(map[string]state.Hold)) error {
	dir, err := state.Open(h.StateDirectory)
	if err != nil {
		return err
	}
	unlock, err := dir.Lock(ctx, lockWait)
	if err != nil {
		return err
	}
	defer unlock()
	known, err := h.load(dir)
	if err != nil {
		return err
	}
	if known.Holds == nil {
		known.Holds = map[string]state.Hold{}
	}
	change(known.Holds)
	return dir.SaveState(known)
}

func (h Holds) load(dir *state.Dir) (state.State, error) {
	known, _, warnings := dir.Load()
	for _, warning := range warnings {
		if errors.Is(warning, fs.ErrPermission) {
			return known, warning
		}
		h.Log.Warn("going on with less knowledge", "error", warning)
	}
	return known, nil
}

// oneLine makes words fit for a line of a list.
func oneLine(words string, limit int) string {
	return checkin.CleanMessage(strings.Join(strings.Fields(words), " "), limit)
}

// List describes every hold whose time is not over, a line each.
func (h Holds) List() ([]string, error) {
	known, err := h.load(state.OpenToRead(h.StateDirectory))
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(known.Holds)) {
		if hold := known.Holds[name]; ended(hold, time.Now()) == "" {
			lines = append(lines, name+" is held "+describe(hold))
		}
	}
	return lines, nil
}

// CheckHold returns an error unless there is a managed service of that name
// that may be held for that long.
func CheckHold(service string, duration time.Duration) error {
	if err := CheckService(service); err != nil {
		return err
	}
	if duration < time.Second || duration > longestHold {
		return errors.New("--for: a service is held for a second at least, and for 30 days (30d) at most")
	}
	return nil
}

// CheckService returns an error unless there is a managed service of that name.
func CheckService(name string) error {
	var known []string
	for _, service := range services.All(nil, render.Paths{}) {
		known = append(known, service.Name)
	}
	if !slices.Contains(known, name) {
		return fmt.Errorf("%q is no managed service: say %s", name, strings.Join(known, " or "))
	}
	return nil
}
