package pass

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/render"
)

// proxy stands in for nginx: it takes what is rendered for nginx, and refuses
// what the test wants it to refuse. Its time is that of a test's bubble.
type proxy struct {
	t    *testing.T
	root string

	faulty    func(candidate string) error // the test's own verdict, if any
	bad       map[string]string            // server names it refuses, and what it says of the line
	mute      map[string]string            // those of which it names no line
	cannot    map[string]string            // those that it fails to load
	perServer time.Duration                // what a server adds to a test
	reload    bool
	dead      bool            // it does not run: after a rollback it has to load the files, too
	ctx       context.Context // of the pass, if not the test's

	tests   []int // servers in each candidate
	reloads int
	runs    string // the content it has loaded
	log     strings.Builder
}

func newProxy(t *testing.T) *proxy {
	return &proxy{t: t, root: t.TempDir(), bad: map[string]string{}, mute: map[string]string{}, cannot: map[string]string{}}
}

var serverName = regexp.MustCompile(`(?m)^ +server_name ([^_*].*);$`)

func namesIn(content string) []string {
	var names []string
	for _, match := range serverName.FindAllStringSubmatch(content, -1) {
		names = append(names, match[1])
	}
	return names
}

// places are the lines with a server's name.
func (x *proxy) places(content, live string, refused map[string]string) []apply.Place {
	var places []apply.Place
	for i, line := range strings.Split(content, "\n") {
		if match := serverName.FindStringSubmatch(line); match != nil && refused[match[1]] != "" {
			places = append(places, apply.Place{File: live, Lines: []int{i + 1}, Words: refused[match[1]]})
		}
	}
	return places
}

func (x *proxy) test(ctx context.Context, candidate, live string) error {
	raw, err := os.ReadFile(candidate)
	if err != nil {
		return err
	}
	content := string(raw)
	names := namesIn(content)
	x.tests = append(x.tests, len(names))
	select {
	case <-time.After(time.Millisecond + time.Duration(len(names))*x.perServer):
	case <-ctx.Done():
		return ctx.Err()
	}
	if x.faulty != nil {
		if err := x.faulty(content); err != nil {
			return err
		}
	}
	if places := x.places(content, live, x.bad); len(places) > 0 {
		words := fmt.Sprintf("%s in %s:%d", places[0].Words, live, places[0].Lines[0])
		return &apply.Fault{Words: words, Verdict: words, Places: places[:1]} // it stops at the first
	}
	for _, name := range names {
		if words := x.mute[name]; words != "" {
			return &apply.Fault{Words: words + "\ntest failed", Verdict: words}
		}
	}
	return nil
}

func (x *proxy) activate(_ context.Context, a apply.Activation) error {
	x.reloads++
	content, err := os.ReadFile(a.Files[0])
	if err != nil {
		return err
	}
	if places := x.places(string(content), a.Files[0], x.cannot); len(places) > 0 && (a.Revision != "" || x.dead) {
		return &apply.Fault{Words: "still could not bind()", Places: places}
	}
	x.runs = string(content)
	return nil
}

func (x *proxy) service() services.Service {
	return services.Service{
		Service: apply.Service{
			Name: "nginx", Unit: "nginx.service",
			Installed: func() error { return nil },
			Ready:     func(context.Context) error { return nil },
			Test:      x.test,
			Loaded:    func(_ context.Context, r render.Result) bool { return x.runs == string(r.Files[0].Content) },
			Window:    func(time.Duration) time.Duration { return 5 * time.Second },
			Activate:  x.activate,
		},
		Render: func(s checkin.Snapshot, f render.Facts, t *render.Templates) (render.Result, error) {
			f.NGINX = render.NGINXFacts{Version: render.Version{1, 26, 3}, Stream: true}
			return render.NGINX(s, f, t)
		},
	}
}

// pass puts a snapshot into force as a pass would, and returns how the service
// stands then. tests holds the candidates that were tested for it.
func (x *proxy) pass(snapshot checkin.Snapshot, change ...func(*pass)) state.Service {
	x.t.Helper()
	x.tests, x.reloads = nil, 0
	x.log.Reset()
	data, etag, err := checkin.Encode(snapshot)
	if err != nil {
		x.t.Fatal(err)
	}
	p, unlock, err := begin(x.t.Context(), Options{
		SiteID: 1, Version: "test", Root: x.root, StateDirectory: filepath.Join(x.root, "state"), Log: slog.New(slog.NewTextHandler(&x.log, nil)),
	})
	if err != nil {
		x.t.Fatal(err)
	}
	defer unlock()
	p.probed = true
	p.engine.Reload = x.reload
	p.services = []services.Service{x.service()}
	p.accepted = state.Accepted{ETag: etag, Data: data, Snapshot: snapshot}
	for _, change := range change {
		change(p)
	}
	ctx := x.ctx
	if ctx == nil {
		ctx = x.t.Context()
	}
	p.ensure(ctx)
	return p.state.Services["nginx"]
}

func byHand(p *pass) { p.ByHand = true }

// serves checks which hosts are in the live file.
func (x *proxy) serves(names ...string) {
	x.t.Helper()
	content, err := os.ReadFile(filepath.Join(x.root, "etc/nginx/nginx.conf"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		x.t.Fatal(err)
	}
	got := namesIn(string(content))
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		x.t.Errorf("serves %d hosts %.200q, want %d %.200q", len(got), got, len(names), names)
	}
	if x.reload && x.runs != string(content) {
		x.t.Error("another configuration runs")
	}
}

// hosts returns a site with h0.example.com and so on, on port 8000 and so on.
func hosts(n int) checkin.Snapshot {
	s := lab()
	s.NGINX.StreamServices, s.NGINX.ExternalDomains = []checkin.StreamService{}, []checkin.ExternalDomain{}
	s.NGINX.HTTPServices = make([]checkin.HTTPService, n)
	for i := range n {
		s.NGINX.HTTPServices[i] = checkin.HTTPService{
			ID: int64(i + 1), InternalPort: 8000 + i, Container: checkin.Backend{IPv4Address: "192.0.2.101"},
			ExternalHostname: fmt.Sprintf("h%d", i), BackendProtocol: "http", ExternalDomain: checkin.HTTPServiceDomain{Name: "example.com"},
		}
	}
	return s
}

func hostName(i int) string { return fmt.Sprintf("h%d.example.com", i) }

// without returns the names of n hosts but some.
func without(n int, out ...int) []string {
	var names []string
	for i := range n {
		if !slices.Contains(out, i) {
			names = append(names, hostName(i))
		}
	}
	return names
}

// isQuarantined checks that the service is in force but for these hosts.
func isQuarantined(t *testing.T, got state.Service, outcome checkin.Outcome, want ...checkin.QuarantinedItem) {
	t.Helper()
	if got.Outcome != outcome || got.LastApply != checkin.ApplyFailure {
		t.Errorf("%s, %s: %s", got.Outcome, got.LastApply, got.Message)
	}
	if diff := cmp.Diff(want, got.Quarantined); diff != "" {
		t.Errorf("quarantined (-want +got):\n%s", diff)
	}
	for _, item := range want {
		if !strings.Contains(got.Message, item.Name+": "+item.Reason) {
			t.Errorf("the message does not name %s: %s", item.Name, got.Message)
		}
	}
}

func refusedHost(i int, reason string) checkin.QuarantinedItem {
	return checkin.QuarantinedItem{Kind: checkin.KindHTTP, ID: int64(i + 1), Name: hostName(i), Reason: reason}
}

func namedLine(i int, words string) string {
	return fmt.Sprintf("%s (in its line: server_name %s;)", words, hostName(i))
}

func (x *proxy) tested(servers ...int) {
	x.t.Helper()
	if !slices.Equal(x.tests, servers) {
		x.t.Errorf("tested were candidates with %v servers, want %v", x.tests, servers)
	}
}

func inBubble(t *testing.T, test func(*testing.T, *proxy)) {
	synctest.Test(t, func(t *testing.T) { test(t, newProxy(t)) })
}

func TestARecordIsBlamedByItsLine(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.reload = true
		x.bad[hostName(7)] = "unknown directive"
		got := x.pass(hosts(20))
		isQuarantined(t, got, checkin.OutcomeApplied, refusedHost(7, namedLine(7, "unknown directive")))
		x.serves(without(20, 7)...)
		x.tested(20, 19)
		if x.reloads != 1 {
			t.Errorf("%d reloads", x.reloads)
		}
		if got.Digests == nil || got.RunningETag == "" || got.AppliedAt == nil || got.Retry == nil || got.Retry.Failures != 1 {
			t.Errorf("%+v", got)
		}
		for _, want := range []string{"level=WARN msg=\"record left out\"", "configuration applied", "refused=1 tests=2"} {
			if strings.Count(x.log.String(), want) != 1 {
				t.Errorf("%q is not there once in\n%s", want, x.log.String())
			}
		}
		if strings.Contains(x.log.String(), "ERROR") {
			t.Errorf("a candidate on the way is an error:\n%s", x.log.String())
		}
	})
}

func TestSeveralRecordsAreBlamedOneAfterTheOther(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.bad[hostName(15)], x.bad[hostName(3)] = "odd", "bad"
		got := x.pass(hosts(20))
		isQuarantined(t, got, checkin.OutcomeApplied, refusedHost(3, namedLine(3, "bad")), refusedHost(15, namedLine(15, "odd")))
		x.serves(without(20, 3, 15)...)
		x.tested(20, 19, 18)
	})
}

// Where no line is named, the record is found in about the time of two tests
// more.
func TestARecordIsFoundByTests(t *testing.T) {
	for _, bad := range []int{0, 333, 999} {
		inBubble(t, func(t *testing.T, x *proxy) {
			x.perServer = time.Millisecond
			x.mute[hostName(bad)] = "cannot load certificate"
			start := time.Now()
			got := x.pass(hosts(1000))
			isQuarantined(t, got, checkin.OutcomeApplied, refusedHost(bad, "cannot load certificate"))
			x.serves(without(1000, bad)...)
			if took := time.Since(start); len(x.tests) > 14 || took > 3100*time.Millisecond {
				t.Errorf("%d tests in %v: %v", len(x.tests), took, x.tests)
			}
		})
	}
}

func TestSeveralRecordsAreFoundByTests(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.mute[hostName(5)], x.mute[hostName(31)], x.bad[hostName(16)] = "no certificate", "no key", "bad"
		got := x.pass(hosts(32))
		isQuarantined(t, got, checkin.OutcomeApplied,
			refusedHost(5, "no certificate"), refusedHost(16, namedLine(16, "bad")), refusedHost(31, "no key"))
		x.serves(without(32, 5, 16, 31)...)
	})
}

func TestTheOnlyRecordMayBeLeftOut(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.mute[hostName(0)] = "no certificate"
		isQuarantined(t, x.pass(hosts(1)), checkin.OutcomeApplied, refusedHost(0, "no certificate"))
		x.serves()
	})
}

// isRefused checks that nothing was changed, and what the message says.
func isRefused(t *testing.T, got state.Service, words ...string) {
	t.Helper()
	if got.Outcome != checkin.OutcomeRejected || got.LastApply != checkin.ApplyFailure {
		t.Errorf("%s, %s", got.Outcome, got.LastApply)
	}
	for _, word := range words {
		if !strings.Contains(got.Message, word) {
			t.Errorf("the message does not say %q: %s", word, got.Message)
		}
	}
}

func TestNoMoreThanAShareIsLeftOut(t *testing.T) {
	for name, found := range map[string]func(x *proxy) map[string]string{
		"by line": func(x *proxy) map[string]string { return x.bad }, "by tests": func(x *proxy) map[string]string { return x.mute },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *proxy) {
				x.pass(hosts(11))
				refused := found(x)
				for i := range 3 {
					refused[hostName(2*i)] = "bad"
				}
				isQuarantined(t, x.pass(hosts(12)), checkin.OutcomeApplied, x.pass(hosts(12)).Quarantined...)
				x.serves(without(12, 0, 2, 4)...)
				refused[hostName(11)] = "bad"
				got := x.pass(hosts(13))
				isRefused(t, got, "bad", "at least 4 records are refused, and no more than 3 may be left out")
				if len(got.Quarantined) != 4 || got.RunningETag == got.ReceivedETag {
					t.Errorf("%+v", got)
				}
				x.serves(without(12, 0, 2, 4)...)
			})
		})
	}
}

func TestAFaultInNoRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.pass(hosts(8))
		x.faulty = func(string) error { return &apply.Fault{Words: "no events section", Verdict: "no events section"} }
		isRefused(t, x.pass(hosts(9)), "no events section", "the fault is in no record")
		x.tested(9, 0)
		x.serves(without(8)...)
	})
}

func TestAFaultOfAllRecordsTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.pass(hosts(8))
		x.faulty = func(content string) error {
			if n := len(namesIn(content)); n > 8 {
				return &apply.Fault{Words: "too many open files", Verdict: "too many open files"}
			}
			return nil
		}
		isRefused(t, x.pass(hosts(16)), "too many open files", "no record is refused by itself")
		x.tested(16, 0, 8, 4, 2, 1, 1)
		x.serves(without(8)...)
	})
}

func TestAFaultElsewhereIsBlamedOnNoRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.pass(hosts(8))
		x.faulty = func(string) error {
			return &apply.Fault{Words: "unknown directive in /etc/nginx/conf.d/x.conf:3", Elsewhere: "/etc/nginx/conf.d/x.conf"}
		}
		got := x.pass(hosts(9))
		isRefused(t, got, "the fault is in /etc/nginx/conf.d/x.conf, which is not managed")
		if strings.Contains(got.Message, "record") || got.Quarantine != nil {
			t.Errorf("%s %+v", got.Message, got.Quarantine)
		}
		x.tested(9)
	})
}

// A line of the frame is nobody's, and where it stands in no record by itself.
func TestALineOfTheFrameIsNobodys(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		conf := filepath.Join(x.root, "etc/nginx/nginx.conf")
		x.faulty = func(string) error {
			return &apply.Fault{Words: "x", Verdict: "x", Places: []apply.Place{{File: conf, Lines: []int{3}, Words: "x"}}}
		}
		isRefused(t, x.pass(hosts(9)), "the fault is in no record")
		// A port that many listen on is that of no single one.
		x.faulty = func(content string) error {
			lines := []int{3}
			for i, line := range strings.Split(content, "\n") {
				if serverName.MatchString(line) {
					lines = append(lines, i+1)
				}
			}
			return &apply.Fault{Words: "bind()", Verdict: "bind()", Places: []apply.Place{{File: conf, Lines: lines, Words: "bind()"}}}
		}
		got := x.pass(hosts(10))
		isRefused(t, got, "the fault is in no record")
		if len(got.Quarantined) > 0 {
			t.Errorf("%+v", got.Quarantined)
		}
	})
}

// Of several records that a line may stand for, one that was in force before is
// not at fault.
func TestWhatWasInForceIsNotToBlame(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.pass(hosts(8))
		conf := filepath.Join(x.root, "etc/nginx/nginx.conf")
		x.faulty = func(content string) error {
			var lines []int
			for i, line := range strings.Split(content, "\n") {
				if match := serverName.FindStringSubmatch(line); match != nil && (match[1] == hostName(2) || match[1] == hostName(8)) {
					lines = append(lines, i+1)
				}
			}
			if len(lines) < 2 {
				return nil
			}
			return &apply.Fault{Words: "bind()", Verdict: "bind()", Places: []apply.Place{{File: conf, Lines: lines, Words: "bind()"}}}
		}
		isQuarantined(t, x.pass(hosts(9)), checkin.OutcomeUnchanged, refusedHost(8, namedLine(8, "bind()")))
	})
}

func TestARecordThatCannotBeLoadedIsLeftOut(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.reload = true
		x.pass(hosts(8))
		x.cannot[hostName(8)], x.cannot[hostName(9)] = "bind() failed", "bind() failed"
		got := x.pass(hosts(10))
		isQuarantined(t, got, checkin.OutcomeUnchanged, refusedHost(8, namedLine(8, "bind() failed")), refusedHost(9, namedLine(9, "bind() failed")))
		x.serves(without(8)...)
		if len(x.tests) != 1 || x.reloads != 2 { // once with both, and back; the rest is what ran before
			t.Errorf("%d tests, %d reloads", len(x.tests), x.reloads)
		}
	})
}

// After a boot, another process has the port of one service, so that nginx does
// not start: neither with what is wanted nor with what was in force before. The
// others do not wait for a person.
func TestARecordWithWhichNothingStartsIsLeftOut(t *testing.T) {
	for name, snapshot := range map[string]checkin.Snapshot{"nothing new": hosts(8), "a new snapshot": hosts(9)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *proxy) {
				x.reload = true
				x.pass(hosts(8))
				x.cannot[hostName(7)], x.runs, x.dead = "bind() failed", "", true
				got := x.pass(snapshot, func(p *pass) { p.state.Fingerprint = "" })
				isQuarantined(t, got, checkin.OutcomeApplied, refusedHost(7, namedLine(7, "bind() failed")))
				x.serves(without(len(snapshot.NGINX.HTTPServices), 7)...)
			})
		})
	}
}

func TestAProcessThatBlamesNobodyIsRolledBack(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.reload = true
		x.pass(hosts(8))
		fails := true
		got := x.pass(hosts(9), func(p *pass) {
			p.services[0].Activate = func(_ context.Context, a apply.Activation) error {
				x.reloads++
				if fails {
					fails = false
					return &apply.Fault{Words: "died"}
				}
				return nil
			}
		})
		if got.Outcome != checkin.OutcomeRolledBack || got.Message != "died" || len(x.tests) != 1 || x.reloads != 2 {
			t.Errorf("%s %q after %d tests and %d reloads", got.Outcome, got.Message, len(x.tests), x.reloads)
		}
	})
}

// A quarantined record costs an unchanged pass nothing, is tried again when the
// pause is over, and heals.
func TestAQuarantinedRecordHeals(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.bad[hostName(7)] = "bad"
		x.pass(hosts(20))
		wanted := refusedHost(7, namedLine(7, "bad"))
		for i, pause := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
			time.Sleep(pause - earlier - time.Second)
			quiet := x.pass(hosts(20))
			x.tested()
			isQuarantined(t, quiet, quiet.Outcome, wanted)
			if strings.Count(x.log.String(), "record left out") != 1 {
				t.Errorf("the pass does not say why it does not end with 0:\n%s", x.log.String())
			}
			time.Sleep(2 * time.Second)
			got := x.pass(hosts(20))
			isQuarantined(t, got, checkin.OutcomeUnchanged, wanted)
			x.tested(20)
			if got.Retry.Failures != i+2 {
				t.Errorf("%d failures after %d tries", got.Retry.Failures, i+2)
			}
		}
		delete(x.bad, hostName(7))
		isQuarantined(t, x.pass(hosts(20)), checkin.OutcomeUnchanged, wanted)
		x.tested()
		time.Sleep(longestPause)
		got := x.pass(hosts(20))
		if got.LastApply != checkin.ApplySuccess || got.Quarantine != nil || got.Retry != nil || got.Quarantined != nil || got.Message != "" {
			t.Errorf("not healed: %+v", got)
		}
		x.serves(without(20)...)
	})
}

func TestAPersonNeedNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.bad[hostName(7)] = "bad"
		x.pass(hosts(20))
		x.pass(hosts(20), byHand)
		x.tested(20)
		delete(x.bad, hostName(7))
		if got := x.pass(hosts(20), byHand); got.LastApply != checkin.ApplySuccess {
			t.Errorf("%+v", got)
		}
	})
}

// The others are kept up to date while one stays bad, at the cost of one test
// more; so does the repair of an edit.
func TestTheOthersGoOn(t *testing.T) {
	for name, refused := range map[string]func(x *proxy) map[string]string{
		"by line": func(x *proxy) map[string]string { return x.bad }, "by tests": func(x *proxy) map[string]string { return x.mute },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *proxy) {
				refused(x)[hostName(7)] = "bad"
				first := x.pass(hosts(20))
				for n := 21; n < 24; n++ {
					got := x.pass(hosts(n))
					isQuarantined(t, got, checkin.OutcomeApplied, first.Quarantined...)
					x.serves(without(n, 7)...)
					x.tested(n, n-1)
				}
				conf := filepath.Join(x.root, "etc/nginx/nginx.conf")
				if err := os.WriteFile(conf, []byte("edited"), 0o644); err != nil {
					t.Fatal(err)
				}
				due := x.pass(hosts(23)).Retry
				if err := os.WriteFile(conf, []byte("edited"), 0o644); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				got := x.pass(hosts(23))
				isQuarantined(t, got, checkin.OutcomeApplied, first.Quarantined...)
				x.serves(without(23, 7)...)
				x.tested(22)
				if diff := cmp.Diff(due, got.Retry); diff != "" {
					t.Errorf("an edit puts off the next try:\n%s", diff)
				}
			})
		})
	}
}

// A record that was refused by tests and is good again goes live although
// another one is refused still.
func TestEachHealsByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.mute[hostName(3)], x.mute[hostName(7)] = "bad", "bad"
		x.pass(hosts(20))
		delete(x.mute, hostName(3))
		time.Sleep(time.Minute)
		isQuarantined(t, x.pass(hosts(20)), checkin.OutcomeApplied, refusedHost(7, "bad"))
		x.serves(without(20, 7)...)
	})
}

// Somebody corrects one of two records at the manager. Of the other one nobody
// names a line.
func TestACorrectedRecordIsTriedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.bad[hostName(3)], x.mute[hostName(7)] = "bad", "bad"
		x.pass(hosts(20))
		corrected := hosts(20)
		corrected.NGINX.HTTPServices[3].ExternalHostname = "other"
		isQuarantined(t, x.pass(corrected), checkin.OutcomeApplied, refusedHost(7, "bad"))
		x.serves(append(without(20, 3, 7), "other.example.com")...)
		x.tested(20, 19)

		// It is as bad as before.
		corrected.NGINX.HTTPServices[3].ExternalHostname = "another"
		x.bad["another.example.com"] = "bad"
		got := x.pass(corrected)
		x.serves(append(without(20, 3, 7), "other.example.com")...) // its previous version
		if len(got.Quarantined) != 2 {
			t.Errorf("quarantined are %+v", got.Quarantined)
		}
	})
}

// A search that does not fit into a pass goes on in the next, at once, from what
// it has found.
func TestASearchGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.reload = true // a proof takes time
		x.pass(hosts(12))
		x.perServer = 250 * time.Millisecond
		for i := range 3 {
			x.bad[hostName(4*i)] = "bad"
		}
		got := x.pass(hosts(16))
		isRefused(t, got, "bad", "goes on with the next try")
		x.serves(without(12)...)
		x.tested(16, 15)
		if got.Retry != nil || got.Quarantine.Tests != 2 || len(got.Quarantined) != 2 {
			t.Errorf("%+v %+v", got.Retry, got.Quarantine)
		}
		got = x.pass(hosts(16))
		isQuarantined(t, got, checkin.OutcomeApplied, refusedHost(0, namedLine(0, "bad")), refusedHost(4, namedLine(4, "bad")), refusedHost(8, namedLine(8, "bad")))
		x.tested(14, 13)
		x.serves(without(16, 0, 4, 8)...)
		if got.Retry == nil || got.Quarantine.Tests != 0 {
			t.Errorf("%+v %+v", got.Retry, got.Quarantine)
		}
		x.pass(hosts(16))
		x.tested()
	})
}

// Where the time is short, what was refused before is left out without a search.
func TestWhatWasKnownServesWhereTimeIsShort(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		for _, i := range []int{0, 4, 8} {
			x.bad[hostName(i)] = "bad"
		}
		x.pass(hosts(16))
		x.perServer = 250 * time.Millisecond
		x.reload = true
		got := x.pass(hosts(17))
		isQuarantined(t, got, checkin.OutcomeApplied, x.pass(hosts(17)).Quarantined...)
		x.serves(without(17, 0, 4, 8)...)
	})
}

// A site that has become smaller has room for fewer records.
func TestWhatWasKnownIsNoMoreThanAShareEither(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		for _, i := range []int{0, 2, 4} {
			x.mute[hostName(i)] = "bad"
		}
		x.pass(hosts(12))
		isRefused(t, x.pass(hosts(6)), "no more than 1 may be left out")
		x.serves(without(12, 0, 2, 4)...)
	})
}

// The tests of all passes count together.
func TestASearchOverManyPassesEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.reload = true
		x.pass(hosts(10))
		for i := range 100 {
			x.bad[hostName(i)] = "bad"
		}
		x.perServer = 20 * time.Millisecond
		tests, passes := 0, 0
		for ended := false; !ended && passes < maxTests; passes++ {
			ended = x.pass(hosts(260)).Quarantine.Tests == 0
			tests += len(x.tests)
		}
		if tests != maxTests || passes < 10 {
			t.Errorf("%d tests in %d passes", tests, passes)
		}
	})
}

func TestASearchEndsAfterManyTests(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.pass(hosts(10))
		for i := range 100 {
			x.bad[hostName(i)] = "bad"
		}
		isRefused(t, x.pass(hosts(300)), "after 64 tests it is refused still, without 64 records that are refused too")
		if len(x.tests) != maxTests {
			t.Errorf("%d tests", len(x.tests))
		}
		x.serves(without(10)...)
		x.pass(hosts(300))
		x.tested()
	})
}

// A failure that lasts costs ever fewer tests and never a reload, and one that
// passes is over without a change at the manager.
func TestALastingFailureIsNoStorm(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.reload = true
		x.pass(hosts(10))
		x.faulty = func(string) error { return &apply.Fault{Words: "no events section", Verdict: "no events section"} }
		tests, reloads := 0, 0
		for range 20 {
			isRefused(t, x.pass(hosts(11)), "no events section")
			tests, reloads = tests+len(x.tests), reloads+x.reloads
			time.Sleep(30 * time.Second)
		}
		if tests != 2*5 || reloads != 0 { // at 0:00, 0:30, 1:30, 3:30 and 7:30, without all records too
			t.Errorf("%d tests, %d reloads in ten minutes", tests, reloads)
		}
		x.faulty = nil
		time.Sleep(longestPause)
		if got := x.pass(hosts(11)); got.LastApply != checkin.ApplySuccess || got.Outcome != checkin.OutcomeApplied {
			t.Errorf("%+v", got)
		}
	})
}

// What is refused as a whole is not searched again in every pass, even if
// somebody edits the file in every pass.
func TestWhatIsRefusedAsAWholeIsNotSearchedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.pass(hosts(10))
		for i := range 10 {
			x.bad[hostName(i)] = "bad"
		}
		x.pass(hosts(11))
		x.tested(11, 10, 9)
		x.pass(hosts(11))
		x.tested()
		if err := os.WriteFile(filepath.Join(x.root, "etc/nginx/nginx.conf"), []byte("edited"), 0o644); err != nil {
			t.Fatal(err)
		}
		isRefused(t, x.pass(hosts(11)), "bad")
		x.tested(11)
		time.Sleep(longestPause)
		isRefused(t, x.pass(hosts(11)), "no more than 2")
		x.tested(11, 10, 9)
	})
}

func TestThePreviousVersionIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.pass(hosts(8))
		upstream := regexp.MustCompile(`proxy_pass http://192.0.2.101:(9\d+);`)
		x.faulty = func(content string) error {
			for i, line := range strings.Split(content, "\n") {
				if match := upstream.FindStringSubmatch(line); match != nil {
					return &apply.Fault{Words: "bad", Places: []apply.Place{{File: filepath.Join(x.root, "etc/nginx/nginx.conf"), Lines: []int{i + 1}, Words: "bad port"}}}
				}
			}
			return nil
		}
		changed := hosts(8)
		changed.NGINX.HTTPServices[3].InternalPort = 9003
		wanted := refusedHost(3, "bad port (in its line: proxy_pass http://192.0.2.101:9003;)")
		wanted.KeptPrevious = true
		got := x.pass(changed)
		isQuarantined(t, got, checkin.OutcomeUnchanged, wanted)
		if !strings.Contains(got.Message, "previous version kept: http h3.example.com: bad port") || !strings.Contains(x.log.String(), "previous version of record kept") {
			t.Errorf("%s\n%s", got.Message, x.log.String())
		}
		x.serves(without(8)...)
		// It stays so while others change, and when it is tried again.
		for range 2 {
			time.Sleep(time.Hour)
			changed.NGINX.HTTPServices[4].InternalPort++
			isQuarantined(t, x.pass(changed), checkin.OutcomeApplied, wanted)
			time.Sleep(time.Hour)
			isQuarantined(t, x.pass(changed), checkin.OutcomeUnchanged, wanted)
		}
		conf, err := os.ReadFile(filepath.Join(x.root, "etc/nginx/nginx.conf"))
		if err != nil || !strings.Contains(string(conf), "192.0.2.101:8003;") || !strings.Contains(string(conf), "192.0.2.101:8006;") {
			t.Errorf("%v: the previous version is not served", err)
		}
		x.faulty = nil
		time.Sleep(time.Hour)
		if got := x.pass(changed); got.LastApply != checkin.ApplySuccess {
			t.Errorf("%+v", got)
		}
	})
}

// A previous version that is refused as well is left out, also one that was kept
// because the wanted version could not be read.
func TestAPreviousVersionThatIsRefusedIsLeftOut(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.pass(hosts(8))
		x.bad[hostName(3)] = "bad name"
		changed := hosts(8)
		changed.NGINX.HTTPServices[0].InternalPort = 9000
		changed.NGINX.HTTPServices[3].InternalPort = 9003
		changed.NGINX.HTTPServices[5].InternalPort = 0
		got := x.pass(changed)
		items := got.Quarantined
		if len(items) != 2 || items[0].KeptPrevious || items[0].ID != 4 || !items[1].KeptPrevious || !strings.Contains(items[1].Reason, "internalPort") {
			t.Errorf("%+v", items)
		}
		x.serves(without(8, 3)...)
		x.tested(8, 8, 7)

		x.bad[hostName(5)] = "bad name"
		changed.NGINX.HTTPServices[0].InternalPort = 9001
		got = x.pass(changed)
		for _, item := range got.Quarantined {
			if item.KeptPrevious {
				t.Errorf("%+v", item)
			}
		}
		x.serves(without(8, 3, 5)...)
		if !strings.Contains(got.Message, "internalPort") {
			t.Error(got.Message)
		}
	})
}

// What is kept of another site's snapshot is no previous version.
func TestThePreviousVersionOfAnotherSiteIsNotKept(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		other := hosts(8)
		other.Site.ID = 2
		x.pass(other)
		changed := hosts(8)
		changed.NGINX.HTTPServices[3].InternalPort = 0
		if got := x.pass(changed); got.Quarantined[0].KeptPrevious {
			t.Errorf("%+v", got.Quarantined)
		}
	})
}

// A pass that is told to stop in the middle of a search has found nothing.
func TestASearchThatIsStoppedReportsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		before := x.pass(hosts(8))
		x.bad[hostName(3)], x.mute[hostName(5)] = "bad", "bad"
		for after := 1; after < 4; after++ { // the first test, that without h3, that without any
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			x.ctx = ctx
			x.faulty = func(string) error {
				if len(x.tests) == after {
					stop()
				}
				return nil
			}
			if diff := cmp.Diff(before, x.pass(hosts(9))); diff != "" {
				t.Errorf("stopped in test %d (-want +got):\n%s", after, diff)
			}
		}
		x.ctx, x.faulty = nil, nil
		x.serves(without(8)...)
		isQuarantined(t, x.pass(hosts(9)), checkin.OutcomeApplied, refusedHost(3, namedLine(3, "bad")), refusedHost(5, "bad"))
	})
}

// A test that does not come to an end, as one that is killed for its memory, says
// nothing about records: what was left out stays so, and all else in force.
func TestATestWithoutAVerdictChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.mute[hostName(7)] = "bad"
		first := x.pass(hosts(20))
		x.faulty = func(string) error { return errors.New("nginx -t: signal: killed") }
		time.Sleep(time.Minute)
		got := x.pass(hosts(20))
		isQuarantined(t, got, checkin.OutcomeUnchanged, first.Quarantined...)
		x.tested(20)
		if got.Retry.Failures != 2 {
			t.Errorf("%+v", got.Retry)
		}
		// An edit is undone as ever.
		x.faulty = nil
		if err := os.WriteFile(filepath.Join(x.root, "etc/nginx/nginx.conf"), []byte("edited"), 0o644); err != nil {
			t.Fatal(err)
		}
		isQuarantined(t, x.pass(hosts(20)), checkin.OutcomeApplied, first.Quarantined...)
		x.serves(without(20, 7)...)
		// With a new snapshot nothing is known.
		x.faulty = func(string) error { return errors.New("nginx -t: signal: killed") }
		isRefused(t, x.pass(hosts(21)), "signal: killed")
		x.serves(without(20, 7)...)
	})
}

// A program that changes its mind must not end the pass where there is no record
// at all, or none that a template tells of.
func TestNoRecordsAndAFaultThatComesAndGoes(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.faulty = func(string) error {
			if len(x.tests) == 2 {
				return nil
			}
			return &apply.Fault{Words: "no memory", Verdict: "no memory"}
		}
		isRefused(t, x.pass(hosts(0)), "no memory", "the fault is in no record")
	})
}

// Also where a test takes so long that a pass has no time to look for the record
// and to apply the rest.
func TestARecordIsFoundOnASlowHost(t *testing.T) {
	for _, whole := range []time.Duration{3 * time.Second, 4 * time.Second, 5 * time.Second} {
		inBubble(t, func(t *testing.T, x *proxy) {
			x.reload = true
			x.pass(hosts(199))
			x.perServer = whole / 200
			x.mute[hostName(150)], x.mute[hostName(20)] = "bad", "bad"
			start := time.Now()
			got := x.pass(hosts(200))
			passes := 1
			for ; !inForce(got.Outcome) && passes < 10; passes++ {
				if took := time.Since(start); took > workLimit || got.Retry != nil {
					t.Errorf("the pass took %v, the next try is %v", took, got.Retry)
				}
				time.Sleep(30*time.Second - time.Since(start))
				start = time.Now()
				got = x.pass(hosts(200))
			}
			isQuarantined(t, got, checkin.OutcomeApplied, refusedHost(20, "bad"), refusedHost(150, "bad"))
			x.serves(without(200, 20, 150)...)
			if passes > 3 {
				t.Errorf("%d passes where a test takes %v", passes, whole)
			}
		})
	}
}

// A search that finds nothing in the time of a pass is none that goes on at once.
func TestASearchThatFindsNothingWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, x *proxy) {
		x.reload = true
		x.pass(hosts(19))
		x.perServer = 600 * time.Millisecond
		x.mute[hostName(15)] = "bad"
		isRefused(t, x.pass(hosts(20)), "goes on with the next try")
		x.pass(hosts(20))
		x.tested()
	})
}
