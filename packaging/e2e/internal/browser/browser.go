//go:build e2e

// Package browser lets tests use pages as a person does, in Debian's Chromium:
// by what is written on links and buttons.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"opensource.internal/e2e/internal/wait"
)

// Patience bounds what is waited for, unless a test says otherwise.
const Patience = 30 * time.Second

// Page is an open page.
type Page struct{ ctx context.Context }

// Open starts Chromium with a page. It ends with the test.
func Open(t testing.TB, url string) *Page {
	t.Helper()
	// Tests run as root, which its own sandbox does not. By default it would be killed
	// with the thread that starts it, and threads that have been in the network of a
	// machine end early.
	ctx, end := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ModifyCmdFunc(func(*exec.Cmd) {}),
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(time.Minute))...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); end() }) // waits until it is gone, for its folder's sake
	if err := chromedp.Run(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("open %s in chromium: %v", url, err)
	}
	return &Page{ctx}
}

// Type writes into the field of that name, or chooses in it what is called so.
func (p *Page) Type(t testing.TB, field, text string) {
	t.Helper()
	p.do(t, fmt.Sprintf("field %q with %q", field, text), fmt.Sprintf(
		`(() => {
			const field = document.querySelector("main [name=" + CSS.escape(%s) + "]");
			const option = [...field?.options ?? []].find(o => o.text.trim() === %s);
			if (!field || field.options && !option) return false;
			field.value = option ? option.value : %[2]s;
			return true
		})()`, strconv.Quote(field), strconv.Quote(text)))
}

// Click clicks on the link or button with that text, in the part of the page
// that says something, which is empty if there is only one, and waits for the page
// that it leads to.
func (p *Page) Click(t testing.TB, part, text string) {
	t.Helper()
	p.do(t, fmt.Sprintf("link or button %q", text), fmt.Sprintf(
		`(() => {
			const found = [...document.querySelectorAll("a, button")].find(e =>
				e.textContent.trim() === %s && e.closest("article, section, tr, body").textContent.includes(%s));
			if (found) {
				window.left = true;
				found.click();
			}
			return !!found
		})()`, strconv.Quote(text), strconv.Quote(part)))
	p.do(t, fmt.Sprintf("the page that %q leads to", text), `!window.left && document.readyState === "complete"`)
}

// WaitFor waits until the page says something.
func (p *Page) WaitFor(t testing.TB, text string) {
	t.Helper()
	p.WaitLong(t, Patience, text)
}

// WaitLong is WaitFor what takes its time.
func (p *Page) WaitLong(t testing.TB, patience time.Duration, text string) {
	t.Helper()
	p.until(t, patience, fmt.Sprintf("%q on the page", text), fmt.Sprintf(
		`!!document.body && document.body.innerText.replace(/\s+/g, " ").includes(%s)`, strconv.Quote(text)))
}

// Text is what stands in the element of an id, such as a command to copy.
func (p *Page) Text(t testing.TB, id string) string {
	t.Helper()
	p.do(t, "element "+id, fmt.Sprintf(`!!document.getElementById(%s)`, strconv.Quote(id)))
	var text string
	if err := p.run(chromedp.Evaluate(fmt.Sprintf(`document.getElementById(%s).textContent`, strconv.Quote(id)), &text)); err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return text
}

// Stays makes the test fail unless what is waited for meanwhile comes to the page
// without loading it anew.
func (p *Page) Stays(t testing.TB, meanwhile func()) {
	t.Helper()
	p.do(t, "a page", `window.stays = true`)
	meanwhile()
	var stayed bool
	if err := p.run(chromedp.Evaluate(`window.stays === true`, &stayed)); err != nil || !stayed {
		t.Errorf("the page was loaded anew; %v", err)
	}
}

// Picture leaves pictures of the page in the folder that SCREENSHOTS names, on a
// desk and on a phone, to be looked at.
func (p *Page) Picture(t testing.TB, name string) {
	t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	for _, width := range []int64{1280, 390} {
		var picture []byte
		err := p.run(emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500), chromedp.FullScreenshot(&picture, 100), emulation.ClearDeviceMetricsOverride())
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d.png", name, width)), picture, 0o644)
		}
		if err != nil {
			t.Fatalf("picture of %s: %v", name, err)
		}
	}
}

func (p *Page) do(t testing.TB, what, expression string) {
	t.Helper()
	p.until(t, Patience, what, expression)
}

// until evaluates an expression until it is true, on whichever page that is by
// then.
func (p *Page) until(t testing.TB, patience time.Duration, what, expression string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			var said string
			_ = p.run(chromedp.Evaluate(`location.href + "\n" + document.body.innerText`, &said))
			t.Logf("the page is %s", said)
		}
	}()
	wait.For(t, patience, what, func() error {
		var fulfilled bool
		err := p.run(chromedp.Evaluate(expression, &fulfilled)) // fails while one page follows another
		if err == nil && !fulfilled {
			err = errors.New("it is not there")
		}
		return err
	})
}

// run has a limit, which must not be the browser's own.
func (p *Page) run(actions ...chromedp.Action) error {
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	return chromedp.Run(ctx, actions...)
}
