package notify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/store"
)

// Message is what is sent: many chat services and push servers take no more
// than 4 KiB.
type Message struct{ Title, Body string }

const (
	maxBody  = 3500 // bytes
	maxLines = 10   // of one kind
	maxLine  = 400  // bytes
)

// heading is a kind of event in words.
type heading struct {
	kind  events.Kind
	words string
}

// headings are in the order in which they are told.
var headings = []heading{
	{events.Offline, "silent"},
	{events.Stuck, "stuck, needs a person"},
	{events.ApplyFailed, "apply failed"},
	{events.VolumeFailed, "volume failed"},
	{events.CertificateExpired, "certificate expired"},
	{events.CertificateFaulty, "certificate cannot be used"},
	{events.GuardHeld, "mass removal held back"},
	{events.Quarantined, "record left out"},
	{events.CertificateExpiring, "certificate about to expire"},
}

// item is a line of a message.
type item struct {
	due  store.Due
	over bool // it has ended
	late bool // it had ended before anybody was told that it began
	till bool // it was told before, and goes on
}

// compose writes one message of all items, the worst first.
func compose(items []item, link string) Message {
	var title []string
	var body strings.Builder
	section := func(words string, among []item) {
		if len(among) == 0 {
			return
		}
		title = append(title, fmt.Sprintf("%d %s", len(among), words))
		writeSection(&body, words, among)
	}
	for _, h := range headings {
		section(h.words, choose(items, func(i item) bool { return !i.over && !i.till && i.due.Kind == h.kind }))
	}
	section("recovered", choose(items, func(i item) bool { return i.over }))
	section("still not well", choose(items, func(i item) bool { return i.till }))
	if link != "" {
		link = "\n" + link + "\n"
	}
	return Message{Title: "OpenSource Manager: " + strings.Join(title, ", "), Body: prose.Cut(strings.TrimSpace(body.String()), maxBody-len(link)) + link}
}

func choose(items []item, matches func(item) bool) []item {
	return slices.DeleteFunc(slices.Clone(items), func(i item) bool { return !matches(i) })
}

func writeSection(to *strings.Builder, words string, among []item) {
	slices.SortStableFunc(among, func(a, b item) int {
		return cmp.Or(strings.Compare(a.due.SiteName, b.due.SiteName), strings.Compare(a.due.Hostname, b.due.Hostname))
	})
	fmt.Fprintf(to, "%s%s (%d)\n", strings.ToUpper(words[:1]), words[1:], len(among))
	for _, i := range among[:min(len(among), maxLines)] {
		fmt.Fprintf(to, "- %s\n", prose.Cut(i.line(), maxLine))
	}
	if more := len(among) - maxLines; more > 0 {
		fmt.Fprintf(to, "- and %d more\n", more)
	}
	to.WriteString("\n")
}

// line names the agent and its site, and says what is wrong with it.
func (i item) line() string {
	what := i.due.Summary
	switch {
	case i.late:
		what = fmt.Sprintf("%s (from %s to %s)", i.due.Summary, prose.Minute(i.due.OpenedAt), prose.Minute(*i.due.ClosedAt))
	case i.over:
		what = cmp.Or(i.due.Closing, "is over")
	case i.till:
		what = fmt.Sprintf("%s (since %s)", i.due.Summary, prose.Minute(i.due.OpenedAt))
	}
	return plain(fmt.Sprintf("%s (%s): %s", i.due.Hostname, cmp.Or(i.due.SiteName, "deleted site"), what))
}

// plain takes line breaks out of what hosts report: they must not look like
// lines of ours.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// trial is the message by which somebody finds out whether a target works.
func trial(target, link string) Message {
	body := fmt.Sprintf("This is a test of the notification target %q. What is wrong with agents will be told here.", target)
	if link != "" {
		body += "\n\n" + link
	}
	return Message{Title: "OpenSource Manager: test", Body: body}
}
