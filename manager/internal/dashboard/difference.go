package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"opensource.internal/manager/internal/preview"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/revision"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// differenceView is what differs between two versions of a site, on paper and on
// its host.
type differenceView struct {
	From, To    string // what they are called
	Summary     string
	Same        bool
	Guard       string
	NotServed   []string // records, with the reason
	Effects     []effectView
	Agents      string
	Touched     []touchedView
	Changes     []changeView
	More        int // changes that are not listed
	Files       []fileView
	Assumptions []string
	Command     string // tells all of it on the manager's host
}

type effectView struct{ Service, Word, Class, Words string }

type touchedView struct {
	What                    string
	Added, Changed, Removed names20
}

// names20 are the first of many names.
type names20 struct {
	Names []string
	More  int
}

type changeView struct {
	Title, Action, Class, Former string
	Fields                       []changedField
}

// both reports whether the record is in both versions.
func (c changeView) both() bool { return c.Action == string(revision.Changed) }

type changedField struct{ Label, From, To string }

// fileView is a rendered file, side by side.
type fileView struct {
	Path  string
	Note  string // in place of hunks
	Hunks []hunk
	More  int // lines that are not shown
}

// compare describes what differs between two versions of a site on its host.
func (d *dashboard) compare(ctx context.Context, s store.Site, from, to snapshot.Version) (differenceView, error) {
	host, err := d.snapshots.Host(ctx, s.ID)
	if err != nil {
		return differenceView{}, err
	}
	view := describeDifference(preview.Compare(from.Snapshot, to.Snapshot, host, d.version))
	view.From, view.To = revisionName(from.Number), revisionName(to.Number)
	if from.ETag == "" {
		view.From = "Nothing"
	}
	view.Command = fmt.Sprintf("sudo opensource-manager pending %d", s.ID)
	if to.Number != 0 && from.Number != 0 {
		view.Command = fmt.Sprintf("sudo opensource-manager revisions diff %d %d --from %d", s.ID, to.Number, from.Number)
	}
	return view, nil
}

func describeDifference(diff preview.Difference) differenceView {
	view := differenceView{
		Summary: diff.Summary.String(), Same: len(diff.Changes)+len(diff.Files) == 0, Assumptions: diff.Host.Assumptions,
	}
	if g := diff.Impact.Guard; g != nil {
		view.Guard = "Agents hold this back until an administrator confirms it, because it " + removes(*g) + "."
	}
	for _, item := range diff.Impact.NotServed[:min(len(diff.Impact.NotServed), maxListed)] {
		view.NotServed = append(view.NotServed, kindNames[item.Kind]+readable(item.Name)+": "+item.Reason)
	}
	for _, e := range diff.Impact.Effects {
		view.Effects = append(view.Effects, describeEffect(e))
	}
	for _, t := range []struct {
		what string
		preview.Touched
	}{
		{"Host names", diff.Impact.HostNames},
		{"Ports", diff.Impact.Ports},
		{"DHCP reservations", diff.Impact.Reservations},
		{"SRV records", diff.Impact.DNSRecords},
		{"Volumes", diff.Impact.Volumes},
	} {
		if len(t.Added)+len(t.Changed)+len(t.Removed) > 0 {
			view.Touched = append(view.Touched, touchedView{t.what, firstNames(t.Added), firstNames(t.Changed), firstNames(t.Removed)})
		}
	}
	view.More = max(0, len(diff.Changes)-maxListed)
	for _, change := range diff.Changes[:len(diff.Changes)-view.More] {
		view.Changes = append(view.Changes, describeChange(change))
	}
	for _, file := range diff.Files {
		view.Files = append(view.Files, sideBySide(file))
	}
	return view
}

// describeEffect says beside a word what it means.
func describeEffect(e preview.ServiceEffect) effectView {
	view := effectView{Service: e.Service, Word: string(e.Effect), Class: warn, Words: e.Note}
	switch {
	case e.Effect == preview.Nothing:
		view.Word, view.Class = "not touched", neutral
	case e.Effect == preview.Restart:
		view.Words = "DNS and DHCP pause for a moment."
	case e.Effect == preview.Reload && e.Service == "nginx":
		view.Class, view.Words = good, "Open connections stay."
	case e.Effect == preview.Reload:
		view.Class, view.Words = good, "It reads its files again, without a pause."
	}
	return view
}

func firstNames(names []string) names20 {
	const most = 20
	all := names20{More: max(0, len(names)-most)}
	for _, name := range names[:len(names)-all.More] {
		all.Names = append(all.Names, written(name))
	}
	return all
}

func describeChange(change revision.Change) changeView {
	noun := revision.Noun(change.Resource)
	view := changeView{Title: capital(noun) + " " + written(change.Name), Action: string(change.Action), Former: written(change.Former)}
	switch change.Action {
	case revision.Added:
		view.Class = good
	case revision.Removed:
		view.Class = bad
	case revision.Changed:
		view.Class = warn
	}
	for _, f := range change.Fields {
		view.Fields = append(view.Fields, changedField{fieldLabel(f.Name), shownValue(f.From), shownValue(f.To)})
	}
	return view
}

// hunk is a part of a file with what surrounds it.
type hunk struct {
	Line  int // of the later file
	Lines []line
}

// line is one line of both files, or of one of them.
type line struct{ Left, Right side }

func (l line) same() bool { return l.Left.There && l.Right.There && !l.Left.Differs }

// side is a line of one file.
type side struct {
	Number         int
	Text           string
	There, Differs bool
}

// maxLines is how many lines of a file's differences are shown.
const maxLines = 400

// sideBySide reads a unified diff.
func sideBySide(file preview.FileDiff) fileView {
	view := fileView{Path: file.Path}
	var current *pairing
	shown := 0
	for text := range strings.Lines(file.Diff) {
		text = strings.TrimSuffix(text, "\n")
		if from, to, is := hunkStart(text); is {
			view.take(current)
			current = &pairing{hunk: hunk{Line: to}, left: from, right: to}
			continue
		}
		switch {
		case current == nil: // the names of the files
		case shown == maxLines:
			view.More++
		default:
			shown++
			current.add(text)
		}
	}
	view.take(current)
	if len(view.Hunks) == 0 {
		view.Note = strings.TrimSpace(file.Diff)
	}
	return view
}

func (f *fileView) take(p *pairing) {
	if p == nil {
		return
	}
	if p.pair(); len(p.Lines) > 0 {
		f.Hunks = append(f.Hunks, p.hunk)
	}
}

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@`)

func hunkStart(text string) (from, to int, is bool) {
	numbers := hunkHead.FindStringSubmatch(text)
	if numbers == nil {
		return 0, 0, false
	}
	from, _ = strconv.Atoi(numbers[1])
	to, _ = strconv.Atoi(numbers[2])
	return from, to, true
}

// pairing puts what is gone beside what came in its place.
type pairing struct {
	hunk
	left, right int // the next lines' numbers
	gone, came  []side
}

func (p *pairing) add(text string) {
	if text == "" {
		text = " "
	}
	switch text[0] {
	case '-':
		p.gone = append(p.gone, side{p.left, text[1:], true, true})
		p.left++
	case '+':
		p.came = append(p.came, side{p.right, text[1:], true, true})
		p.right++
	case ' ':
		p.pair()
		p.Lines = append(p.Lines, line{side{p.left, text[1:], true, false}, side{p.right, text[1:], true, false}})
		p.left, p.right = p.left+1, p.right+1
	}
}

func (p *pairing) pair() {
	for i := range max(len(p.gone), len(p.came)) {
		var l line
		if i < len(p.gone) {
			l.Left = p.gone[i]
		}
		if i < len(p.came) {
			l.Right = p.came[i]
		}
		p.Lines = append(p.Lines, l)
	}
	p.gone, p.came = nil, nil
}

// diffView compares two versions that the address names.
type diffView struct {
	SiteID   int64
	From, To string // as typed
	Fault    string
	Diff     *differenceView
}

// diff compares any two revisions, or one with what the inventory has now.
func (d *dashboard) diff(v *visit) error {
	s, err := d.siteOf(v)
	if err != nil {
		return err
	}
	view := diffView{SiteID: s.ID, From: strings.TrimSpace(v.Query("from")), To: strings.TrimSpace(v.Query("to"))}
	status := http.StatusOK
	if view.From == "before" {
		if view.From, err = d.numberBefore(v, s, view.To); err != nil {
			return err
		}
	}
	from, fault, err := d.typedVersion(v, s, view.From)
	if err == nil && fault == "" {
		var to snapshot.Version
		if to, fault, err = d.typedVersion(v, s, view.To); err == nil && fault == "" {
			var difference differenceView
			difference, err = d.compare(v.Request.Context(), s, from, to)
			view.Diff = &difference
		}
	}
	if err != nil {
		return err
	}
	if fault != "" {
		view.Fault, status = fault, http.StatusUnprocessableEntity
	}
	p := v.page("Compare revisions", "/sites", belowRevisions(s)...)
	if view.Diff != nil {
		p.Title = view.Diff.From + " and " + strings.ToLower(view.Diff.To[:1]) + view.Diff.To[1:]
	}
	return v.show(status, p, diffPage(p, view))
}

// typedVersion is the version of a number that was typed, that of the inventory
// if none was. Fault says what is wrong with the number.
func (d *dashboard) typedVersion(v *visit, s store.Site, typed string) (version snapshot.Version, fault string, err error) {
	if typed == "" {
		version, err = d.snapshots.Inventory(v.Request.Context(), s.ID)
		return version, "", err
	}
	number, err := strconv.ParseInt(typed, 10, 64)
	if err != nil || number < 0 {
		return version, fmt.Sprintf("%q is not the number of a revision.", prose.Cut(typed, 40)), nil
	}
	if number == 0 {
		return snapshot.Nothing(), "", nil
	}
	version, err = d.snapshots.Revision(v.Request.Context(), s.ID, number)
	if errors.Is(err, store.ErrNotFound) {
		return version, fmt.Sprintf("There is no revision %d of this site, or it is not kept any more.", number), nil
	}
	return version, "", err
}

// swapped is the address of the comparison the other way round.
func (view diffView) swapped() string {
	return sitePath(view.SiteID) + "/diff?" + url.Values{"from": {view.To}, "to": {view.From}}.Encode()
}

// numberBefore is the number of the revision before one, 0 if none is kept.
func (d *dashboard) numberBefore(v *visit, s store.Site, typed string) (string, error) {
	number, err := strconv.ParseInt(typed, 10, 64)
	if err != nil || number <= 0 {
		return "", store.ErrNotFound
	}
	before, err := d.snapshots.Before(v.Request.Context(), s.ID, number)
	return strconv.FormatInt(before.Number, 10), err
}
