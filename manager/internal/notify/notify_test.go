package notify_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/notify"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// world is a store with one site, a notifier whose clock the test has, and
// what its targets got.
type world struct {
	t     *testing.T
	store *store.Store
	site  int64
	now   time.Time

	mu       sync.Mutex
	got      map[string][]notify.Message // by URL
	broken   map[string]error
	notifier *notify.Notifier
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: storetest.Open(t), now: time.Now().UTC(), got: map[string][]notify.Message{}, broken: map[string]error{}}
	site, err := w.store.CreateSite(t.Context(), inventory.Site{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	w.site = site.ID
	w.restart()
	return w
}

// restart is another notifier on the same store, as after a restart.
func (w *world) restart() {
	w.notifier = notify.New(notify.Options{
		Store: w.store, Log: slog.New(slog.DiscardHandler), Window: time.Minute, Remind: 24 * time.Hour,
		Link: "https://manager.example.com/agents", Now: func() time.Time { return w.now }, Send: w.send,
	})
}

func (w *world) send(_ context.Context, url string, message notify.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.broken[url]; err != nil {
		return err
	}
	w.got[url] = append(w.got[url], message)
	return nil
}

func (w *world) target(name string, change func(*store.NotificationTarget)) store.NotificationTarget {
	w.t.Helper()
	target := store.NotificationTarget{Name: name, URL: "generic+http://127.0.0.1/" + name, Severity: events.Warning, Enabled: true}
	if change != nil {
		change(&target)
	}
	if err := notify.Check(&target); err != nil {
		w.t.Fatal(err)
	}
	made, err := w.store.CreateNotificationTarget(w.t.Context(), target)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// report checks an agent in, at the notifier's time.
func (w *world) report(hostname string, outcome checkin.Outcome) {
	w.t.Helper()
	_, err := w.store.RecordCheckIn(w.t.Context(), store.CheckIn{
		SiteID: w.site, Hostname: hostname, At: w.now,
		Report: checkin.Request{Hostname: hostname, Services: map[string]checkin.ServiceReport{"nginx": {State: "active", Outcome: outcome, Message: "bind() failed"}}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// after lets time pass and the notifier run.
func (w *world) after(d time.Duration) {
	w.t.Helper()
	w.now = w.now.Add(d)
	if err := w.notifier.Run(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// want says how many messages a target must have got by now, and what is in the
// last one.
func (w *world) want(what string, target store.NotificationTarget, messages int, parts ...string) {
	w.t.Helper()
	got := w.got[target.URL]
	if len(got) != messages {
		w.t.Fatalf("%s: %d messages, want %d: %+v", what, len(got), messages, got)
	}
	if messages == 0 {
		return
	}
	last := got[messages-1].Title + "\n" + got[messages-1].Body
	for _, part := range parts {
		if !strings.Contains(last, part) {
			w.t.Errorf("%s: %q is not in\n%s", what, part, last)
		}
	}
}

func TestAnEpisodeIsToldOnceAndThatItIsOverOnce(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	w.report("web1", checkin.OutcomeApplied)
	w.report("web1", checkin.OutcomeRejected)
	w.after(10 * time.Second)
	w.want("within the window", target, 0)
	w.after(time.Minute)
	w.want("after the window", target, 1, "OpenSource Manager: 1 apply failed\n", "- web1 (lab): nginx: the new configuration was refused", "bind() failed", "https://manager.example.com/agents")
	w.report("web1", checkin.OutcomeRejected)
	w.report("web1", checkin.OutcomeRolledBack)
	w.after(time.Hour)
	w.want("the same again", target, 1)
	w.restart()
	w.after(time.Hour)
	w.want("after a restart", target, 1)
	w.after(23 * time.Hour)
	w.want("a day later", target, 2, "1 still not well", "(since ")
	w.after(time.Hour)
	w.want("reminded once a day", target, 2)
	w.report("web1", checkin.OutcomeApplied)
	w.after(2 * time.Minute)
	w.want("recovered", target, 3, "1 recovered", "nginx: the configuration is in force again")
	w.restart()
	w.after(48 * time.Hour)
	w.want("recovered for good", target, 3)
}

// Sites flap: what is over before anybody was told is not told.
func TestWhatIsOverAtOnceIsNotTold(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	w.report("web1", checkin.OutcomeRejected)
	w.now = w.now.Add(20 * time.Second)
	w.report("web1", checkin.OutcomeApplied)
	w.after(time.Hour)
	w.want("flapping", target, 0)
}

func TestWhatGetsWorseIsToldAnew(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	w.report("web1", checkin.OutcomeRejected)
	w.after(2 * time.Minute)
	w.report("web1", checkin.OutcomeStuck)
	w.after(2 * time.Minute)
	w.want("stuck", target, 2, "1 stuck, needs a person")
	w.report("web1", checkin.OutcomeApplied)
	w.after(2 * time.Minute)
	w.want("one end", target, 3, "1 recovered")
}

// Thousands of agents fall silent, say because the manager's own network is
// away: that is one message.
func TestThousandsAreOneMessage(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	const agents = 3000
	for i := range agents / 100 {
		site, err := w.store.CreateSite(t.Context(), inventory.Site{Name: fmt.Sprint("site", i)})
		if err != nil {
			t.Fatal(err)
		}
		w.site = site.ID
		for j := range 100 {
			w.report(fmt.Sprint("web", j), checkin.OutcomeRejected)
		}
	}
	w.after(2 * time.Minute)
	w.want("all at once", target, 1, "OpenSource Manager: 3000 apply failed", "Apply failed (3000)", "and 2990 more")
	if size := len(w.got[target.URL][0].Body); size > 4000 {
		t.Errorf("the message has %d bytes", size)
	}
	w.after(time.Hour)
	w.want("nothing is left", target, 1)
}

func TestSilentAndBack(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	w.now = time.Now().UTC().Add(-time.Hour)
	w.report("web1", checkin.OutcomeApplied)
	if err := w.store.MarkOffline(t.Context(), time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.now = time.Now().UTC()
	w.after(2 * time.Minute)
	w.want("silent", target, 1, "1 silent", "web1 (lab): has not checked in since")
	w.report("web1", checkin.OutcomeApplied)
	w.after(2 * time.Minute)
	w.want("back", target, 2, "1 recovered", "web1 (lab): checks in again")
}

// TestWhatIsOverWithoutAnEvent: an event that says that something is over may be
// one of too many. What agents report says it, too.
func TestWhatIsOverWithoutAnEvent(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	tell := func(report checkin.Request) {
		t.Helper()
		w.now = w.now.Add(time.Second)
		if _, err := w.store.RecordCheckIn(t.Context(), store.CheckIn{SiteID: w.site, Hostname: "web1", At: w.now, Report: report}); err != nil {
			t.Fatal(err)
		}
	}
	ill := func(etag string) checkin.Request {
		return checkin.Request{
			Agent: &checkin.AgentInfo{Version: "1"}, Guard: &checkin.Guard{Removed: 3, Total: 4, ETag: "x"},
			Services: map[string]checkin.ServiceReport{
				"dnsmasq": {LastApply: "failure", Outcome: "applied", Quarantined: []checkin.QuarantinedItem{{Kind: "host", ID: 7, Name: "db"}}},
				"nginx":   {LastApply: "failure", Outcome: "rejected", ReceivedETag: etag},
			},
			Certificates: map[string]checkin.Certificate{"example.com": {State: "missing"}},
		}
	}
	for i := range 310 {
		tell(ill(fmt.Sprint(i)))
	}
	w.after(2 * time.Minute)
	w.want("ill", target, 1, "1 apply failed", "1 certificate cannot be used", "1 mass removal held back", "1 record left out")
	last := ill("last")
	last.Services = map[string]checkin.ServiceReport{"nginx": {LastApply: "success", Outcome: "applied"}}
	last.Certificates = nil
	last.Guard = nil
	tell(last)
	w.after(2 * time.Minute)
	w.want("well", target, 2, "4 recovered", "nginx: works again", "certificate of example.com: not used any more", "holds back no configuration any more", "no longer so: dnsmasq: host db is left out")
}

// An agent that falls silent while something fails is silent, and nothing is over.
func TestSilentWhileFailing(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	w.now = time.Now().UTC().Add(-time.Hour)
	w.report("web1", checkin.OutcomeRejected)
	if err := w.store.MarkOffline(t.Context(), time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.now = time.Now().UTC()
	w.after(2 * time.Minute)
	w.want("silent", target, 1, "1 silent, 1 apply failed")
	w.after(time.Hour)
	w.want("goes on", target, 1)
	w.report("web1", checkin.OutcomeApplied)
	w.after(2 * time.Minute)
	w.want("back", target, 2, "2 recovered", "checks in again", "the configuration is in force again")
}

// Times are compared in the database as they are, whatever zone they are given in.
func TestEpisodesAreKeptInAnyZone(t *testing.T) {
	w := newWorld(t)
	w.now = w.now.In(time.FixedZone("", 14*3600))
	target := w.target("ops", nil)
	w.report("web1", checkin.OutcomeRejected)
	w.after(2 * time.Minute)
	w.report("web1", checkin.OutcomeApplied)
	if err := w.store.CloseEpisodes(t.Context(), w.now); err != nil { // nothing is closed yet
		t.Fatal(err)
	}
	w.after(time.Second)
	if err := w.store.CloseEpisodes(t.Context(), w.now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.after(2 * time.Minute)
	w.want("told", target, 2, "1 recovered")
}

func TestReasonOfASilence(t *testing.T) {
	w := newWorld(t)
	for reason, taken := range map[string]bool{
		"": true, " moving house ": true, strings.Repeat("x", 501): false, "a\nb": false, "\x1b[2J": false, "a\xff": false,
	} {
		_, err := w.store.SilenceSite(t.Context(), store.NotificationSilence{SiteID: w.site, Until: time.Now().Add(time.Hour), Reason: reason})
		var invalid *store.InvalidError
		if taken != (err == nil) || !taken && (!errors.As(err, &invalid) || invalid.Fields["reason"] == "") {
			t.Errorf("%q: %v", reason, err)
		}
	}
}

// The caller's deliveries stay as they are when one is of what is gone.
func TestKeepDeliveriesOfWhatIsGone(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	mine := []store.Delivery{{TargetID: target.ID, EpisodeID: 98, ToldAt: w.now}, {TargetID: target.ID, EpisodeID: 99, ToldAt: w.now}}
	if err := w.store.KeepDeliveries(t.Context(), mine); err != nil || mine[0].EpisodeID != 98 || mine[1].EpisodeID != 99 {
		t.Errorf("%+v, %v", mine, err)
	}
}

func TestSilencedSites(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	w.report("told", checkin.OutcomeRejected)
	w.after(2 * time.Minute)
	w.want("before", target, 1)
	silence, err := w.store.SilenceSite(t.Context(), store.NotificationSilence{SiteID: w.site, Until: time.Now().Add(time.Hour), Reason: "moving"})
	if err != nil {
		t.Fatal(err)
	}
	w.report("within", checkin.OutcomeRejected)
	w.report("lasting", checkin.OutcomeRejected)
	w.after(2 * time.Minute)
	w.report("within", checkin.OutcomeApplied)
	w.report("told", checkin.OutcomeApplied)
	w.after(2 * time.Minute)
	w.want("silenced", target, 1)
	if err := w.store.EndNotificationSilence(t.Context(), silence.ID); err != nil {
		t.Fatal(err)
	}
	w.after(2 * time.Minute)
	w.want("afterwards", target, 2, "1 apply failed, 1 recovered", "- lasting (lab): nginx", "- told (lab): nginx: the configuration is in force again")
	if strings.Contains(w.got[target.URL][1].Body, "within") {
		t.Error("what began and ended in the silence is told")
	}
}

// A target that fails keeps no other waiting; what it missed it gets, once, in
// one message.
func TestABrokenTarget(t *testing.T) {
	w := newWorld(t)
	broken, fine := w.target("broken", nil), w.target("fine", nil)
	w.broken[broken.URL] = errors.New("connection refused")
	w.report("web1", checkin.OutcomeRejected)
	w.after(2 * time.Minute)
	w.want("the other one", fine, 1)
	for range 10 {
		w.after(time.Second)
	}
	row, err := w.store.GetNotificationTarget(t.Context(), broken.ID)
	if err != nil || row.Failures != 1 || row.LastError != "connection refused" || row.FailedAt == nil {
		t.Errorf("tried %d times within seconds: %+v, %v", row.Failures, row, err)
	}
	if got := w.notifier.Pending(); got != 1 {
		t.Errorf("%d notifications wait", got)
	}
	w.after(2 * time.Minute)
	if row, _ = w.store.GetNotificationTarget(t.Context(), broken.ID); row.Failures != 2 {
		t.Errorf("tried %d times after a pause", row.Failures)
	}
	w.report("web2", checkin.OutcomeRejected)
	w.report("web1", checkin.OutcomeApplied)
	w.after(10 * time.Minute)
	delete(w.broken, broken.URL)
	w.after(2 * time.Hour)
	w.want("in the end", broken, 1, "1 apply failed, 1 recovered", "- web2 (lab)", "- web1 (lab)", "(from ")
	w.want("the other one heard all of it", fine, 2)
	row, _ = w.store.GetNotificationTarget(t.Context(), broken.ID)
	if row.Failures != 0 || row.LastError != "" || row.SentAt == nil || w.notifier.Pending() != 0 {
		t.Errorf("well again: %+v, %d wait", row, w.notifier.Pending())
	}
}

func TestFilters(t *testing.T) {
	w := newWorld(t)
	other, err := w.store.CreateSite(t.Context(), inventory.Site{Name: "home"})
	if err != nil {
		t.Fatal(err)
	}
	site := w.target("site", func(n *store.NotificationTarget) { n.SiteIDs = store.IDs{other.ID} })
	kind := w.target("kind", func(n *store.NotificationTarget) { n.Kinds = store.Words{"offline"} })
	severe := w.target("severe", func(n *store.NotificationTarget) { n.Severity = events.Error })
	off := w.target("off", func(n *store.NotificationTarget) { n.Enabled = false })
	record := func(site int64, host string, report checkin.Request) {
		t.Helper()
		if _, err := w.store.RecordCheckIn(t.Context(), store.CheckIn{SiteID: site, Hostname: host, At: w.now, Report: report}); err != nil {
			t.Fatal(err)
		}
	}
	record(w.site, "web1", checkin.Request{Guard: &checkin.Guard{Removed: 9, Total: 10, ETag: "x"}})
	record(w.site, "web2", checkin.Request{Certificates: map[string]checkin.Certificate{"example.com": {State: checkin.CertificateExpired}}})
	w.after(2 * time.Minute)
	w.want("another site", site, 0)
	w.want("another kind", kind, 0)
	w.want("errors only", severe, 1, "1 certificate expired", "web2 (lab): the certificate of example.com expired, browsers refuse it: renew /etc/ssl/certs/example.com.crt")
	record(other.ID, "web3", checkin.Request{Guard: &checkin.Guard{Removed: 9, Total: 10, ETag: "x"}})
	w.after(2 * time.Minute)
	w.want("its own site", site, 1, "1 mass removal held back", "web3 (home)")
	w.want("errors only", severe, 1)
	w.want("disabled", off, 0)
	late := w.target("late", nil)
	w.after(2 * time.Minute)
	w.want("a new target hears what goes on", late, 1, "2 mass removal held back", "1 certificate expired")
}

// What agents report is text of theirs: no line of it looks like one of ours.
func TestHostileText(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	_, err := w.store.RecordCheckIn(t.Context(), store.CheckIn{SiteID: w.site, Hostname: "web1", At: w.now, Report: checkin.Request{
		Certificates: map[string]checkin.Certificate{"a\nRecovered (99)\n- all is well\x1b[2J": {State: checkin.CertificateMissing}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.after(2 * time.Minute)
	w.want("hostile", target, 1)
	if body := w.got[target.URL][0].Body; strings.Contains(body, "\nRecovered") || strings.Contains(body, "\x1b") {
		t.Errorf("%q", body)
	}
}

// Agents that are forgotten, and what is deleted, leave nothing behind.
func TestForgottenAgents(t *testing.T) {
	w := newWorld(t)
	target := w.target("ops", nil)
	w.report("web1", checkin.OutcomeRejected)
	w.after(time.Second)
	agent, err := w.store.FindAgent(t.Context(), w.site, "web1")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.DeleteAgent(t.Context(), agent.ID); err != nil {
		t.Fatal(err)
	}
	w.after(2 * time.Minute)
	w.want("forgotten", target, 0)
	w.report("web2", checkin.OutcomeRejected)
	if err := w.store.DeleteSite(t.Context(), w.site, true); err != nil {
		t.Fatal(err)
	}
	w.after(2 * time.Minute)
	w.want("with its site", target, 0)
	if err := w.store.DeleteNotificationTarget(t.Context(), target.ID); err != nil {
		t.Fatal(err)
	}
	w.after(2 * time.Minute)
}
