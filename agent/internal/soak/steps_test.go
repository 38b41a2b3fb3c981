package soak

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// actions are the steps of a sequence, by name. Each does something and then
// has a pass run, so that everything is checked after it.
func (s *session) actions() map[string]func(*rapid.T) {
	steps := map[string]func(){
		"operators change something":    func() { s.change(); s.somePass() },
		"operators change more":         func() { s.change(); s.change(); s.somePass() },
		"operators add an odd record":   s.addOdd,
		"operators correct odd records": s.correctOdd,
		"operators empty the site":      s.emptySite,
		"operators change the network":  s.changeNetwork,
		"the site grows":                s.grow,
		"nothing happens":               s.somePass,
		"somebody asks what would be":   s.foresee,
		"a validator refuses":           s.refuse,
		"a job fails":                   s.failJobs,
		"a disk is full":                s.fillDisk,
		"a folder is read-only":         s.readOnly,
		"a port is taken":               s.takePort,
		"the agent is killed":           s.killAgent,
		"a program is killed":           s.killProgram,
		"the manager is not well":       s.manageBadly,
		"a file is edited":              s.editFile,
		"templates change":              s.changeTemplates,
		"a certificate changes":         s.changeCertificate,
		"state is lost":                 s.loseState,
		"removals are confirmed":        func() { s.confirm(); s.somePass() },
		"a service is held":             s.hold,
		"services are released":         func() { s.release(); s.somePass() },
		"all is well":                   s.converge,
	}
	actions := map[string]func(*rapid.T){}
	for name, step := range steps {
		actions[name] = func(t *rapid.T) {
			s.t = t
			s.say("--- %s", name)
			step()
		}
	}
	return actions
}

func draw[T any](s *session, what string, from ...T) T {
	return drawn(s, what, rapid.SampledFrom(from))
}

func drawn[T any](s *session, what string, from *rapid.Generator[T]) T {
	return from.Draw(s.t.(*rapid.T), what)
}

func (s *session) coin(what string) bool { return drawn(s, what, rapid.Bool()) }

func (s *session) somePass() { s.pass(draw(s, "start", byHand, byTimer)) }

// duringFault has a pass meet a fault with something to do, and takes the fault
// away again, or not yet.
func (s *session) duringFault() {
	if s.coin("with a change") {
		s.change()
	}
	s.somePass()
	if !s.coin("lasting") {
		s.say("the fault ends")
		s.heal()
	}
}

// change is one edit of the site by its operators.
func (s *session) change() {
	container := draw(s, "container", containerNumbers...)
	switch what := draw(s, "what", "host name", "port", "container", "SRV record", "volume"); what {
	case "host name":
		toggle(s.site.apps, draw(s, "host name", appLabels...), container)
	case "port":
		toggle(s.site.ports, draw(s, "port", sockets[1:]...), container)
	case "container":
		toggle(s.site.cards, container, s.coin("with its card"))
	case "SRV record":
		toggle(s.site.srv, draw(s, "SRV record", srvLabels...), container)
	case "volume":
		toggle(s.site.volumes, draw(s, "volume", volumeNumbers...), draw(s, "on a mount", true, true, true, false))
	}
	s.publish()
}

// toggle removes what is there with this value, and else sets it.
func toggle[K, V comparable](set map[K]V, key K, value V) {
	if old, there := set[key]; there && old == value {
		delete(set, key)
	} else {
		set[key] = value
	}
}

func (s *session) addOdd() {
	s.site.base = true
	for range draw(s, "how many", 1, 1, 2) {
		s.site.odd[draw(s, "odd", oddRecords...)] = true
	}
	s.publish()
	s.somePass()
}

func (s *session) correctOdd() {
	clear(s.site.odd)
	s.publish()
	s.somePass()
}

func (s *session) emptySite() {
	s.site.clear()
	s.publish()
	s.somePass()
	s.site.ports[anchor] = 0
}

func (s *session) changeNetwork() {
	s.site.network = draw(s, "network", 0, 1, 2, incomplete)
	s.publish()
	s.somePass()
}

func (s *session) grow() {
	s.site.huge = !s.site.huge
	s.publish()
	s.somePass()
}

// confirm has the manager publish the same again as what is meant. The next
// change by the operators takes that back.
func (s *session) confirm() {
	s.site.confirmed = true
	s.publish()
	s.site.confirmed = false
}

func (s *session) hold() {
	for _, service := range s.drawServices() {
		command, log := s.agent("hold", service, "--for", "1h", "--reason", "soak")
		if err := command.Run(); err != nil {
			s.say("hold %s: %v %s", service, err, log)
			continue // the state directory is not to be written to
		}
		s.held[service] = true
	}
	if s.coin("with a change") {
		s.change()
	}
	s.somePass()
}

func (s *session) release() {
	if len(s.held) == 0 {
		return
	}
	command, log := s.agent("release", "--all")
	if err := command.Run(); err != nil {
		s.say("release: %v %s", err, log)
		return
	}
	clear(s.held)
}

func (s *session) refuse() {
	for _, service := range s.drawServices() {
		must(s.t, os.WriteFile(scratch+"/"+service+".refuse", nil, 0o644))
	}
	s.duringFault()
}

func (s *session) failJobs() {
	for _, service := range s.drawServices() {
		s.machine.units[service+".service"].set(func(u *unit) { u.refuse = true })
		s.disturbed[service] = true
	}
	s.duringFault()
}

// drawServices returns one of them or both.
func (s *session) drawServices() []string {
	return draw(s, "services", []string{"nginx"}, []string{"dnsmasq"}, []string{"nginx", "dnsmasq"})
}

func (s *session) fillDisk() {
	must(s.t, fill(draw(s, "disk", "/etc", "/var/lib"), int64(draw(s, "free pages", 0, 0, 1, 2, 5))*4096))
	s.duringFault()
}

func (s *session) readOnly() {
	must(s.t, makeReadOnly(draw(s, "folder", "/etc/nginx", "/var/lib/dnsmasq", stateDir)))
	s.duringFault()
}

// takePort has another process listen where a service is going to.
func (s *session) takePort() {
	name := draw(s, "port", "tcp/2202", "tcp/2203")
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", portOf(name)))
	if err != nil {
		s.t.Skip("nginx has it")
	}
	s.taken[name] = func() { listener.Close() }
	s.site.ports[name] = draw(s, "container", containerNumbers...)
	s.publish()
	s.somePass()
	if !s.coin("lasting") {
		s.say("the fault ends")
		s.heal()
	}
}

func (s *session) killAgent() {
	s.change()
	moment := draw(s, "moment", moments...)
	if s.coin("at any time") {
		moment = fmt.Sprintf("%dms", drawn(s, "after", rapid.IntRange(1, 400)))
	}
	s.passKilled(draw(s, "start", byHand, byTimer), moment)
	if s.coin("and once more") {
		s.passKilled(byHand, moment)
	}
}

func (s *session) killProgram() {
	for _, service := range s.drawServices() {
		s.machine.units[service+".service"].kill()
	}
	if s.coin("with a change") {
		s.change()
	}
	s.somePass()
}

func (s *session) manageBadly() {
	fault := draw(s, "answer", slices.Sorted(maps.Keys(odd))...)
	s.manager.set(func(m *manager) { m.fault = fault })
	s.duringFault()
}

// editFile has somebody edit managed files, while the site changes or not.
func (s *session) editFile() {
	for range draw(s, "how many", 1, 1, 3) {
		service := draw(s, "service", "nginx", "dnsmasq")
		file := draw(s, "file", managedFiles[service]...)
		how := draw(s, "edit", slices.Sorted(maps.Keys(edits))...)
		if how == movedWithLink && len(s.cutShort) > 0 {
			how = "a comment" // what a killed pass has kept lies beside the file
		}
		// With a fault of a disk there may be no editing either.
		s.say("%s: %s (%v)", file, how, edits[how](file))
		s.disturbed[service] = true
	}
	if s.coin("with a change") {
		s.change()
	}
	s.somePass()
}

const movedWithLink = "moved, with a link to it"

// edits are what people do to files.
var edits = map[string]func(file string) error{
	"a comment": func(file string) error { return appendTo(file, "# by hand\n") },
	"garbage":   func(file string) error { return appendTo(file, "no such directive;\n") },
	"emptied":   func(file string) error { return os.Truncate(file, 0) },
	"removed":   os.Remove,
	"mode":      func(file string) error { return os.Chmod(file, 0o664) },
	movedWithLink: func(file string) error {
		elsewhere := filepath.Join("/etc/elsewhere", filepath.Base(file))
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			return err
		}
		return errors.Join(os.MkdirAll("/etc/elsewhere", 0o755), run("mv", file, elsewhere), os.Symlink(elsewhere, file))
	},
	"cut in half": func(file string) error {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		return os.Truncate(file, info.Size()/2)
	},
}

func appendTo(file, text string) error {
	opened, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = opened.WriteString(text)
	return errors.Join(err, opened.Close())
}

// changeTemplates takes the overrides away by which odd records are refused, or
// brings them back.
func (s *session) changeTemplates() {
	if _, err := os.Stat(overridesDir); err == nil {
		must(s.t, os.RemoveAll(overridesDir))
	} else {
		must(s.t, putOverrides())
	}
	s.somePass()
}

// loseState damages what the agent remembers.
func (s *session) loseState() {
	for _, name := range draw(s, "files", []string{"state.json"}, []string{"snapshot.json"}, []string{"state.json", "snapshot.json"}) {
		file := filepath.Join(stateDir, name)
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		how := draw(s, "damage", "removed", "emptied", "half", "zeros")
		switch how {
		case "removed":
			err = os.Remove(file)
		case "emptied":
			err = os.WriteFile(file, nil, 0o600)
		case "half":
			err = os.WriteFile(file, content[:len(content)/2], 0o600)
		case "zeros":
			err = os.WriteFile(file, []byte(strings.Repeat("\x00", 4096)), 0o600)
		}
		if err != nil {
			s.t.Skip("the state directory is not to be written to")
		}
		s.say("%s: %s", name, how)
		if name == "state.json" {
			clear(s.held)
		}
	}
	s.forget()
	s.somePass()
}
