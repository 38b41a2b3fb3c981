//go:build e2e

// Package browser lets tests use pages as a person does, in a real Chromium: by
// what is written on links and buttons.
//
// Chromium is driven over a pair of pipes in its DevTools protocol
// (https://chromedevtools.github.io/devtools-protocol/): messages of JSON, each
// ended by a zero byte.
package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"opensource.internal/e2e/internal/wait"
)

const (
	// patience bounds everything that is waited for.
	patience = 30 * time.Second
	// lifetime bounds a browser.
	lifetime = 2 * time.Minute
)

// Page is an open page.
type Page struct {
	commands io.Writer
	messages *bufio.Reader
	session  string
	last     int // id of the last command
}

// Open starts Chromium with a page. It ends with the test.
func Open(t testing.TB, url string) *Page {
	t.Helper()
	p, err := start(t)
	if err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	var made struct{ TargetID string }
	var attached struct{ SessionID string }
	p.must(t, "Target.createTarget", map[string]any{"url": url}, &made)
	p.must(t, "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &attached)
	p.session = attached.SessionID
	return p
}

func start(t testing.TB) (*Page, error) {
	commands, toUs, err := pipes()
	if err != nil {
		return nil, err
	}
	// Tests run as root, which its own sandbox does not.
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	chromium := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
		"--disable-component-update", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	chromium.ExtraFiles = []*os.File{commands.theirs, toUs.theirs} // 3 and 4, by which it is driven
	err = chromium.Start()
	commands.theirs.Close()
	toUs.theirs.Close()
	if err != nil {
		cancel()
		return nil, err
	}
	p := &Page{commands: commands.ours, messages: bufio.NewReader(toUs.ours)}
	t.Cleanup(func() {
		p.session = ""
		// Killed, it would leave children that still write to its folder.
		if err := p.command("Browser.close", nil, &struct{}{}); err != nil {
			cancel()
		}
		_ = chromium.Wait()
		cancel()
		commands.ours.Close()
		toUs.ours.Close()
	})
	return p, nil
}

// pipe is one with an end for each of us.
type pipe struct{ ours, theirs *os.File }

func pipes() (commands, toUs pipe, err error) {
	if commands.theirs, commands.ours, err = os.Pipe(); err != nil {
		return commands, toUs, err
	}
	toUs.ours, toUs.theirs, err = os.Pipe()
	return commands, toUs, err
}

// Type writes into the field of that name.
func (p *Page) Type(t testing.TB, field, text string) {
	t.Helper()
	p.do(t, fmt.Sprintf("field %q", field), fmt.Sprintf(
		`(() => { const field = document.querySelector("input[name=" + CSS.escape(%s) + "]"); if (field) field.value = %s; return !!field })()`,
		strconv.Quote(field), strconv.Quote(text)))
}

// Click clicks on the link or button with that text, in the part of the page
// that says something; that is empty if there is only one.
func (p *Page) Click(t testing.TB, part, text string) {
	t.Helper()
	p.do(t, fmt.Sprintf("link or button %q", text), fmt.Sprintf(
		`(() => {
			const found = [...document.querySelectorAll("a, button")].find(e =>
				e.textContent.trim() === %s && e.closest("article, tr, body").textContent.includes(%s));
			if (found) found.click();
			return !!found
		})()`, strconv.Quote(text), strconv.Quote(part)))
}

// WaitFor waits until the page says something.
func (p *Page) WaitFor(t testing.TB, text string) {
	t.Helper()
	p.do(t, fmt.Sprintf("%q on the page", text), fmt.Sprintf(
		`!!document.body && document.body.innerText.replace(/\s+/g, " ").includes(%s)`, strconv.Quote(text)))
}

// do evaluates an expression until it is true.
func (p *Page) do(t testing.TB, what, expression string) {
	t.Helper()
	wait.For(t, patience, what, func() error {
		var answer struct {
			Result           struct{ Value bool }
			ExceptionDetails *struct{ Text string }
		}
		err := p.command("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
		switch {
		case err != nil: // such as that the page is on its way to the next one
			return err
		case answer.ExceptionDetails != nil:
			return fmt.Errorf("%s: %s", expression, answer.ExceptionDetails.Text)
		case !answer.Result.Value:
			return errors.New("it is not there")
		}
		return nil
	})
}

func (p *Page) must(t testing.TB, method string, params, result any) {
	t.Helper()
	if err := p.command(method, params, result); err != nil {
		t.Fatalf("chromium: %v", err)
	}
}

// command sends a command and waits for its answer. Events are of no interest.
func (p *Page) command(method string, params, result any) error {
	p.last++
	message := map[string]any{"id": p.last, "method": method, "params": params}
	if p.session != "" {
		message["sessionId"] = p.session
	}
	encoded, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := p.commands.Write(append(encoded, 0)); err != nil {
		return err
	}
	for {
		answer, err := p.messages.ReadBytes(0)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		var m struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(answer[:len(answer)-1], &m); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		switch {
		case m.ID != p.last:
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		default:
			return json.Unmarshal(m.Result, result)
		}
	}
}
