package soak

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// The exit codes of the agent.
const (
	settled      = 0
	unexpected   = 1
	managerAway  = 3
	rejected     = 4
	needsAPerson = 5
	wouldChange  = 10
)

// check asserts what must hold after every pass. before is how often each
// program had been started, mains what they had loaded.
func (s *session) check(r result, before map[string]int, mains map[string]string) {
	s.checkLoads(before, mains)
	s.watchLine()
	if s.question != nil {
		for _, lost := range s.question.takeLost() {
			s.wrong("dnsmasq left a question without an answer: %s", lost)
		}
	}
	if strings.Contains(r.log, "panic:") || strings.Contains(r.log, "goroutine ") {
		s.wrong("the agent panicked")
	}
	for _, odd := range s.machine.takeOdd() {
		s.wrong("the stand-in for systemd has to learn: %s", odd)
	}
	if r.killed {
		for service := range managedFiles {
			s.disturbed[service], s.cutShort[service] = true, true
		}
		for _, file := range leftovers() {
			s.remains[file] = strings.Contains(file, ".new-")
		}
		return // whatever it has left is for the next pass
	}
	if !slices.Contains([]int{settled, unexpected, managerAway, rejected, needsAPerson}, r.code) {
		s.wrong("exit status %d", r.code)
	}
	for service := range s.cutShort {
		if !s.held[service] {
			delete(s.cutShort, service)
		}
	}
	for _, file := range leftovers() {
		if !s.remains[file] && len(s.cutShort) == 0 && r.code != needsAPerson {
			s.wrong("left over: %s", file)
		}
	}
	if len(r.told) > 0 && r.code != managerAway {
		s.checkReport(r, r.told[len(r.told)-1])
	}
	if strings.Contains(r.log, "error: save ") {
		s.forget() // it could not save what it knows
	}
}

// checkLoads asserts that programs were made to load only what their validator
// had passed, and were restarted only when that was needed.
func (s *session) checkLoads(before map[string]int, mains map[string]string) {
	for name, unit := range s.machine.units {
		service := serviceOf(name)
		loads := unit.loaded()
		if len(loads) > 0 && s.held[service] {
			s.wrong("%s is held, and was made to load something", service)
		}
		for _, load := range loads {
			if !validated(service, load.digest) && !isPristine(service, load.digest) {
				s.wrong("%s: %s of a file that was never validated, or not as it is (%s)", service, load.how, load.digest)
			}
		}
		restarted := unit.epoch() != before[service]
		main, ran := mains[service]
		another := slices.ContainsFunc(loads, func(l load) bool { return l.digest != main })
		if restarted && ran && !s.disturbed[service] && (service == "nginx" || !another) {
			s.wrong("%s was restarted without need", service)
		}
	}
}

func isPristine(service, sum string) bool {
	file := managedFiles[service][len(managedFiles[service])-1]
	content, err := os.ReadFile(pristine + "/" + strings.TrimPrefix(file, "/etc/"))
	return err == nil && digest(content) == sum
}

// checkReport asserts that the last check-in tells what runs.
func (s *session) checkReport(r result, told checkin.Request) {
	s.settle(r)
	worst := settled
	if s.checkGuard(told) {
		worst = rejected
	}
	for service, unit := range map[string]*unit{"nginx": s.machine.nginx(), "dnsmasq": s.machine.dnsmasq()} {
		report := told.Services[service]
		s.say("reported: %s %s %s %s, running %s, left out %v, %q", service, report.State, report.LastApply, report.Outcome,
			shortTag(report.RunningETag), namesOf(report.Quarantined), firstLine(report.Message))
		if report.State != unit.state() {
			s.wrong("%s is %s, and reported to be %s", service, unit.state(), report.State)
		}
		if (report.Hold != nil) != s.held[service] {
			s.wrong("%s: held is %t, reported hold %v", service, s.held[service], report.Hold)
		}
		switch {
		case s.held[service]:
		case report.Outcome == checkin.OutcomeStuck:
			worst = needsAPerson
		case report.LastApply == checkin.ApplyFailure:
			worst = max(worst, rejected)
		}
		s.checkOutcome(service, report)
	}
	for _, volume := range told.Volumes {
		if !volume.Applied {
			worst = max(worst, rejected)
		}
	}
	if r.code < worst {
		s.wrong("exit status %d, although it reported what is worth %d", r.code, worst)
	}
	if outcome := told.Services["nginx"].Outcome; outcome != "" {
		s.checkCertificates(told, outcome == checkin.OutcomeApplied || outcome == checkin.OutcomeUnchanged)
	}
	if told.Running != nil {
		s.checkRunning(told)
	}
}

// settle waits until nginx serves what it was made to load last, if this pass
// or the one before has taken something back.
func (s *session) settle(r result) {
	takenBack := strings.Contains(r.log, "outcome=rolled_back") || strings.Contains(r.log, "outcome=stuck") || strings.Contains(r.log, "looked for refused records")
	waiting := takenBack || s.unsettled
	s.unsettled = takenBack
	want := s.machine.nginx().runs().revision
	if !waiting || want == "" {
		return
	}
	const enough = 5 // times in a row
	deadline := time.Now().Add(30 * time.Second)
	for same := 0; same < enough && time.Now().Before(deadline) && s.machine.nginx().alive(); time.Sleep(20 * time.Millisecond) {
		if got, err := askRevision(); err == nil && got == want && s.machine.nginx().idle() {
			same++
		} else {
			same = 0
		}
	}
}

// checkGuard asserts that a snapshot is held back if, and only if, it removes
// too much of what is known to run.
func (s *session) checkGuard(told checkin.Request) (heldBack bool) {
	guard := told.Guard
	switch {
	case guard == nil:
		s.meant = s.etag
	case guard.ETag != s.etag:
		s.wrong("%s is said to be held back, but %s is published", shortTag(guard.ETag), shortTag(s.etag))
	}
	snapshot, _ := s.manager.snapshot(s.etag)
	tooMuch, known := false, true
	for service, kind := range map[string]checkin.GuardKind{"nginx": checkin.GuardServices, "dnsmasq": checkin.GuardReservations} {
		running, runs := s.before[service]
		known = known && runs
		before, _ := s.manager.snapshot(running.etag)
		removed, total := checkin.Removed(kind, before, snapshot)
		tooMuch = tooMuch || len(removed) >= 5 && 2*len(removed) > total
	}
	if tooMuch = tooMuch && !snapshot.RemovalsConfirmed; known && tooMuch != (guard != nil) {
		s.wrong("removes too much: %t, held back: %v", tooMuch, guard)
	}
	return guard != nil
}

// checkRunning asserts that the snapshot said to run as a whole is one that
// was published, and was all in force when it was first said to be.
func (s *session) checkRunning(told checkin.Request) {
	if _, known := s.manager.snapshot(told.Running.ETag); !known {
		s.wrong("reported to run %s, which was never published", told.Running.ETag)
	}
	moved := s.whole != "" && told.Running.ETag != s.whole
	s.whole = told.Running.ETag
	if !moved {
		return
	}
	if s.meant != "" && s.whole != s.meant {
		s.wrong("reported to run %s as a whole, when %s is meant to be in force", shortTag(s.whole), shortTag(s.meant))
	}
	for service, report := range told.Services {
		if report.LastApply == checkin.ApplyFailure || report.Outcome != checkin.OutcomeSkipped && report.RunningETag != s.whole {
			s.wrong("reported to run %s as a whole, but %s is %s with %s", shortTag(s.whole), service, report.Outcome, shortTag(report.RunningETag))
		}
	}
}

func (s *session) checkOutcome(service string, report checkin.ServiceReport) {
	failed := report.LastApply == checkin.ApplyFailure
	switch report.Outcome {
	case checkin.OutcomeApplied, checkin.OutcomeUnchanged:
		if report.ReceivedETag != s.etag || s.meant != "" && report.RunningETag != s.meant {
			s.wrong("%s is %s, but received %s and runs %s instead of %s and %s", service, report.Outcome,
				shortTag(report.ReceivedETag), shortTag(report.RunningETag), shortTag(s.etag), shortTag(s.meant))
		}
		if failed != (len(report.Quarantined) > 0) {
			s.wrong("%s: last apply %s with %d records left out", service, report.LastApply, len(report.Quarantined))
		}
		s.inForce[service] = force{report.RunningETag, report.Quarantined}
		delete(s.disturbed, service)
		s.checkServed(service)
		s.checkLive(service)
	case checkin.OutcomeRejected, checkin.OutcomeRolledBack:
		if !failed || report.Message == "" {
			s.wrong("%s: %s, last apply %s, message %q", service, report.Outcome, report.LastApply, report.Message)
		}
		if running, known := s.inForce[service]; known && running.etag != report.RunningETag {
			s.wrong("%s: %s, reported to run %s, but %s was in force before", service, report.Outcome, shortTag(report.RunningETag), shortTag(running.etag))
		}
		s.checkServed(service)
	case checkin.OutcomeSkipped:
		if service != "dnsmasq" || s.site.network != incomplete || report.Message == "" {
			s.wrong("%s is skipped: %q", service, report.Message)
		}
		delete(s.inForce, service)
	case checkin.OutcomeHeld:
		if running, known := s.inForce[service]; !s.held[service] || known && running.etag != report.RunningETag {
			s.wrong("%s: held, reported to run %s, but %s was in force before", service, shortTag(report.RunningETag), shortTag(running.etag))
		}
		if !s.cutShort[service] {
			s.checkServed(service)
		}
	case "":
		if s.meant == s.etag {
			s.wrong("%s: no outcome", service)
		} // Else what was in force was lost with snapshot.json, and the rest is held back.
	case checkin.OutcomeStuck:
		if !failed || report.Message == "" {
			s.wrong("%s: stuck, last apply %s, message %q", service, report.LastApply, report.Message)
		}
		delete(s.inForce, service)
	default:
		s.wrong("%s: outcome %q", service, report.Outcome)
	}
	if report.Outcome != checkin.OutcomeApplied && report.Outcome != checkin.OutcomeUnchanged {
		s.disturbed[service] = true
	}
}

// checkLive asserts that the live main file is what its validator has passed,
// and what the program has loaded.
func (s *session) checkLive(service string) {
	file := managedFiles[service][len(managedFiles[service])-1]
	content, err := os.ReadFile(file)
	if err != nil {
		s.wrong("live file: %v", err)
		return
	}
	if !validated(service, digest(content)) {
		s.wrong("%s was never validated", file)
	}
	if runs := s.machine.units[service+".service"].runs().digest; runs != digest(content) {
		s.wrong("%s is not what %s has loaded", file, service)
	}
	if service != "nginx" {
		return
	}
	revision, err := askRevision()
	if err != nil || !strings.Contains(string(content), revision) {
		s.wrong("nginx serves the revision %q (%v), which is not that of %s", revision, err, file)
	}
}

// sample is how many names of a large site are asked for.
const sample = 10

// checkServed asserts that what is in force is what is served.
func (s *session) checkServed(service string) {
	running, known := s.inForce[service]
	if !known || !s.machine.units[service+".service"].alive() {
		return
	}
	snapshot, known := s.manager.snapshot(running.etag)
	if !known {
		s.wrong("%s runs %s, which was never published", service, running.etag)
		return
	}
	if service == "nginx" {
		s.checkNGINX(meaning(snapshot, running.left), running.left)
	} else {
		s.checkDNSMasq(meaning(snapshot, running.left))
	}
}

func (s *session) checkNGINX(want serving, left []checkin.QuarantinedItem) {
	for _, name := range some(s.names) {
		got, err := askHost(name)
		s.compare("https://"+name, got, err, want.http[name], kept(left, checkin.KindHTTP, name), isBackend)
	}
	for _, name := range some(s.ports) {
		if s.taken[name] != nil {
			continue
		}
		got, err := askSocket(name)
		s.compare(name, got, err, want.streams[name], kept(left, checkin.KindStream, name), isBackend)
	}
}

func (s *session) checkDNSMasq(want serving) {
	for _, name := range some(s.hosts) {
		got, err := askName(name, dns.TypeA)
		s.compare(name, got, err, want.hosts[name], false, isBackend)
	}
	for _, name := range some(s.srv) {
		got, err := askName(name, dns.TypeSRV)
		s.compare(name, got, err, want.srv[name], false, func(answer string) bool { return strings.Contains(answer, "internal ") })
	}
}

// compare asserts that what answers is what is wanted; empty stands for nobody
// of the site. Where a previous block is kept, it is somebody that was there
// before.
func (s *session) compare(what, got string, err error, want string, kept bool, somebody func(string) bool) {
	switch {
	case err != nil:
		s.wrong("%s: %v", what, err)
	case kept && s.once[strings.TrimPrefix(what, "https://")][got]:
	case want == "" && !somebody(got), got == want:
	default:
		s.wrong("%s: %q answers instead of %q", what, got, want)
	}
}

func isBackend(answer string) bool { return strings.HasPrefix(answer, "192.0.2.") }

func kept(left []checkin.QuarantinedItem, kind, name string) bool {
	return slices.ContainsFunc(left, func(q checkin.QuarantinedItem) bool { return q.Kind == kind && q.Name == name && q.KeptPrevious })
}

func namesOf(left []checkin.QuarantinedItem) []string {
	var names []string
	for _, record := range left {
		names = append(names, record.Kind+" "+record.Name)
	}
	return names
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// some returns all of a few and a sample of many.
func some(all map[string]bool) []string {
	names := slices.Sorted(maps.Keys(all))
	if len(names) <= sample {
		return names
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:sample]
}

func askSocket(name socket) (string, error) {
	if strings.HasPrefix(name, "udp/") {
		return askDatagram(portOf(name))
	}
	return askPort(portOf(name))
}

// revisionPath is where nginx tells which configuration is live.
const revisionPath = render.RevisionPath

// foresee asks the agent what a pass would do: that touches nothing, and the
// pass after it does it.
func (s *session) foresee() {
	before, starts := everything(), s.restarts()
	command, log := s.agent("run", "--dry-run")
	_ = command.Run() // its exit status says what it is about
	code := command.ProcessState.ExitCode()
	s.say("foreseen: exit %d", code)
	for line := range strings.Lines(log.String()) {
		s.say("  | %s", strings.TrimRight(line, "\n"))
	}
	for file, was := range everything() {
		if before[file] != was {
			s.wrong("%s was changed by looking ahead", file)
		}
		delete(before, file)
	}
	if len(before) > 0 || !maps.Equal(starts, s.restarts()) || len(s.machine.nginx().loaded())+len(s.machine.dnsmasq().loaded()) > 0 {
		s.wrong("something was changed by looking ahead: %v", slices.Collect(maps.Keys(before)))
	}
	r := s.pass(byHand)
	wrote := strings.Contains(r.log, "file written") || strings.Contains(r.log, "configuration applied") || strings.Contains(r.log, "volume ready")
	if code == settled && wrote {
		s.wrong("nothing was foreseen, and the pass has changed something")
	}
	if code == wouldChange && !wrote && r.code == settled {
		s.wrong("changes were foreseen, and the pass has changed nothing")
	}
}

// everything is the content of all files that an agent may write.
func everything() map[string]string {
	contents := map[string]string{}
	for _, folder := range []string{"/etc", "/var/lib", volumesRoot} {
		_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Base(path) == "fill" || strings.HasPrefix(path, "/etc/ssl/certs/") {
				return nil
			}
			info, err := entry.Info()
			if err != nil {
				return nil // gone meanwhile
			}
			what := info.Mode().String()
			if info.Mode().IsRegular() {
				content, _ := os.ReadFile(path)
				what += info.ModTime().String() + digest(content)
			}
			contents[path] = what
			return nil
		})
	}
	return contents
}

// converge takes away all faults, and asserts that at most two passes lead to
// what the last snapshot means, and that then there is nothing to do any more.
func (s *session) converge() {
	s.say("the faults end")
	s.heal()
	s.release()
	if s.meant != s.etag {
		s.confirm()
	}
	want := settled
	if s.refused() {
		want = rejected
	}
	r := s.pass(byHand)
	if r.code != want {
		if s.meant != s.etag {
			s.confirm() // it was held back only now
		}
		r = s.pass(byHand)
	}
	if r.code != want {
		s.wrong("exit status %d instead of %d two passes after the faults have ended", r.code, want)
		return
	}
	s.checkConverged(r)

	before, starts := tests(), s.restarts()
	quiet := s.pass(byTimer)
	if quiet.code != want {
		s.wrong("exit status %d instead of %d with nothing to do", quiet.code, want)
	}
	if after := tests(); after != before {
		s.wrong("%d tests with nothing to do", after-before)
	}
	if !maps.Equal(starts, s.restarts()) || strings.Contains(quiet.log, "file written") {
		s.wrong("a pass with nothing to do did something")
	}
}

// refused reports whether something of the snapshot cannot be in force.
func (s *session) refused() bool {
	_, err := os.Stat(overridesDir)
	odd := slices.ContainsFunc(slices.Collect(maps.Keys(s.site.odd)), func(record string) bool {
		switch record {
		case oddValue:
			return true
		case oddCard, oddName:
			return err == nil && s.site.network != incomplete
		case oddSRV:
			return err == nil && s.site.network != incomplete && len(s.site.snapshot().Site.DNSRecords) > 1
		}
		return err == nil
	})
	return odd || slices.Contains(slices.Collect(maps.Values(s.site.volumes)), false)
}

// checkConverged asserts that what is in force is the last snapshot.
func (s *session) checkConverged(r result) {
	if len(r.told) == 0 {
		s.wrong("nothing was told")
		return
	}
	told := r.told[len(r.told)-1]
	for service, report := range told.Services {
		if service == "dnsmasq" && s.site.network == incomplete {
			continue
		}
		if report.Outcome != checkin.OutcomeApplied && report.Outcome != checkin.OutcomeUnchanged || report.RunningETag != s.etag || report.State != "active" {
			s.wrong("%s is %s, %s, running %s instead of %s", service, report.State, report.Outcome, shortTag(report.RunningETag), shortTag(s.etag))
		}
	}
	if !s.refused() && (told.Running == nil || told.Running.ETag != s.etag) {
		s.wrong("not reported to run %s as a whole", shortTag(s.etag))
	}
	for number, there := range s.site.volumes {
		info, err := os.Stat(volumesRoot + "/v" + strconv.Itoa(number))
		if there && (err != nil || !info.IsDir()) {
			s.wrong("volume %d: %v", number, err)
		}
	}
}
