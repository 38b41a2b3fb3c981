package notify

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"opensource.internal/manager/internal/store"
)

// Options are what New needs.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	// Window is how long is waited for more to tell in the same message.
	Window time.Duration
	// Remind is after how long of what goes on is told again; never if 0.
	Remind time.Duration
	// Link is where people look on, "" if that is not known.
	Link string
	// Sent, if set, is told of every attempt, and with what error it ended.
	Sent func(err error)
	// Now is time.Now and Send is the function of that name, if nil.
	Now  func() time.Time
	Send func(ctx context.Context, url string, message Message) error
}

// Notifier tells targets what is wrong. It is safe for concurrent use.
type Notifier struct {
	Options

	mu      sync.Mutex
	looked  map[int64]int64 // Agent.Told of the last report that was looked at, by agent; of follow alone
	waits   map[int64]*wait
	pending map[int64]int // how much there is to tell, by target
}

// wait is how long a target that failed is left alone. It is in memory only:
// after a restart it may well be tried at once.
type wait struct {
	growing *backoff.ExponentialBackOff
	until   time.Time
	setAt   time.Time // of the URL that failed
}

// The pauses after failures, from the first on, doubled each time.
const (
	firstPause = 30 * time.Second
	lastPause  = time.Hour
)

const (
	// batch is how many events are looked at in one transaction.
	batch = 200
	// sendTimeout bounds one delivery.
	sendTimeout = 20 * time.Second
	// parallel is how many targets are told at once.
	parallel = 8
	// kept is how long episodes that are over are kept.
	kept = 7 * 24 * time.Hour
)

// New returns a Notifier.
func New(o Options) *Notifier {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Send == nil {
		o.Send = new(sender).send
	}
	if o.Sent == nil {
		o.Sent = func(error) {}
	}
	return &Notifier{Options: o, waits: map[int64]*wait{}, pending: map[int64]int{}}
}

// Run does what there is to do: makes episodes of what has happened, and tells
// every target what it does not know yet. One target that fails does not keep
// the others waiting.
func (n *Notifier) Run(ctx context.Context) error {
	if err := n.follow(ctx); err != nil {
		return err
	}
	targets, _, err := n.Store.ListNotificationTargets(ctx, store.NotificationTargetFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		return err
	}
	n.forgetOthers(targets)
	var all sync.WaitGroup
	room := make(chan struct{}, parallel)
	faults := make([]error, len(targets))
	for i, target := range targets {
		if !target.Enabled {
			continue
		}
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			faults[i] = n.tell(ctx, target)
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// follow makes episodes of all events that are new.
func (n *Notifier) follow(ctx context.Context) error {
	for {
		seen, err := n.Store.FollowEvents(ctx, batch, meaning)
		if err != nil {
			return err
		}
		if seen < batch {
			break
		}
	}
	if err := n.closeOver(ctx); err != nil {
		return err
	}
	return n.Store.CloseEpisodes(ctx, n.Now().Add(-kept))
}

// closeOver ends what is over according to what agents report now: the event
// that says so may have been left out among too many. A report is looked at
// once.
func (n *Notifier) closeOver(ctx context.Context) error {
	open, err := n.Store.OpenEpisodes(ctx)
	if err != nil {
		return err
	}
	looked := map[int64]int64{}
	unseen := map[int64][]store.OpenEpisode{}
	for _, e := range open {
		looked[e.AgentID] = e.Told
		if n.looked[e.AgentID] != e.Told {
			unseen[e.AgentID] = append(unseen[e.AgentID], e)
		}
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(unseen)), batch) {
		agents, err := n.Store.AgentsByID(ctx, ids)
		if err != nil {
			return err
		}
		if err := n.Store.CloseByReport(ctx, over(agents, unseen)); err != nil {
			return err
		}
	}
	n.looked = looked
	return nil
}

// over are the episodes that have ended according to their agents' reports.
func over(agents []store.Agent, open map[int64][]store.OpenEpisode) []store.OpenEpisode {
	var ended []store.OpenEpisode
	for _, agent := range agents {
		for _, e := range open[agent.ID] {
			if e.Closing = ending(e.Episode, agent.Report.Request); agent.Report.Fault == nil && e.Told == agent.Told && e.Closing != "" {
				ended = append(ended, e)
			}
		}
	}
	return ended
}

// tell sends a target one message of all that there is to tell, once it has
// waited long enough for more. A fault of the target is noted; an error is one
// of the database.
func (n *Notifier) tell(ctx context.Context, target store.NotificationTarget) error {
	due, err := n.Store.DueEpisodes(ctx, target, n.remindBefore())
	if err != nil {
		return err
	}
	items, moot := n.sort(target, due)
	n.note(target.ID, len(items))
	if err := n.Store.KeepDeliveries(ctx, moot); err != nil {
		return err
	}
	if len(items) == 0 || n.Now().Before(n.ready(items)) || n.isPaused(target) {
		return nil
	}
	return n.deliver(ctx, target, items)
}

func (n *Notifier) remindBefore() time.Time {
	if n.Remind == 0 {
		return time.Time{}
	}
	return n.Now().Add(-n.Remind)
}

// sort tells apart what a target is to be told, and what it will never be.
func (n *Notifier) sort(target store.NotificationTarget, due []store.Due) (items []item, moot []store.Delivery) {
	for _, d := range due {
		over := d.ClosedAt != nil
		untold := over && d.ToldAt == nil
		switch {
		case untold && (d.Silenced || d.ClosedAt.Sub(d.OpenedAt) < n.Window):
			moot = append(moot, store.Delivery{TargetID: target.ID, EpisodeID: d.ID, ToldAt: n.Now().UTC(), Done: true})
		default:
			items = append(items, item{due: d, over: over, late: untold, till: !over && d.ToldAt != nil})
		}
	}
	return items, moot
}

// ready is when the one that waits longest has waited for the window.
func (n *Notifier) ready(items []item) time.Time {
	var oldest time.Time
	for _, i := range items {
		began := i.due.OpenedAt
		switch {
		case i.over:
			began = *i.due.ClosedAt
		case i.till:
			began = i.due.ToldAt.Add(n.Remind)
		}
		if oldest.IsZero() || began.Before(oldest) {
			oldest = began
		}
	}
	return oldest.Add(n.Window)
}

func (n *Notifier) deliver(ctx context.Context, target store.NotificationTarget, items []item) error {
	bounded, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := n.Send(bounded, target.URL, compose(items, n.Link))
	n.Sent(err)
	if ctx.Err() != nil {
		return ctx.Err() // the manager stops: it may have been sent, and will be again
	}
	if err != nil {
		pause := n.pause(target)
		n.Log.Warn("a notification was not delivered", "target", target.Name, "service", ServiceName(target.URL), "err", err, "againIn", pause)
		return n.Store.NoteFailure(ctx, target.ID, n.Now(), err.Error())
	}
	n.resume(target.ID)
	told := make([]store.Delivery, 0, len(items))
	for _, i := range items {
		told = append(told, store.Delivery{TargetID: target.ID, EpisodeID: i.due.ID, ToldAt: n.Now().UTC(), Done: i.over})
	}
	n.Log.Info("notified", "target", target.Name, "service", ServiceName(target.URL), "items", len(items))
	n.note(target.ID, 0)
	return n.Store.NoteSent(ctx, target.ID, n.Now(), told)
}

// Test sends a target a message that tells nothing. A fault of the target is
// reason; err is one of the database.
func (n *Notifier) Test(ctx context.Context, target store.NotificationTarget) (reason string, err error) {
	if fault := n.Send(ctx, target.URL, trial(target.Name, n.Link)); fault != nil {
		reason = fault.Error()
		return reason, n.Store.NoteFailure(context.WithoutCancel(ctx), target.ID, n.Now(), reason)
	}
	n.resume(target.ID)
	return "", n.Store.NoteSent(ctx, target.ID, n.Now(), nil)
}

// isPaused reports whether a target has failed and is left alone for a while. A
// new URL is tried at once.
func (n *Notifier) isPaused(target store.NotificationTarget) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.waits[target.ID]
	return w != nil && w.setAt.Equal(target.URLSetAt) && target.Failures > 0 && n.Now().Before(w.until)
}

func (n *Notifier) pause(target store.NotificationTarget) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.waits[target.ID]
	if w == nil || !w.setAt.Equal(target.URLSetAt) {
		w = &wait{growing: backoff.NewExponentialBackOff(), setAt: target.URLSetAt}
		w.growing.InitialInterval, w.growing.MaxInterval, w.growing.Multiplier = firstPause, lastPause, 2
		w.growing.Reset()
		n.waits[target.ID] = w
	}
	pause := w.growing.NextBackOff()
	w.until = n.Now().Add(pause)
	return pause.Round(time.Second)
}

func (n *Notifier) resume(id int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waits, id)
}

func (n *Notifier) note(id int64, items int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending[id] = items
}

// Pending is how much all targets together have not been told yet, as far as
// this manager tells them.
func (n *Notifier) Pending() (items int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, waiting := range n.pending {
		items += waiting
	}
	return items
}

// forgetOthers drops what is known of targets that are gone or disabled.
func (n *Notifier) forgetOthers(targets []store.NotificationTarget) {
	enabled := map[int64]bool{}
	for _, target := range targets {
		enabled[target.ID] = target.Enabled
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.pending {
		if !enabled[id] {
			delete(n.pending, id)
			delete(n.waits, id)
		}
	}
}
