package dashboard_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/servertest"
)

// TestFirstRunByKeyboard goes from the setup code to the first service without a
// mouse.
func TestFirstRunByKeyboard(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	code := setupCode(t, s)
	b := browse(t, s, "")
	b.open(t, "/")
	keys(t, b, "[name=code]", code)
	keys(t, b, "[name=password]", password)
	keys(t, b, "[name=again]", password+kb.Enter)
	b.reads(t, "Next comes your first site")
	keys(t, b, "[name=name]", "lab")
	keys(t, b, "details summary", kb.Enter)
	keys(t, b, "[name=internalDomain]", "lab.internal"+kb.Enter)
	b.reads(t, "Next comes its agent")
	keys(t, b, "main form button", kb.Enter)
	b.reads(t, "Waiting for the command to be run")
	keys(t, b, "[data-copy=command]", "")
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: "gateway", Services: map[string]checkin.ServiceReport{}})
	keys(t, b, `.trail a[href="/sites/1"]`, kb.Enter)
	b.reads(t, "gateway")
	keys(t, b, `main a[href="/sites/1/nodes/new"]`, kb.Enter)
	b.reads(t, "New node")
	keys(t, b, "[name=name]", "pve1"+kb.Enter)
	b.reads(t, `The node "pve1" was created.`)
	keys(t, b, ".empty .button", kb.Enter)
	keys(t, b, "[name=hostname]", "web")
	keys(t, b, "[name=ipv4Address]", "192.0.2.101"+kb.Enter)
	b.reads(t, `The container "web" was created.`)
	keys(t, b, `main a[href="/containers/1/services/new"]`, kb.Enter)
	b.reads(t, "there is none yet")
	keys(t, b, ".empty .button", kb.Enter)
	keys(t, b, "[name=name]", "example.com"+kb.Enter)
	b.reads(t, "The domain example.com was created.")
	keys(t, b, "[name=externalHostname]", "app")
	keys(t, b, "[name=internalPort]", "8080"+kb.Enter)
	b.reads(t, "The service was added")
}

// keys types into the first element that a selector finds, reached by the tabulator.
func keys(t *testing.T, b *tab, selector, typed string) {
	t.Helper()
	b.until(t, fmt.Sprintf(`document.readyState === "complete" && document.querySelector(%q) !== null`, selector))
	for range 100 {
		if eval[bool](t, b, fmt.Sprintf(`document.activeElement === document.querySelector(%q)`, selector)) {
			b.do(t, chromedp.KeyEvent(typed))
			return
		}
		b.do(t, chromedp.KeyEvent(kb.Tab))
	}
	t.Fatalf("the keyboard does not get to %s on\n%s", selector, eval[string](t, b, "document.body.innerText"))
}
