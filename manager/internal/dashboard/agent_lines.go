package dashboard

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
	"opensource.internal/manager/internal/preview"
	"opensource.internal/manager/internal/store"
)

// excerpt is a part of a rendered file, with the lines a message is about.
type excerpt struct {
	ID    string
	Title string
	Path  string
	Lines []excerptLine
	Of    []recordLink // what the marked lines were made of
	Note  string       // what is not certain about it
}

type excerptLine struct {
	Number int
	Text   string
	Faulty bool
	// Gap is set where lines before this one are left out.
	Gap bool
}

// recordLink names a record, and where its page is if there is one.
type recordLink struct {
	Name string
	Path string // empty if the record is gone
	lastChange
}

// lastChange says who changed a record last; By is empty if that is not known.
type lastChange struct {
	By       string
	Revision namedRevision
}

// The bounds of what is shown: a hostile report is long.
const (
	linesAround  = 4
	maxPlaces    = 5
	maxExcerpt   = 60 // lines
	maxRecords   = 50
	maxLineBytes = 500
)

// place is a line of a file that a message names.
type place struct {
	Path string
	Line int
	// Words is what the message says of it.
	Words string
}

// placeForms are those of nginx and of dnsmasq. As agents have the program speak
// English when it tests, these are all.
var placeForms = []struct {
	*regexp.Regexp
	file, line int // the groups
}{
	{regexp.MustCompile(`(?m) in (/[^\s:]+):(\d+)$`), 1, 2},
	{regexp.MustCompile(`(?m) at line (\d+) of (/\S+)$`), 2, 1},
	{regexp.MustCompile(`(?m) at (/\S+) line (\d+)$`), 1, 2},
}

// placesIn are the places that a message names, each once, warnings left out.
func placesIn(message string) []place {
	var places []place
	for line := range strings.Lines(message) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "[warn]") {
			continue
		}
		for _, form := range placeForms {
			match := form.FindStringSubmatch(line)
			if match == nil {
				continue
			}
			n, err := strconv.Atoi(match[form.line])
			found := place{match[form.file], n, strings.TrimSuffix(line, match[0])}
			if err == nil && !slices.Contains(places, found) && len(places) < maxPlaces {
				places = append(places, found)
			}
		}
	}
	return places
}

// lineNamed is how an agent tells of a record which of its lines is refused.
var lineNamed = regexp.MustCompile(`\(in its line: (.+)\)$`)

func refusedLine(reason string) string {
	if match := lineNamed.FindStringSubmatch(reason); match != nil {
		return match[1]
	}
	return ""
}

// portFault is what nginx says of a port that it cannot listen on. It names no
// line.
var portFault = regexp.MustCompile(`bind\(\) to \S+:(\d+) failed`)

// listening are the lines of a file that listen on one of the ports a message
// complains about.
func listening(message string, file preview.File) []int {
	var ports []string
	for _, match := range portFault.FindAllStringSubmatch(message, maxPlaces) {
		ports = append(ports, match[1])
	}
	if len(ports) == 0 {
		return nil
	}
	directive := regexp.MustCompile(`^\s*listen\s+(?:\S*:)?(?:` + strings.Join(ports, "|") + `)\b`)
	var lines []int
	for i, line := range strings.Split(file.Content, "\n") {
		if directive.MatchString(line) {
			lines = append(lines, i+1)
		}
	}
	return lines
}

// addLines puts the rendered lines beside what the service says of them. What
// was rendered there is not told: it is rendered here again, from the revision
// that the service was given, for the host as the agent describes it.
func (r *agentReader) addLines(s *serviceDetail, name string, report checkin.ServiceReport) error {
	s.More = max(0, len(report.Quarantined)-maxRecords)
	shown := report.Quarantined[:min(len(report.Quarantined), maxRecords)]
	speaks := len(placesIn(report.Message)) > 0 || portFault.MatchString(report.Message)
	if len(shown) == 0 && (!speaks || inForce(report.Outcome)) {
		return nil
	}
	files, note, err := r.rendered(name, report)
	if err != nil {
		return err
	}
	if report.Outcome.Failed() || report.LastApply == checkin.ApplyFailure && len(shown) == 0 {
		if s.Excerpts, err = r.pointedAt(s.ID, report, files.candidate, note); err != nil {
			return err
		}
	}
	for i, item := range shown {
		record := render.Record{Kind: item.Kind, ID: item.ID, Name: item.Name}
		link, err := r.linkTo(record)
		if err != nil {
			return err
		}
		view := recordView{recordLink: link, ID: fmt.Sprintf("%s-record-%d", s.ID, i), Reason: item.Reason, KeptPrevious: item.KeptPrevious}
		for j, file := range files.wanted {
			if lines := linesOf(file, record); len(lines) > 0 {
				one := cut(file, lines, faultyOf(file, lines, item.Reason), 0)
				one.ID, one.Title, one.Note = fmt.Sprintf("%s-lines-%d", view.ID, j), "What was made of it in "+file.Path, note
				view.Excerpts = append(view.Excerpts, one)
			}
		}
		view.Foreign = refusedLine(item.Reason) != "" && len(view.Excerpts) > 0 && !slices.ContainsFunc(view.Excerpts, excerpt.hasFaulty)
		s.Records = append(s.Records, view)
	}
	return nil
}

// renderedFiles are those of one service: as the revision wants them, and as they
// were tested, without what was left out.
type renderedFiles struct{ wanted, candidate []preview.File }

func (r *agentReader) rendered(name string, report checkin.ServiceReport) (files renderedFiles, note string, err error) {
	row, err := r.revision(report.ReceivedETag)
	if err != nil || row.Number == 0 {
		return files, "", err
	}
	snapshot, err := checkin.ParseSnapshot(row.Data)
	if err != nil {
		return files, "", fmt.Errorf("read revision %d: %w", row.Number, err)
	}
	reported := r.agent.Report.Request
	reported.Hostname = r.agent.Hostname
	host := preview.HostOf(&reported)
	made := preview.Of(snapshot, host, r.d.version)
	files.wanted = filesOf(made, name)
	files.candidate = files.wanted
	if len(report.Quarantined) > 0 {
		host.Refused = report.Quarantined
		if before, err := r.revision(report.RunningETag); err == nil && before.Number != 0 {
			if running, err := checkin.ParseSnapshot(before.Data); err == nil {
				host.Before = &running
			}
		}
		files.candidate = filesOf(preview.Of(snapshot, host, r.d.version), name)
	}
	note = fmt.Sprintf("These lines were made here from revision %d, for the host as its agent describes it.", row.Number)
	if others := others(made.Host.Assumptions); len(others) > 0 {
		note += " On the host they may be others: " + strings.Join(others, "; ") + "."
	}
	return files, note, nil
}

// others are the assumptions that matter for which line is which.
func others(assumptions []string) []string {
	return slices.DeleteFunc(slices.Clone(assumptions), func(a string) bool { return strings.Contains(a, "name servers") })
}

func filesOf(p preview.Preview, service string) []preview.File {
	for _, s := range p.Services {
		if s.Name == service {
			return s.Files
		}
	}
	return nil
}

// pointedAt are the lines that a service's message points at.
func (r *agentReader) pointedAt(id string, report checkin.ServiceReport, files []preview.File, note string) ([]excerpt, error) {
	var list []excerpt
	add := func(file preview.File, lines []int, title, note string) error {
		one := cut(file, lines, lines, linesAround)
		one.ID, one.Title, one.Note = fmt.Sprintf("%s-line-%d", id, len(list)), title, note
		for _, record := range recordsOf(file, lines) {
			link, err := r.linkTo(record)
			if err != nil {
				return err
			}
			one.Of = append(one.Of, link)
		}
		list = append(list, one)
		return nil
	}
	for _, at := range placesIn(report.Message) {
		for _, file := range files {
			lines := strings.Count(file.Content, "\n")
			if file.Path != at.Path || at.Line < 1 || at.Line > lines {
				continue
			}
			title := fmt.Sprintf("Line %d of %s", at.Line, file.Path)
			if err := add(file, []int{at.Line}, title, doubt(file, at)+note); err != nil {
				return nil, err
			}
		}
	}
	for _, file := range files {
		if lines := listening(report.Message, file); len(lines) > 0 {
			if err := add(file, lines, "What listens there, in "+file.Path, note); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// quotedWord is what a message says a line has in it.
var quotedWord = regexp.MustCompile(`"([^"]+)"`)

// doubt says that a line is not what its message speaks of, if that can be seen:
// the file on the host has other lines then.
func doubt(file preview.File, at place) string {
	match := quotedWord.FindStringSubmatch(at.Words)
	if match == nil || strings.Contains(lineOf(file, at.Line), match[1]) {
		return ""
	}
	return fmt.Sprintf("The message speaks of %q, which is not in this line: the file on the host differs from this one. ", match[1])
}

func lineOf(file preview.File, number int) string {
	lines := strings.Split(file.Content, "\n")
	if number < 1 || number > len(lines) {
		return ""
	}
	return lines[number-1]
}

// linesOf are the lines made of a record, in order.
func linesOf(file preview.File, wanted render.Record) []int {
	var lines []int
	for line, record := range file.Lines {
		if record.Kind == wanted.Kind && record.Key() == wanted.Key() {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// faultyOf are those of a record's lines that a reason names.
func faultyOf(file preview.File, lines []int, reason string) []int {
	var faulty []int
	for _, at := range placesIn(reason) {
		if at.Path == file.Path && slices.Contains(lines, at.Line) {
			faulty = append(faulty, at.Line)
		}
	}
	for _, line := range listening(reason, file) {
		if slices.Contains(lines, line) {
			faulty = append(faulty, line)
		}
	}
	if text := refusedLine(reason); text != "" {
		all := strings.Split(file.Content, "\n")
		for _, line := range lines {
			if strings.TrimSpace(all[line-1]) == text && !slices.Contains(faulty, line) {
				faulty = append(faulty, line)
			}
		}
	}
	return faulty
}

// recordsOf are the records that lines were made of, each once.
func recordsOf(file preview.File, lines []int) []render.Record {
	var records []render.Record
	for _, line := range lines {
		if record, ok := file.Lines[line]; ok && !slices.Contains(records, record) && len(records) < maxPlaces {
			records = append(records, record)
		}
	}
	return records
}

// cut takes lines out of a file, with some around each.
func cut(file preview.File, lines, faulty []int, around int) excerpt {
	all := strings.Split(strings.TrimSuffix(file.Content, "\n"), "\n")
	view := excerpt{Path: file.Path}
	last := 0
	for len(lines) > 1 && around == 0 && all[lines[0]-1] == "" {
		lines = lines[1:] // an empty one sets it off
	}
	for _, at := range lines {
		for n := max(at-around, last+1, 1); n <= min(at+around, len(all)) && len(view.Lines) < maxExcerpt; n++ {
			text := all[n-1]
			if len(text) > maxLineBytes {
				text = strings.ToValidUTF8(text[:maxLineBytes], "") + "…"
			}
			view.Lines = append(view.Lines, excerptLine{Number: n, Text: text, Faulty: slices.Contains(faulty, n), Gap: last != 0 && n > last+1})
			last = n
		}
	}
	return view
}

// linkTo names a record and says where its page is.
func (r *agentReader) linkTo(record render.Record) (recordLink, error) {
	link := recordLink{Name: kindNames[record.Kind] + readable(record.Name)}
	if kindNames[record.Kind] == "" {
		link.Name = record.Kind + " " + record.Name
	}
	of, err := r.find(record)
	if errors.Is(err, store.ErrNotFound) {
		return link, nil
	}
	if err != nil {
		return link, err
	}
	link.Path = recordPages[of.Resource](of.ID)
	link.lastChange, err = r.lastChange(of)
	return link, err
}

// lastChange tells who changed a record of the agent's site last.
func (r *agentReader) lastChange(of store.Ref) (lastChange, error) {
	last, err := r.d.store.LastChangeOf(r.ctx, r.agent.SiteID, of)
	if err != nil || last == nil {
		return lastChange{}, err
	}
	words := fmt.Sprintf("revision %d", last.Revision)
	return lastChange{last.By, namedRevision{words, last.Revision, changesPath(r.agent.SiteID, last.Revision)}}, nil
}

// kindNames are what the kinds of records are called on pages.
var kindNames = map[string]string{
	checkin.KindHTTP: "HTTP service ", checkin.KindStream: "port ", checkin.KindSRV: "SRV record ", checkin.KindDomain: "external domain ",
	checkin.KindReservation: "DHCP reservation of ", checkin.KindHost: "name of ",
}

// find finds a record of the agent's site, or returns store.ErrNotFound.
func (r *agentReader) find(record render.Record) (store.Ref, error) {
	site := r.agent.SiteID
	switch record.Kind {
	case checkin.KindHTTP, checkin.KindStream, checkin.KindSRV:
		service, err := r.d.store.GetService(r.ctx, record.ID)
		if err == nil && service.SiteID != site {
			err = store.ErrNotFound
		}
		return store.Ref{Resource: "service", ID: record.ID}, err
	case checkin.KindDomain:
		rows, _, err := r.d.store.ListExternalDomains(r.ctx, store.ExternalDomainFilter{Name: record.Name}, store.ListOptions{Limit: 1})
		if err != nil || len(rows) == 0 {
			return store.Ref{}, noneOr(err)
		}
		return store.Ref{Resource: "external_domain", ID: rows[0].ID}, nil
	case checkin.KindReservation, checkin.KindHost:
		rows, _, err := r.d.store.ListContainers(r.ctx, store.ContainerFilter{SiteID: site, Hostname: record.Name}, store.ListOptions{Limit: 1})
		if err == nil && len(rows) > 0 {
			return store.Ref{Resource: "container", ID: rows[0].ID}, nil
		}
		if err != nil {
			return store.Ref{}, err
		}
		nodes, _, err := r.d.store.ListNodes(r.ctx, store.NodeFilter{SiteID: site, Name: record.Name}, store.ListOptions{Limit: 1})
		if err != nil || len(nodes) == 0 {
			return store.Ref{}, noneOr(err)
		}
		return store.Ref{Resource: "node", ID: nodes[0].ID}, nil
	}
	return store.Ref{}, store.ErrNotFound
}

// noneOr is the error, or that there is no such record.
func noneOr(err error) error {
	if err == nil {
		return store.ErrNotFound
	}
	return err
}
