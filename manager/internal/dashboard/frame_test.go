package dashboard_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"opensource.internal/agent/checkin"
)

// first has a script run in every page before the page's own.
func (b *tab) first(t *testing.T, script string) {
	t.Helper()
	b.do(t, chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdppage.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}))
}

// whenLive waits until an open page hears of what changes.
func (b *tab) whenLive(t *testing.T) {
	t.Helper()
	b.until(t, `document.getElementById("live").textContent === "Live"`)
}

// TestNothingMovesWhenRowsChange: what agents tell changes rows where they are.
func TestNothingMovesWhenRowsChange(t *testing.T) {
	s, cookie := everyState(t)
	b := browse(t, s, cookie)
	b.first(t, `
		window.moved = [];
		new PerformanceObserver((list) => {
			for (const e of list.getEntries()) moved.push({value: e.value, of: e.sources.map((s) => s.node?.outerHTML?.slice(0, 100) ?? String(s.node?.textContent))});
		}).observe({type: "layout-shift", buffered: true});`)
	b.open(t, "/agents?sort=host")
	b.whenLive(t)
	at := time.Now().UTC().Add(-50 * time.Minute)
	report := checkin.ServiceReport{State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeUnchanged, AppliedAt: &at}
	failed := report
	failed.LastApply, failed.Outcome, failed.Message = checkin.ApplyFailure, checkin.OutcomeRolledBack, "still could not bind()"
	for i, nginx := range []checkin.ServiceReport{failed, report, failed, report} {
		checkIn(t, s, checkin.Request{
			SiteID: 1, Hostname: "01-well", CurrentTime: time.Now().Unix(), IPv4Address: checkin.Text(fmt.Sprintf("192.0.2.%d", 20+i)),
			Services: map[string]checkin.ServiceReport{"nginx": nginx, "dnsmasq": report},
			Agent:    &checkin.AgentInfo{Version: fmt.Sprintf("2026.12.%d", i+1)},
		})
		b.reads(t, fmt.Sprintf("2026.12.%d", i+1))
	}
	b.do(t, chromedp.Evaluate(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`, nil, awaited))
	if sum := eval[float64](t, b, `moved.reduce((sum, m) => sum + m.value, 0)`); sum > 0.01 {
		t.Errorf("things moved by %f: %s", sum, eval[string](t, b, `JSON.stringify(moved, null, 1)`))
	}
}

// TestThePageIsLight with all that it loads, before anything is cached.
func TestThePageIsLight(t *testing.T) {
	s, cookie := everyState(t)
	b := browse(t, s, cookie)
	for _, path := range []string{"/agents", "/agents/1"} {
		b.open(t, path)
		b.until(t, `document.readyState === "complete"`)
		loaded := eval[float64](t, b, `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
			.filter((e) => e.initiatorType !== "fetch").reduce((sum, e) => sum + e.encodedBodySize + 300, 0)`)
		if loaded > 100_000 || loaded < 20_000 {
			t.Errorf("%s takes %.0f bytes", path, loaded)
		}
		t.Logf("%s: %.0f bytes", path, loaded)
	}
}

// TestNobodyLooks: a page that is not seen fetches nothing and holds no
// connection, and is true again as soon as it is seen.
func TestNobodyLooks(t *testing.T) {
	s, cookie := populated(t)
	b := browse(t, s, cookie)
	b.first(t, `
		Object.defineProperty(document, "hidden", {get: () => window.isAway === true});
		window.streams = [];
		window.EventSource = class extends EventSource { constructor(url) { super(url); streams.push(this); } };
		window.fetched = 0;
		const real = window.fetch;
		window.fetch = (...all) => { fetched++; return real(...all); };
		window.look = (away) => { window.isAway = away; document.dispatchEvent(new Event("visibilitychange")); };`)
	b.open(t, "/agents")
	b.whenLive(t)
	eval[bool](t, b, `(look(true), fetched = 0, true)`)
	site := s.Create(t, "/sites", object{"name": "appeared"})
	checkInHealthy(t, s, site, "newcomer")
	other := browse(t, s, cookie) // which hears of it
	other.open(t, "/agents?q=newcomer")
	other.reads(t, "newcomer")
	if got := eval[string](t, b, `[streams.length, streams.filter((s) => s.readyState !== EventSource.CLOSED).length, fetched].join(" ")`); got != "1 0 0" {
		t.Errorf("streams, open ones and fetches of a page that nobody sees: %s", got)
	}
	eval[bool](t, b, `(look(false), true)`)
	b.reads(t, "newcomer")
	checkInHealthy(t, s, site, "another")
	b.reads(t, "another")
	if got := eval[int](t, b, `streams.filter((s) => s.readyState !== EventSource.CLOSED).length`); got != 1 {
		t.Errorf("%d streams are open", got)
	}
}

// TestAgesByTheManagersClock, whatever the browser takes the time for.
func TestAgesByTheManagersClock(t *testing.T) {
	s, cookie := populated(t)
	for _, ahead := range []string{"3 * 86400e3", "-5 * 3600e3"} {
		b := browse(t, s, cookie)
		b.first(t, `{
			const Real = Date, ahead = `+ahead+`;
			window.Date = class extends Real { constructor(...all) { all.length ? super(...all) : super(Real.now() + ahead); } };
			Date.now = () => Real.now() + ahead;
		}`)
		checkInHealthy(t, s, 1, "fresh")
		b.open(t, "/agents?q=fresh")
		b.whenLive(t)
		b.until(t, `/^[2-9] s ago$|^1\d s ago$/.test(document.querySelector("[data-label='Last seen'] time").textContent)`) // counted on in the page
		said := eval[[]string](t, b, `[...document.querySelectorAll("time[data-age]")].map((t) => t.textContent)`)
		if wrong := slices.DeleteFunc(said, func(age string) bool { return strings.HasSuffix(age, " s ago") || age == "just now" }); len(wrong) > 0 {
			t.Errorf("%s ms ahead: %q", ahead, wrong)
		}
	}
}

// TestCopying puts a command on the clipboard, and says so also to who cannot see
// the button.
func TestCopying(t *testing.T) {
	a := newAgentSite(t)
	path := a.hostile(t)
	b := browse(t, a.Server, a.cookie)
	for _, permission := range []string{"clipboard-read", "clipboard-write"} {
		b.do(t, chromedp.ActionFunc(func(ctx context.Context) error {
			return browser.SetPermission(&browser.PermissionDescriptor{Name: permission}, browser.PermissionSettingGranted).
				WithOrigin(a.URL).Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
		}))
	}
	b.open(t, path)
	b.do(t, cdppage.BringToFront())
	eval[bool](t, b, `(window.button = document.querySelector("[data-copy]"), button.focus(), true)`)
	b.do(t, chromedp.KeyEvent(kb.Enter))
	b.until(t, `button.textContent === "Copied" && document.getElementById("said").textContent === "Copied"`)
	if role := eval[string](t, b, `document.getElementById("said").role`); role != "status" {
		t.Errorf("what is said has the role %q", role)
	}
	var copied string
	b.do(t, chromedp.Evaluate(`navigator.clipboard.readText()`, &copied, awaited))
	if want := eval[string](t, b, `document.getElementById(button.dataset.copy).textContent`); copied != want || want == "" {
		t.Errorf("copied %q instead of %q", copied, want)
	}
	b.until(t, `button.textContent === "Copy" && document.getElementById("said").textContent === ""`)
}

// TestTheFocusIsSeen wherever the keyboard leads to, and nothing moves for who
// wants no motion.
func TestTheFocusIsSeen(t *testing.T) {
	s, cookie := everyState(t)
	b := browse(t, s, cookie)
	b.do(t, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}))
	for _, path := range []string{"/agents?sort=host", "/agents/2", "/sites/1", "/sites/new", "/sign-in"} {
		b.open(t, path)
		if moving := eval[[]string](t, b, `[...document.querySelectorAll("*")].filter((e) => {
			const style = getComputedStyle(e);
			return style.transitionDuration.split(", ").some((d) => parseFloat(d) > 0) && style.transitionProperty !== "none" || style.animationName !== "none";
		}).map((e) => e.outerHTML.slice(0, 100))`); len(moving) > 0 {
			t.Errorf("%s: moving: %q", path, moving)
		}
		for range 30 {
			b.do(t, chromedp.KeyEvent(kb.Tab))
			if unseen := eval[string](t, b, `(() => {
				const e = document.activeElement, style = getComputedStyle(e);
				return e === document.body || style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 ? "" : e.outerHTML.slice(0, 200);
			})()`); unseen != "" {
				t.Errorf("%s: the focus is not seen on %s", path, unseen)
			}
		}
	}
}

// awaited has Evaluate wait for a promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
